"""dmlops itself, called as documented."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

import dmlops
from dmlops._bench.peers.base import Candidate, Peer
from dmlops._bench.problem import Problem, parameters

GRADIENT = "gradient, mean, variance, scale, epsilon, out=(y, mean_, variance_)"
CALLS = {
    "log_softmax": "axes, out=y",
    "softmax": "axes, out=y",
    "hardmax": "axes, out=y",
    "mean_variance_normalization": ("scale, bias, axes, use_mean=use_mean, epsilon=epsilon, out=y"),
    "batch_normalization_training": ("scale, bias, epsilon=epsilon, out=(y, mean_, variance_)"),
    "batch_normalization_grad": GRADIENT,
    "batch_normalization_training_grad": GRADIENT,
    "parameterized_relu": "slope, out=y",
    "relu_grad": "gradient, out=y",
    "clip_grad": "gradient, min, max, out=y",
    "swish": "out=y",
    "hard_swish": "alpha, beta, out=y",
}
# The operators with three outputs, and an argument of the shape of the smaller ones.
STATISTICS = {
    "batch_normalization_training": "scale",
    "batch_normalization_grad": "mean",
    "batch_normalization_training_grad": "mean",
}


class Dmlops(Peer):
    """The functions with ``out=``."""

    module = "dmlops"

    def set_up(self) -> None:
        """Set the number of threads."""
        dmlops.set_num_threads(self.threads)

    def clip(self, problem: Problem) -> Iterator[Candidate]:
        """Yield clip, with scale and bias if the problem has them."""
        p = problem.arguments
        names = {"clip": dmlops.clip, "x": problem.input, "y": problem.output}
        names |= {"lo": p["min"], "hi": p["max"]}
        if "scale" in p:
            names["sb"] = dmlops.ScaleBias(p["scale"], p["bias"])
            yield Candidate("clip(x, lo, hi, scale_bias=sb, out=y)", names)
        else:
            yield Candidate("clip(x, lo, hi, out=y)", names)

    def hard_sigmoid(self, problem: Problem) -> Iterator[Candidate]:
        """Yield hard_sigmoid."""
        names = {"hard_sigmoid": dmlops.hard_sigmoid, "x": problem.input, "y": problem.output}
        names |= {"a": problem.arguments["alpha"], "b": problem.arguments["beta"]}
        yield Candidate("hard_sigmoid(x, a, b, out=y)", names)

    def batch_normalization(self, problem: Problem) -> Iterator[Candidate]:
        """Yield batch_normalization, with the activation fused."""
        p = problem.arguments
        mean, variance, scale, bias = parameters(p)
        names = {"batch_normalization": dmlops.batch_normalization, "x": problem.input}
        names |= {"m": mean, "v": variance, "s": scale, "b": bias, "e": p["epsilon"]}
        names |= {"y": problem.output}
        fused = ""
        if p["relu"]:
            names["relu"] = dmlops.ActivationReluOperatorDesc()
            fused = "fused_activation=relu, "
        yield Candidate(f"batch_normalization(x, m, v, s, b, e, {fused}out=y)", names)

    def candidates(self, problem: Problem) -> Iterator[Candidate]:
        """Yield the call, by the methods above or with the arguments of CALLS."""
        if problem.operator not in CALLS:
            yield from super().candidates(problem)
            return
        p = problem.arguments
        names = {"f": getattr(dmlops, problem.operator), "x": problem.input, "y": problem.output}
        names |= p
        if len(p.get("axes", ())) == 1:
            names["axes"] = p["axes"][0]
        if problem.operator in STATISTICS:
            like = p[STATISTICS[problem.operator]]
            names |= {"mean_": np.empty_like(like), "variance_": np.empty_like(like)}
        yield Candidate(f"f(x, {CALLS[problem.operator]})", names)
