"""The demo itself, from the photographs and digits to the table and the picture."""

from __future__ import annotations

from pathlib import Path

from dmlops._cli import RefusedError, progress
from dmlops._demo import data, picture, steps, table


def run(output: Path) -> None:
    """Compute, write the picture, print the table; fail if a result is less accurate than promised.

    Progress goes to standard error, results go to standard output.
    """
    progress("Loading the photographs, fitting a classifier to the digits ...")
    digits = data.digits()
    results = []
    for step in all_steps(digits):
        progress(f"Running {step.operator} ({step.dtype}) and NumPy ...")
        results.append(steps.measure(step))
    progress("Drawing the picture ...")
    picture.write(output, results, digits)

    print(table.render(results, digits))
    print(f"\nPicture: {output}")
    inaccurate = [result.step.title for result in results if not result.accurate]
    if digits.difference(results[-1].step.output) > data.TOLERANCE:
        inaccurate.append("digits against the classifier's own log-probabilities")
    if inaccurate:
        raise RefusedError(f"less accurate than promised: {', '.join(inaccurate)}")


def all_steps(digits: data.Digits) -> list[steps.Step]:
    """Return the steps in the order in which the table and the picture show them."""
    china, flower = data.photographs()
    return [
        steps.normalization(flower, "float32"),
        steps.normalization(flower, "float16"),
        steps.tone_curve(china),
        steps.contrast_stretch(china[data.HAZE]),
        steps.probabilities(digits.logits),
        steps.log_probabilities(digits.logits),
    ]
