"""DML_BUFFER_TENSOR_DESC, and the base class of all descriptors."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, fields
from decimal import Decimal
from numbers import Real
from typing import TYPE_CHECKING, Any, SupportsIndex

import numpy as np

from dmlops import _core
from dmlops._enums import TensorDataType, TensorFlags, member
from dmlops._foreign import as_array, require_unmasked, type_name

MAX_DIMENSIONS = 8  # of DirectML's tensors, and of dmlops' arrays
_FLOATS = (float, np.floating)


def _text(value: object) -> str:
    """Return a repr that evaluates to the value, also for infinities and NaN."""
    if isinstance(value, float) and not math.isfinite(value):
        return f"float('{value}')"
    return repr(value)


class Descriptor:
    """A frozen dataclass, compared by value, whose repr evaluates to an equal object."""

    def __post_init__(self) -> None:
        """Convert numbers and bools to immutable objects."""
        for f in fields(self):  # type: ignore[arg-type]
            if f.type == "float":
                self._set(f.name, self._number(f.name, "a number"))
            elif f.type == "bool":
                self._set(f.name, bool(self._number(f.name, "a bool")))

    def _number(self, name: str, expected: str) -> Any:
        """Return a field's number; that of an array without dimensions, as a plain number."""
        value = getattr(self, name)
        require_unmasked(type(self).__name__, name, value)
        if getattr(value, "ndim", None) == 0 and hasattr(value, "item"):  # also NumPy's scalars
            value = value.item()
        if not isinstance(value, (Real, Decimal)):
            raise TypeError(
                f"{type(self).__name__}: {name} must be {expected}, not {type_name(value)}"
            )
        return math.nan if isinstance(value, Decimal) and value.is_nan() else value

    def __repr__(self) -> str:
        named = (f"{f.name}={_text(getattr(self, f.name))}" for f in fields(self))  # type: ignore[arg-type]
        return f"{type(self).__name__}({', '.join(named)})"

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def _key(self) -> tuple[Any, ...]:
        """Return the fields, with the same object for each NaN, which tuples take to be equal."""
        values = (getattr(self, f.name) for f in fields(self))  # type: ignore[arg-type]
        return tuple(math.nan if isinstance(v, _FLOATS) and math.isnan(v) else v for v in values)

    def _set(self, name: str, value: Any) -> None:
        """Replace a field by its normal form; for use in ``__post_init__`` only."""
        object.__setattr__(self, name, value)


def integer(where: str, value: Any) -> int:
    """Return a plain integer."""
    try:
        return operator.index(value)
    except TypeError:
        raise TypeError(f"{where} must be an integer, not {type(value).__name__}") from None


def integers(where: str, values: Sequence[SupportsIndex]) -> tuple[int, ...]:
    """Return a tuple of plain integers."""
    try:
        items = None if isinstance(values, (str, bytes)) else tuple(values)
    except TypeError:
        items = None
    if items is None:
        field = where.rpartition(" ")[2]
        fix = f"; write {field}=({values},)" if isinstance(values, int) else ""
        kind = type(values).__name__
        raise TypeError(f"{where} must be a sequence of integers, not {kind}{fix}")
    return tuple(integer(f"{where}[{i}]", item) for i, item in enumerate(items))


