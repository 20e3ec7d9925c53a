"""The functions on pandas.Series and on xarray's objects, whose labels the result keeps."""

from __future__ import annotations

from typing import Any

import numpy as np

from dmlops import _core
from dmlops._foreign import is_instance
from dmlops._table import ROWS


def is_labeled(value: object) -> bool:
    """Return True if a value is an object of pandas or xarray."""
    return is_instance(value, "pandas", "Series") or any(
        is_instance(value, "xarray", name) for name in ("DataArray", "Dataset", "Variable")
    )


def call(name: str, given: Any, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
    """Return the function's result for a labeled input, with the input's labels."""
    function = getattr(_core, name)
    if len(ROWS[name].outputs) > 1:
        raise TypeError(
            f"{name}: input is a {type(given).__name__}, and the results differ in shape; call it "
            f"on the array alone, dmlops.{name}(input.values, ...)"
        )
    if keywords.get("out") is not None:
        raise TypeError(
            f"{name}: out cannot be given with a {type(given).__name__}, whose labels the result "
            f"keeps; call it on the array alone, dmlops.{name}(input.values, ..., out=out)"
        )
    if is_instance(given, "xarray", "Dataset"):
        return given.map(lambda array: function(array, *arguments, **keywords), keep_attrs=True)
    if not is_instance(given, "pandas", "Series"):
        result = function(given.data, *arguments, **keywords)
        return given.copy(deep=False, data=result)
    if not isinstance(given.dtype, np.dtype):
        raise TypeError(
            f"{name}: input has pandas' dtype {given.dtype}, which is not NumPy's; convert it with "
            "input.astype(numpy.float32)"
        )
    result = function(given.to_numpy(), *arguments, **keywords)
    # The constructor and the copy of the attributes that pandas documents for subclasses.
    return given._constructor(result, index=given.index, copy=False).__finalize__(given)
