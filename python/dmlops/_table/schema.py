"""The schema of the table: the attributes of operators, tensors and parameters."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import groupby

__all__ = [
    "FLOATS",
    "INPUT",
    "NUMBERS32",
    "NUMBERS64",
    "OUTPUT",
    "SIGNED32",
    "SINCE_1_0",
    "Activation",
    "Axes",
    "Boolean",
    "DataType",
    "Field",
    "Number",
    "Operator",
    "Scalar",
    "ScaleBias",
    "Support",
    "Tensor",
    "Types",
    "camel_case",
]


@dataclass(frozen=True)
class Types:
    """A set of data types."""

    cpp: str  # the constant in src/operators/type_sets.hpp
    variable: str  # the type variable of the stubs
    names: tuple[str, ...]
    text: str  # for docstrings: "an array of ..."


_FLOATS = ("FLOAT32", "FLOAT16")
_SIGNED32 = ("INT32", "INT16", "INT8")
_UNSIGNED32 = ("UINT32", "UINT16", "UINT8")
FLOATS = Types("kFloats", "_Float", _FLOATS, "float32 or float16")
SIGNED32 = Types(
    *("kSigned32", "_Signed", _FLOATS + _SIGNED32),
    "float32, float16, or a signed integer of 8 to 32 bits",
)
NUMBERS32 = Types(
    *("kNumbers32", "_Narrow", _FLOATS + _SIGNED32 + _UNSIGNED32),
    "float32, float16, or an integer of 8 to 32 bits",
)
NUMBERS64 = Types(
    *("kNumbers64", "_Element", _FLOATS + _SIGNED32 + _UNSIGNED32 + ("INT64", "UINT64")),
    "float32, float16, or an integer dtype",
)


@dataclass(frozen=True)
class Support:
    """Ranks and data types that a feature level adds."""

    since: str  # "5_1"
    min_rank: int
    max_rank: int
    types: Types = FLOATS


def camel_case(name: str) -> str:
    """Return "InputTensor", as DirectML writes it, for "input_tensor"."""
    return "".join(word.capitalize() for word in name.split("_"))


SINCE_1_0 = (Support("1_0", 4, 4), Support("2_0", 4, 5), Support("3_0", 1, 8))


@dataclass(frozen=True)
class Field:
    """A field of the DirectML struct."""

    name: str  # "input_tensor"
    text: str = ""  # a sentence for the docstrings; of tensors, a default exists
    # The sentence for the function's docstring, if it differs.
    function_text: str = field(default="", kw_only=True)

    @property
    def external(self) -> str:
        """DirectML's name."""
        return camel_case(self.name)

    @property
    def parameter(self) -> str:
        """The name of the function's parameter."""
        return self.name.removesuffix("_tensor")

    @property
    def argument(self) -> str | None:
        """The default of the function's parameter; None if it must be given."""
        return "None"


@dataclass(frozen=True)
class Tensor(Field):
    """A pointer to a DML_TENSOR_DESC.

    The tensor has the input's data type and rank, and the sizes of the tensor `like`. If
    `broadcast`, each size may be 1 instead.
    """

    output: bool = False
    broadcast: bool = False
    optional: bool = False
    like: str = "input_tensor"

    @property
    def argument(self) -> str | None:
        """None unless the tensor is optional."""
        return "None" if self.optional else None

    @property
    def like_parameter(self) -> str:
        """The function's parameter for the tensor `like`."""
        return self.like.removesuffix("_tensor")


INPUT, OUTPUT = Tensor("input_tensor"), Tensor("output_tensor", output=True)


@dataclass(frozen=True)
class Number(Field):
    """A FLOAT."""

    default: str | None = None

    @property
    def argument(self) -> str | None:
        """The default in short."""
        return self.short

    @property
    def short(self) -> str | None:
        """The default with as few digits as float32 tells apart: "0.16666667"."""
        if self.default is None:
            return None
        exact = struct.pack("f", float(self.default))
        texts = (f"{float(self.default):.{digits}g}" for digits in range(1, 10))
        return repr(float(next(t for t in texts if struct.pack("f", float(t)) == exact)))


@dataclass(frozen=True)
class ScaleBias(Field):
    """A pointer to a DML_SCALE_BIAS, or null."""


@dataclass(frozen=True)
class DataType(Field):
    """A DML_TENSOR_DATA_TYPE, which must be that of the tensors."""


@dataclass(frozen=True)
class Scalar(Field):
    """A DML_SCALAR_UNION of the type that another field names."""


@dataclass(frozen=True)
class Boolean(Field):
    """A BOOL."""

    default: bool | None = None
    ignored: bool = False  # at the highest feature level; the function lacks it

    @property
    def argument(self) -> str | None:
        """The default."""
        return str(self.default)


@dataclass(frozen=True)
class Axes(Field):
    """An AxisCount, and a pointer to that number of UINT."""

    may_be_empty: bool = False

    @property
    def argument(self) -> str | None:
        """The last axis."""
        return "-1"


@dataclass(frozen=True)
class Activation(Field):
    """A pointer to the DML_OPERATOR_DESC of an activation, or null."""


