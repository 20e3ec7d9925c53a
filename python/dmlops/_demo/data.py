"""The demo's input: photographs and handwritten digits from scikit-learn's own files."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.datasets import load_digits, load_sample_image
from sklearn.linear_model import LogisticRegression
from threadpoolctl import threadpool_limits  # comes with scikit-learn

Array = npt.NDArray[Any]

# The section of china.jpg with an island, a bridge and boats in the haze.
HAZE = np.s_[158:288, 350:545]

TRAINING_DIGITS = 1200

# The allowed difference between log-probabilities of logits in float64 and in float32.
TOLERANCE = 1e-5


@dataclass(frozen=True)
class Digits:
    """The test set of digits, and the classifier's results for it."""

    images: Array  # count x 8 x 8
    labels: Array  # true class of each digit
    logits: Array  # count x 10, float32: the input of log_softmax
    log_probabilities: Array  # count x 10, float64: the classifier's own result

    def difference(self, log_probabilities: Array) -> float:
        """Return the largest difference from the classifier's own log-probabilities."""
        return float(np.abs(log_probabilities - self.log_probabilities).max())


def photographs() -> tuple[Array, Array]:
    """Return the temple and the flower: height x width x 3, uint8, read-only."""
    return load_sample_image("china.jpg"), load_sample_image("flower.jpg")


def digits() -> Digits:
    """Fit a multinomial logistic regression to two thirds of the digits; return the test set."""
    bunch = load_digits()
    pixels = bunch.data / 16  # 0 to 1
    fitted = LogisticRegression(max_iter=1000)
    with threadpool_limits(1):  # synchronizing threads costs more than these small products
        fitted.fit(pixels[:TRAINING_DIGITS], bunch.target[:TRAINING_DIGITS])
    unseen = pixels[TRAINING_DIGITS:]
    return Digits(
        images=bunch.images[TRAINING_DIGITS:],
        labels=bunch.target[TRAINING_DIGITS:],
        logits=fitted.decision_function(unseen).astype(np.float32),
        log_probabilities=fitted.predict_log_proba(unseen),
    )
