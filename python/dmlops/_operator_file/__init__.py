"""Operators described in JSON, with DirectML's own names: what `dmlops run` and `validate` read.

    read.py         JSON values that know their place, for messages
    other_operators.py  what DirectML has beyond dmlops
    descriptors.py  DirectML's structs, by the names of their fields
    names.py        DirectML's names in messages
    model.py        what a file says: resources, operators, commands
    parse.py        the whole file, into a model
    initial.py      initial values: from the file itself, or mapped from another one
    resources.py    memory: made, bound, shown and written; mapped where it is huge
    files.py        files of elements: mapped, and made
    pieces.py       long dispatches in pieces
    timing.py       repeated dispatches, and their times
    execute.py      the commands, one after another
    progress.py     what is said about work that takes long

The shape is that of Microsoft's DxDispatch tool, for the operators that dmlops has.
"""
