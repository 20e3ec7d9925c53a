"""The description of every operator: one row each.

    schema.py         the attributes of a row
    elementwise.py    clip and its gradient, and other functions of several tensors
    activations.py    functions of one tensor
    normalization.py  normalization and its gradients
    softmax.py        the softmax family

Docstrings, ONNX's names, the rows of ``dmlops accuracy`` and the fields of operator files are read
from the rows at run time. ``tools/generate.py`` writes the C and C++ declarations, the rules of the
validator, the arguments and stubs of the functions, the descriptor classes, and the lists of the
documentation.
"""

from . import schema
from .activations import ACTIVATIONS
from .elementwise import ELEMENTWISE
from .normalization import NORMALIZATION
from .schema import Operator
from .softmax import SOFTMAX

__all__ = ["ACTIVATIONS", "DESCS", "OPERATORS", "ROWS", "Operator", "schema"]

OPERATORS: tuple[Operator, ...] = (*ELEMENTWISE, *NORMALIZATION, *SOFTMAX, *ACTIVATIONS)

# By the name of the function; of several operators that one function serves, the last one.
ROWS: dict[str, Operator] = {row.function: row for row in OPERATORS}

# By the name of the descriptor.
DESCS: dict[str, Operator] = {row.desc: row for row in OPERATORS}
