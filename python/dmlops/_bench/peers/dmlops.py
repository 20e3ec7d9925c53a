"""dmlops itself, called as documented."""

from __future__ import annotations

from collections.abc import Iterator

import dmlops
from dmlops._bench.peers.base import Peer, Way
from dmlops._bench.problem import Problem, parameters


class Dmlops(Peer):
    """The functions with ``out=``."""

    module = "dmlops"

    def set_up(self) -> None:
        """Set the number of threads."""
        dmlops.set_num_threads(self.threads)

    def clip(self, problem: Problem) -> Iterator[Way]:
        """Yield clip, with scale and bias if the problem has them."""
        p = problem.arguments
        names = {"clip": dmlops.clip, "x": problem.input, "y": problem.output}
        names |= {"lo": p["min"], "hi": p["max"]}
        if "scale" in p:
            names["sb"] = dmlops.ScaleBias(p["scale"], p["bias"])
            yield Way("clip(x, lo, hi, scale_bias=sb, out=y)", names)
        else:
            yield Way("clip(x, lo, hi, out=y)", names)

    def hard_sigmoid(self, problem: Problem) -> Iterator[Way]:
        """Yield hard_sigmoid."""
        names = {"hard_sigmoid": dmlops.hard_sigmoid, "x": problem.input, "y": problem.output}
        names |= {"a": problem.arguments["alpha"], "b": problem.arguments["beta"]}
        yield Way("hard_sigmoid(x, a, b, out=y)", names)

    def batch_normalization(self, problem: Problem) -> Iterator[Way]:
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
        yield Way(f"batch_normalization(x, m, v, s, b, e, {fused}out=y)", names)

    def log_softmax(self, problem: Problem) -> Iterator[Way]:
        """Yield log_softmax."""
        axes = problem.arguments["axes"]
        names = {"log_softmax": dmlops.log_softmax, "x": problem.input, "y": problem.output}
        names["axes"] = axes[0] if len(axes) == 1 else axes
        yield Way("log_softmax(x, axes, out=y)", names)
