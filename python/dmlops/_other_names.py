"""The error for an attribute that dmlops lacks: names of operators in other libraries."""

from dmlops._table import OPERATORS

# In small letters without underscores.
_OTHERS = {
    "batchnorm": "batch_normalization",
    "clamp": "clip",
    "groupnorm": "mean_variance_normalization",
    "hardshrink": "shrink",
    "hardtanh": "clip",
    "instancenorm": "mean_variance_normalization",
    "instancenormalization": "mean_variance_normalization",
    "layernorm": "mean_variance_normalization",
    "layernormalization": "mean_variance_normalization",
    "prelu": "parameterized_relu",
    "relu6": "clip",
    "rmsnorm": "mean_variance_normalization",
    "selu": "scaled_elu",
    "silu": "swish",
    "softshrink": "shrink",
    "threshold": "thresholded_relu",
}
_FUNCTIONS = {row.function.replace("_", ""): row.function for row in OPERATORS}


def no_attribute(name: str) -> AttributeError:
    """Return the error for a name, with the function that has its meaning, if there is one."""
    key = name.replace("_", "").lower()
    function = _OTHERS.get(key) or _FUNCTIONS.get(key)
    if function is None:
        return AttributeError(f"module 'dmlops' has no attribute {name!r}")
    # The name without the module: Python suggests no similar name of its own.
    return AttributeError(f"dmlops has no {name!r}; use {function}", name=name)
