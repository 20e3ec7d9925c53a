"""Writes pictures that Matplotlib draws in memory: no display, window or global figure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure

from dmlops._cli import CommandError


def save(
    path: Path, draw: Callable[[], Figure], style: Mapping[Any, Any] = {}, **options: Any
) -> None:
    """Write the figure that `draw` returns in the format that the path's ending names.

    `style` has Matplotlib's settings; the user's do not change the picture. `options` are those of
    ``Figure.savefig``.
    """
    try:
        with mpl.rc_context():
            mpl.rcdefaults()
            mpl.rcParams.update(style)
            draw().savefig(path, **options)
    except OSError as error:
        raise CommandError(f"the picture cannot be written: {error}") from error
