"""Operator files: operators in JSON, with DirectML's names, for `dmlops run` and `validate`.

    read.py         JSON values with their paths, for messages
    other_operators.py  operators of DirectML that dmlops lacks
    descriptors.py  DirectML's structs, by the names of their fields
    names.py        DirectML's names in messages
    model.py        resources, operators, commands
    parse.py        the whole file, into a model
    initial.py      initial values: from the file itself, or mapped from another one
    resources.py    memory: allocated or mapped, bound, printed and written
    files.py        files of elements: mapped, and created
    chunks.py       long dispatches in chunks
    timing.py       repeated dispatches, and their times
    execute.py      the commands, one after another
    progress.py     the progress of long work

The shape is that of Microsoft's DxDispatch tool, for the operators that dmlops has.
"""
