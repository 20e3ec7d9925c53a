"""Operators described in JSON, with DirectML's own names: what `dmlops run` and `validate` read.

    read.py         JSON values that know where they stand, for messages
    descriptors.py  DirectML's structs, by the names of their fields
    model.py        the whole file: resources, operators, commands
    resources.py    memory: values from the file, and .npy files, mapped where they are huge
    pieces.py       long dispatches in pieces
    execute.py      the commands, one after another
    progress.py     what is said about work that takes long

The shape is that of Microsoft's DxDispatch tool, for the operators that dmlops has.
"""
