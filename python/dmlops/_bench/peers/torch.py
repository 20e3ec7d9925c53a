"""PyTorch: operators with ``out=``, or a copy into the output and then the operator in place."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from dmlops._bench.peers.base import Peer, Way, channel_axis
from dmlops._bench.problem import Array, Problem, parameters


class Torch(Peer):
    """Eager PyTorch without gradients, on tensors that share NumPy's memory."""

    module = "torch"

    def set_up(self) -> None:
        """Set the number of threads; gradients would cost time at each call."""
        self.library.set_num_threads(self.threads)
        self.library.set_grad_enabled(False)

    def tensor(self, array: Array) -> Any:
        """Return the array as a tensor, without a copy."""
        return self.library.from_numpy(array)

    def ways(self, problem: Problem) -> Iterator[Way]:
        """Yield the statements; tensors lack negative strides, so a reversed input is flipped."""
        for way in super().ways(problem):
            if "flipped" in way.names:
                yield replace(way, statement=f"x = forward.flip(flipped); {way.statement}")
            else:
                yield way

    def names(self, problem: Problem) -> dict[str, Any]:
        """Return the input and the output, and for a reversed input the view before the flip."""
        view, flipped = problem.view.forward(problem.base.shape)
        x = self.tensor(problem.base)
        x = x[view.slices] if view.slices else x
        x = x.permute(view.axes) if view.axes else x
        x = x.expand(view.shape) if view.shape else x
        names = {"torch": self.library, "x": x, "y": self.tensor(problem.output)}
        return names | ({"forward": x, "flipped": flipped} if flipped else {})

    def clip(self, problem: Problem) -> Iterator[Way]:
        """Yield clamp into the output, and copy followed by clamp in place."""
        p, names = problem.arguments, self.names(problem)
        names |= {"lo": p["min"], "hi": p["max"]}
        if "scale" not in p:
            yield Way("torch.clamp(x, lo, hi, out=y)", names)
            yield Way("y.copy_(x); torch.clamp_(y, lo, hi)", names)
            return
        names |= {"s": p["scale"], "b": p["bias"]}
        if problem.base.dtype.kind == "f":
            bias = self.library.tensor(p["bias"], dtype=names["y"].dtype)
            yield Way("torch.mul(x, s, out=y); y.add_(b).clamp_(lo, hi)", names)
            yield Way("torch.add(b, x, alpha=s, out=y); y.clamp_(lo, hi)", names | {"b": bias})
        else:
            names["w"] = self.library.empty(problem.output.shape)
            yield Way("torch.mul(x, s, out=w); w.add_(b).clamp_(lo, hi); y.copy_(w)", names)

    def hard_sigmoid(self, problem: Problem) -> Iterator[Way]:
        """Yield hardsigmoid, whose alpha is 1/6 and beta 0.5, and copy followed by it in place."""
        names = self.names(problem)
        names["hardsigmoid"] = self.library._C._nn.hardsigmoid
        names["hardsigmoid_"] = self.library._C._nn.hardsigmoid_
        yield Way("hardsigmoid(x, out=y)", names)
        yield Way("y.copy_(x); hardsigmoid_(y)", names)

    def batch_normalization(self, problem: Problem) -> Iterator[Way]:
        """Yield the operator if the parameters vary along one axis, and the formula."""
        p, names, torch = problem.arguments, self.names(problem), self.library
        m, v, s, b = (self.tensor(array) for array in parameters(p))
        relu = "; torch.relu_(y)" if p["relu"] else ""
        axis = channel_axis(p)
        if axis is not None and s.ndim > 1:
            first, *others = (d for d in range(s.ndim) if d != axis)
            channels_second = problem.permuted((first, axis, *others))
            flat = {"m": m.flatten(), "v": v.flatten(), "s": s.flatten(), "b": b.flatten()}
            flat |= {"batch_norm": torch.ops.aten.native_batch_norm.out, "e": p["epsilon"]}
            flat |= {"m_": torch.empty(0), "v_": torch.empty(0)}
            flat |= self.names(channels_second)
            yield Way(
                "batch_norm(x, s, b, m, v, False, 0.0, e, out=y, save_mean=m_, save_invstd=v_)"
                + relu,
                flat,
            )
            yield Way(
                "torch.native_batch_norm(x, s, b, m, v, False, 0.0, e, out=(y, m_, v_))" + relu,
                flat,
            )
        names |= {"m": m, "v": v, "s": s, "b": b, "e": p["epsilon"]}
        names |= {"f": torch.empty_like(m), "o": torch.empty_like(m)}
        factors = "torch.add(v, e, out=f); f.rsqrt_().mul_(s); "
        yield Way(factors + "torch.sub(x, m, out=y); torch.addcmul(b, y, f, out=y)" + relu, names)
        yield Way(
            factors
            + "torch.addcmul(b, m, f, value=-1, out=o); torch.addcmul(o, x, f, out=y)"
            + relu,
            names,
        )

    def log_softmax(self, problem: Problem) -> Iterator[Way]:
        """Yield the operator for one axis; else logsumexp, and the operator on one merged axis."""
        axes, names = problem.arguments["axes"], self.names(problem)
        if len(axes) == 1:
            # The operator copies a dense tensor unless its axes are in memory order.
            orders = [problem, problem.in_memory_order()] if problem.output_axes else [problem]
            for posed in orders:
                names = self.names(posed) | {"axis": posed.arguments["axes"][0]}
                yield Way("torch.log_softmax(x, axis, out=y)", names)
                yield Way("y.copy_(x); torch.log_softmax(y, axis, out=y)", names)
            return
        x, y = names["x"], names["y"]
        kept = [d for d in range(x.ndim) if d not in axes]
        shape = [1 if d in axes else x.shape[d] for d in range(x.ndim)]
        names |= {"axes": axes, "l": self.library.empty(shape, dtype=x.dtype)}
        yield Way("torch.logsumexp(x, axes, True, out=l); torch.sub(x, l, out=y)", names)
        merged = math.prod(x.shape[d] for d in axes)
        order = (*kept, *axes)
        moved = x.permute(order).contiguous()
        names |= {"moved": moved, "x_": x.permute(order), "y_": y.permute(order)}
        names |= {"flat": moved.view(-1, merged)}
        yield Way("moved.copy_(x_); torch.log_softmax(flat, 1, out=flat); y_.copy_(moved)", names)
