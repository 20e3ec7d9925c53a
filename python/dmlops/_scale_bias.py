"""DML_SCALE_BIAS: the scale and bias that clip applies to its input."""

from __future__ import annotations

from dataclasses import dataclass

from dmlops._tensor_desc import Descriptor


@dataclass(frozen=True, eq=False, repr=False)
class ScaleBias(Descriptor):
    """A scale and a bias: ``x * scale + bias``, rounded once.

    Parameters
    ----------
    scale : float, default 1.0
        The factor, a float32.
    bias : float, default 0.0
        The summand, a float32.

    Notes
    -----
    DirectML's DML_SCALE_BIAS.

    Examples
    --------
    >>> from dmlops import ScaleBias
    >>> ScaleBias(scale=2.0, bias=-1.0)
    ScaleBias(scale=2.0, bias=-1.0)
    """

    scale: float = 1.0
    bias: float = 0.0