@dataclass(frozen=True)
class Operator:
    """A row: the attributes of an operator except the code of its kernel.

    Parameters
    ----------
    name, value : str, int
        DirectML's name, without its prefix, and value.
    function : str
        The function in Python and C++, which may serve several operators.
    formula : str
        The formula in Python's notation.
    text : str
        The first line of the descriptor's docstring; empty for the formula.
    fields : tuple of Field
        Of the struct, tensors first, in its order.
    supports : tuple of Support
        Oldest first.
    in_place : bool
        True if the output may be bound to the memory of the input.
    activation : bool
        True if the operator is one of ACTIVATIONS, which share the code around their formula.
    fusable : bool
        True if a normalization can fuse the operator.
    rows_only : str
        The operator to advise if this one limits the input to an effective rank of 2.
    notes, example : str
        Further sentences of the descriptor's docstring, and its example.
    results : tuple of float
        The function's values at -2, -0.25, 1 and 3, rounded to 4 digits, for its example.
    error : tuple of float, optional
        The largest error of all float32 inputs with the default parameters in ulp, and its place.
    promise : float
        The error in ulp that `dmlops accuracy` allows.
    remark : str
        A further sentence of the function's docstring.
    work : str
        "long" for a formula of dozens of instructions, beside which a call is negligible.
    onnx : str
        ONNX's operator, if it has the same meaning.
    onnx_attributes : mapping of str to str
        ONNX's attribute for each parameter that has one; the other parameters have their defaults.
    """

    name: str
    value: int
    function: str
    formula: str
    fields: tuple[Field, ...]
    supports: tuple[Support, ...]
    text: str = ""
    in_place: bool = True
    activation: bool = False
    fusable: bool = False
    rows_only: str = ""
    notes: str = ""
    example: str = ""
    results: tuple[float, ...] = ()
    error: tuple[float, float] | None = None
    promise: float = 2.0
    remark: str = ""
    work: str = "short"
    onnx: str = ""
    onnx_attributes: Mapping[str, str] = field(default_factory=dict)

    @property
    def desc(self) -> str:
        """The name of the descriptor: "ActivationReluOperatorDesc"."""
        return camel_case(f"{self.name}_OPERATOR_DESC")

    @property
    def struct(self) -> str:
        """The name of DirectML's struct."""
        return f"DML_{self.name}_OPERATOR_DESC"

    @property
    def family(self) -> str:
        """The enumerator of `Family` in C++: the operators that are compiled alike."""
        return "activation" if self.activation else self.function

    @property
    def types(self) -> Types:
        """The data types that the function takes, those of the highest feature level."""
        return self.supports[-1].types

    @property
    def tensors(self) -> tuple[Tensor, ...]:
        """The tensors of the struct."""
        return tuple(each for each in self.fields if isinstance(each, Tensor))

    @property
    def inputs(self) -> tuple[Tensor, ...]:
        """The tensors that are read."""
        return tuple(each for each in self.tensors if not each.output)

    @property
    def outputs(self) -> tuple[Tensor, ...]:
        """The tensors that are written, the last ones."""
        return tuple(each for each in self.tensors if each.output)

    @property
    def positional(self) -> tuple[Field, ...]:
        """The function's parameters after `input` that may be given by position."""
        return tuple(each for each, keyword in self._parameters() if not keyword)

    @property
    def keyword_only(self) -> tuple[Field, ...]:
        """The function's parameters before `out` that are given by keyword."""
        return tuple(each for each, keyword in self._parameters() if keyword)

    def _parameters(self) -> Iterator[tuple[Field, bool]]:
        """Yield the fields that are parameters, and whether they are given by keyword only."""
        after_axes = False
        for each in self.fields:
            lacking = isinstance(each, DataType) or getattr(each, "ignored", False)
            if lacking or each is self.inputs[0] or each in self.outputs:
                continue
            yield each, after_axes or isinstance(each, ScaleBias | Activation)
            after_axes = after_axes or isinstance(each, Axes)

    @property
    def numbers(self) -> tuple[Number, ...]:
        """The FLOAT fields."""
        return tuple(each for each in self.fields if isinstance(each, Number))

    @property
    def defaults(self) -> dict[str, float]:
        """The FLOAT fields that have a default."""
        return {each.name: float(each.short) for each in self.numbers if each.short is not None}

    def text_of(self, each: Field) -> str:
        """Return the sentence on a field."""
        if each.text or not isinstance(each, Tensor):
            return each.text
        if self.fusable:
            return "None where the activation is fused."
        if each is self.inputs[0]:
            return "Data types and dimension counts depend on the feature level."
        return "Same data type and sizes as the input."

    def groups(
        self, *fields: Field, of_function: bool = False
    ) -> Iterator[tuple[tuple[Field, ...], str]]:
        """Yield fields with their text; adjacent ones of the same kind and text are a group.

        `of_function`: with the text for the function's docstring.
        """

        def text(each: Field) -> str:
            return (of_function and each.function_text) or self.text_of(each)

        for key, group in groupby(fields, lambda each: (type(each), text(each))):
            yield tuple(group), key[1]
