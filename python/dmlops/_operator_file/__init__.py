"""Operator files: operators in JSON, with DirectML's names, for `dmlops run` and `validate`.

    read.py             JSON values with their paths, for messages
    other_operators.py  operators of DirectML that dmlops lacks
    descriptors.py      DirectML's structs, by the names of their fields
    model.py            resources, operators, commands
    parse.py            parses a file into a model
    initial.py          initial values: listed in the file, or mapped from another file
    resources.py        memory: allocated or mapped, bound, printed and written
    files.py            files of elements: mapped, and created
    chunks.py           long dispatches in chunks
    timing.py           repeated dispatches, and their times
    execute.py          runs the commands
    progress.py         the progress of long commands

The format is that of Microsoft's DxDispatch, for the operators of dmlops.
"""
