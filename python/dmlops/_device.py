"""Compiles DirectML's descriptors, and binds memory to compiled operators."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dmlops import _core
from dmlops._enums import FeatureLevel, member
from dmlops._operator_descs import OperatorDesc
from dmlops._tensor_desc import integer


@dataclass(frozen=True, eq=False)
class BufferBinding:
    """A range of a buffer.

    Parameters
    ----------
    buffer : numpy.ndarray or buffer
        Contiguous memory, of any type.
    offset : int, default 0
        In bytes: a multiple of 16, and of the tensor's `guaranteed_base_offset_alignment`.
    size_in_bytes : int, optional
        A multiple of 4, at most the size of the buffer less the offset. None is the tensor's
        total size, or `calc_buffer_tensor_size`.

    Notes
    -----
    DirectML's DML_BUFFER_BINDING. An array bound without a BufferBinding need not follow DirectML's
    rules for buffers: it may end with the tensor's last element, and have any size.

    Examples
    --------
    >>> from dmlops import ActivationReluOperatorDesc, BufferBinding, BufferTensorDesc, Device
    >>> from dmlops import TensorDataType
    >>> heap = bytearray(64)
    >>> x = BufferTensorDesc(TensorDataType.FLOAT32, (4,))
    >>> relu = Device().compile(ActivationReluOperatorDesc(input_tensor=x, output_tensor=x))
    >>> relu.dispatch(inputs=[BufferBinding(heap)], outputs=[BufferBinding(heap, offset=16)])
    """

    buffer: Any
    offset: int = 0
    size_in_bytes: int | None = None

    def __post_init__(self) -> None:
        """Convert the offset and the size to plain integers of the range of DirectML's fields."""
        for name in ("offset", "size_in_bytes"):
            if name == "size_in_bytes" and self.size_in_bytes is None:
                continue
            value = integer(f"BufferBinding: {name}", getattr(self, name))
            if not 0 <= value < 2**64:
                raise _core.BindingError(f"BufferBinding: {name} is {value}; it must fit UINT64")
            object.__setattr__(self, name, value)


@dataclass(frozen=True)
class Device:
    """Validates and compiles descriptors as a DirectML device of a feature level would.

    Parameters
    ----------
    feature_level : FeatureLevel or str, default FeatureLevel.LEVEL_6_4
        Limits operators, data types and dimension counts. A name such as ``"5_0"`` works, too.

    Examples
    --------
    >>> from dmlops import Device, FeatureLevel
    >>> Device(FeatureLevel.LEVEL_5_0)
    Device(feature_level=FeatureLevel.LEVEL_5_0)
    """

    feature_level: FeatureLevel = FeatureLevel.LEVEL_6_4

    if TYPE_CHECKING:  # see BufferTensorDesc

        def __init__(self, feature_level: FeatureLevel | str = FeatureLevel.LEVEL_6_4) -> None: ...

    def __post_init__(self) -> None:
        """Convert names and numbers of feature levels."""
        level = member("Device: feature_level", FeatureLevel, self.feature_level)
        object.__setattr__(self, "feature_level", level)

    def compile(
        self,
        desc: OperatorDesc,
        initial: dict[str, Any] | list[Any] | tuple[Any, ...] | None = None,
    ) -> _core.CompiledOperator:
        """Validate and compile a descriptor, with all work that needs no data.

        Parameters
        ----------
        desc : descriptor
            The descriptor of an operator.
        initial : dict, list or tuple, optional
            Bindings for the inputs that are OWNED_BY_DML, by name or in the order of the fields,
            with None for the others. Their bytes are copied.

        Returns
        -------
        CompiledOperator
            Its `dispatch` runs the operator.

        Raises
        ------
        ValidationError
            If the descriptor breaks a rule. The message names the feature level that would accept
            it, if one does.
        BindingError
            If an initial binding breaks a rule.

        Examples
        --------
        >>> from dmlops import ActivationGeluOperatorDesc, BufferTensorDesc, Device, FeatureLevel
        >>> from dmlops import TensorDataType, ValidationError
        >>> x = BufferTensorDesc(TensorDataType.FLOAT32, (4,))
        >>> gelu = ActivationGeluOperatorDesc(input_tensor=x, output_tensor=x)
        >>> try:
        ...     Device(FeatureLevel.LEVEL_5_0).compile(gelu)
        ... except ValidationError as error:
        ...     print(error)
        ActivationGeluOperatorDesc needs DML_FEATURE_LEVEL_5_1; the device has 5_0
        """
        return _core.compile(desc, self.feature_level, initial)


def required_feature_level(desc: OperatorDesc) -> FeatureLevel:
    """Return the lowest feature level that accepts a descriptor.

    Parameters
    ----------
    desc : descriptor
        The descriptor of an operator.

    Returns
    -------
    FeatureLevel
        Every higher level accepts the descriptor, too.

    Raises
    ------
    ValidationError
        If no level accepts it.

    Examples
    --------
    >>> from dmlops import BufferTensorDesc, ElementWiseClipOperatorDesc, TensorDataType
    >>> from dmlops import required_feature_level
    >>> x = BufferTensorDesc(TensorDataType.UINT8, (1, 3, 8, 8))
    >>> desc = ElementWiseClipOperatorDesc(input_tensor=x, output_tensor=x, min=16, max=235)
    >>> required_feature_level(desc)
    FeatureLevel.LEVEL_2_1
    """
    return FeatureLevel(_core.required_feature_level(desc))


def recompile(
    desc: OperatorDesc, feature_level: FeatureLevel, initial: list[bytes | None] | None
) -> _core.CompiledOperator:
    """Recreate a pickled CompiledOperator."""
    return _core.compile(desc, feature_level, initial)
