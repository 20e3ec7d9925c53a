"""Some of the channels of an image, in order or flipped: short runs at a common step."""

import numpy as np
import pytest

import dmlops

pytestmark = pytest.mark.usefixtures("isa")


@pytest.mark.parametrize("dtype", ["uint8", "int16", "float16", "float32", "int64"])
@pytest.mark.parametrize("step", [1, -1, 2])
def test_channels(dtype: str, step: int) -> None:
    rng = np.random.default_rng(1)
    for width in (1, 2, 5, 16, 17, 18, 40, 700):
        for channels in range(1, 9):
            image = (rng.random((2, width, channels)) * 100).astype(dtype)
            for kept in range(1, channels + 1):
                x = image[:, ::step, channels - kept :]
                expected = np.clip(x, 10, 60)
                assert dmlops.clip(x, 10, 60, out=np.empty(x.shape, dtype)).tobytes() == (
                    expected.tobytes()
                )