@dataclass(frozen=True, eq=False, repr=False)
class BufferTensorDesc(Descriptor):
    """The description of a tensor: data type, sizes, and layout in memory.

    Parameters
    ----------
    data_type : TensorDataType or str
        The data type of the elements. A name such as ``"FLOAT32"`` works, too.
    sizes : sequence of int
        The size of each of 1 to 8 dimensions, at least 1.
    strides : sequence of int, optional
        The stride of each dimension in elements; 0 broadcasts. None is packed, in row-major order.
    flags : TensorFlags, default TensorFlags.NONE
        OWNED_BY_DML for an input that is bound when the operator is compiled.
    total_tensor_size_in_bytes : int, optional
        The bytes that a binding must hold, at least the default, `calc_buffer_tensor_size`.
    guaranteed_base_offset_alignment : int, default 0
        Offsets of bindings are multiples of this number: 0, or a power of two of at least the
        element's size.

    Notes
    -----
    DirectML's DML_BUFFER_TENSOR_DESC; DimensionCount is the length of `sizes`. The rules are
    checked when an operator is compiled.

    Examples
    --------
    >>> from dmlops import BufferTensorDesc, TensorDataType
    >>> BufferTensorDesc(TensorDataType.FLOAT32, (1, 3, 224, 224)).sizes
    (1, 3, 224, 224)
    """

    data_type: TensorDataType
    sizes: tuple[int, ...]
    _: KW_ONLY
    strides: tuple[int, ...] | None = None
    flags: TensorFlags = TensorFlags.NONE
    total_tensor_size_in_bytes: int | None = None
    guaranteed_base_offset_alignment: int = 0

    if TYPE_CHECKING:  # type checkers: the constructor accepts more types than the fields have

        def __init__(
            self,
            data_type: TensorDataType | str,
            sizes: Sequence[SupportsIndex],
            *,
            strides: Sequence[SupportsIndex] | None = None,
            flags: TensorFlags | str = TensorFlags.NONE,
            total_tensor_size_in_bytes: SupportsIndex | None = None,
            guaranteed_base_offset_alignment: SupportsIndex = 0,
        ) -> None: ...

    def __post_init__(self) -> None:
        """Convert names, sequences and integers to the fields' types."""
        where = "BufferTensorDesc:"
        self._set("data_type", member(f"{where} data_type", TensorDataType, self.data_type))
        self._set("sizes", integers(f"{where} sizes", self.sizes))
        if self.strides is not None:
            self._set("strides", integers(f"{where} strides", self.strides))
        self._set("flags", member(f"{where} flags", TensorFlags, self.flags))
        for name in ("total_tensor_size_in_bytes", "guaranteed_base_offset_alignment"):
            value = getattr(self, name)
            if value is not None:  # the core refuses None as an alignment
                self._set(name, integer(f"{where} {name}", value))

    @staticmethod
    def from_array(array: Any, *, flags: TensorFlags | str = TensorFlags.NONE) -> BufferTensorDesc:
        """Describe an array: its data type, its sizes, and its strides unless it is packed.

        Parameters
        ----------
        array : numpy.ndarray
            An array, or an object that offers DLPack on the CPU or the buffer protocol, of 0 to 8
            dimensions and a data type of DirectML. A scalar gets 1 dimension of size 1.
        flags : TensorFlags, default TensorFlags.NONE
            The flags of the descriptor.

        Returns
        -------
        BufferTensorDesc
            The array's layout, relative to its first element.

        Raises
        ------
        ValueError
            If a stride is negative, or not a whole number of elements.
        TypeError
            If DirectML has no such data type.

        Examples
        --------
        >>> import numpy as np
        >>> from dmlops import BufferTensorDesc
        >>> image = np.zeros((4, 5, 3), np.float32)
        >>> BufferTensorDesc.from_array(image.transpose(2, 0, 1)).strides
        (1, 15, 3)
        """
        array = as_array("from_array", "array", array)
        data_type = getattr(TensorDataType, array.dtype.name.upper(), None)
        if data_type is None or not array.dtype.isnative:
            raise TypeError(f"from_array: DirectML has no data type for dtype {array.dtype}")
        sizes = array.shape or (1,)
        if array.flags.c_contiguous:
            return BufferTensorDesc(data_type, sizes, flags=flags)
        steps = [divmod(stride, array.itemsize) for stride in array.strides]
        for axis, (stride, rest) in enumerate(steps):
            if sizes[axis] > 1 and (stride < 0 or rest):
                raise ValueError(
                    f"from_array: axis {axis} has a stride of {array.strides[axis]} bytes;"
                    " DirectML's strides are whole, non-negative numbers of elements"
                    f" (of {array.itemsize} bytes)"
                )
        strides = tuple(
            stride if size > 1 else 0 for size, (stride, _) in zip(sizes, steps, strict=True)
        )
        return BufferTensorDesc(data_type, sizes, strides=strides, flags=flags)


def calc_buffer_tensor_size(
    data_type: TensorDataType | str,
    sizes: Sequence[SupportsIndex],
    strides: Sequence[SupportsIndex] | None = None,
) -> int:
    """Return the smallest size of a tensor, in bytes.

    Parameters
    ----------
    data_type : TensorDataType
        The data type of the elements.
    sizes : sequence of int
        The size of each of 1 to 8 dimensions.
    strides : sequence of int, optional
        The stride of each dimension in elements; None is packed.

    Returns
    -------
    int
        The bytes from the first element to the last, rounded up to a multiple of 4.

    Raises
    ------
    ValidationError
        If a tensor cannot have the sizes or strides.

    Notes
    -----
    DirectML's DMLCalcBufferTensorSize adds strides in 32 bits and may wrap; this function does not.

    Examples
    --------
    >>> from dmlops import TensorDataType, calc_buffer_tensor_size
    >>> calc_buffer_tensor_size(TensorDataType.FLOAT16, (1, 1, 1, 3))
    8
    >>> calc_buffer_tensor_size(TensorDataType.FLOAT32, (2, 3), strides=(0, 1))
    12
    """
    where = "calc_buffer_tensor_size:"
    desc = BufferTensorDesc(
        member(f"{where} data_type", TensorDataType, data_type),
        integers(f"{where} sizes", sizes),
        strides=None if strides is None else integers(f"{where} strides", strides),
    )
    return _core.calc_buffer_tensor_size(desc)
