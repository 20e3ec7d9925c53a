"""PyTorch: operators with ``out=``, or a copy into the output and then the operator in place."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from timeit import timeit
from typing import Any

import numpy as np

from dmlops._bench.peers.base import Candidate, CannotDo, Peer, channel_axis
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

    def candidates(self, problem: Problem) -> Iterator[Candidate]:
        """Yield the statements; tensors lack negative strides, so a reversed input is flipped."""
        for candidate in super().candidates(problem):
            statement = candidate.statement
            if "flipped" in candidate.names:
                statement = f"x = forward.flip(flipped); {statement}"
            if candidate.result and has_other_strides(statement, candidate.names):
                statement = f"{statement}; y.copy_(result[0])"
            yield replace(candidate, statement=statement)

    def names(self, problem: Problem) -> dict[str, Any]:
        """Return the input and the output, and for a reversed input the view before the flip."""
        view, flipped = problem.view.forward(problem.base.shape)
        x = self.tensor(problem.base)
        x = x[view.slices] if view.slices else x
        x = x.permute(view.axes) if view.axes else x
        x = x.expand(view.shape) if view.shape else x
        names = {"torch": self.library, "x": x, "y": self.tensor(problem.output)}
        return names | ({"forward": x, "flipped": flipped} if flipped else {})

    def clip(self, problem: Problem) -> Iterator[Candidate]:
        """Yield clamp into the output, and copy followed by clamp in place."""
        p, names = problem.arguments, self.names(problem)
        names |= {"lo": p["min"], "hi": p["max"]}
        if "scale" not in p:
            yield Candidate("torch.clamp(x, lo, hi, out=y)", names)
            yield Candidate("y.copy_(x); torch.clamp_(y, lo, hi)", names)
            return
        names |= {"s": p["scale"], "b": p["bias"]}
        if problem.base.dtype.kind == "f":
            bias = self.library.tensor(p["bias"], dtype=names["y"].dtype)
            yield Candidate("torch.mul(x, s, out=y); y.add_(b).clamp_(lo, hi)", names)
            yield Candidate(
                "torch.add(b, x, alpha=s, out=y); y.clamp_(lo, hi)", names | {"b": bias}
            )
        else:
            names["w"] = self.library.empty(problem.output.shape)
            yield Candidate("torch.mul(x, s, out=w); w.add_(b).clamp_(lo, hi); y.copy_(w)", names)

    def hard_sigmoid(self, problem: Problem) -> Iterator[Candidate]:
        """Yield hardsigmoid, whose alpha is 1/6 and beta 0.5, and copy followed by it in place."""
        names = self.names(problem)
        names["hardsigmoid"] = self.library._C._nn.hardsigmoid
        names["hardsigmoid_"] = self.library._C._nn.hardsigmoid_
        yield Candidate("hardsigmoid(x, out=y)", names)
        yield Candidate("y.copy_(x); hardsigmoid_(y)", names)

    def batch_normalization(self, problem: Problem) -> Iterator[Candidate]:
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
            yield Candidate(
                "batch_norm(x, s, b, m, v, False, 0.0, e, out=y, save_mean=m_, save_invstd=v_)"
                + relu,
                flat,
            )
            yield Candidate(
                "torch.native_batch_norm(x, s, b, m, v, False, 0.0, e, out=(y, m_, v_))" + relu,
                flat,
            )
        names |= {"m": m, "v": v, "s": s, "b": b, "e": p["epsilon"]}
        names |= {"f": torch.empty_like(m), "o": torch.empty_like(m)}
        factors = "torch.add(v, e, out=f); f.rsqrt_().mul_(s); "
        yield Candidate(
            factors + "torch.sub(x, m, out=y); torch.addcmul(b, y, f, out=y)" + relu, names
        )
        yield Candidate(
            factors
            + "torch.addcmul(b, m, f, value=-1, out=o); torch.addcmul(o, x, f, out=y)"
            + relu,
            names,
        )

    def softmax(self, problem: Problem) -> Iterator[Candidate]:
        """Yield the operator."""
        (axis,) = problem.arguments["axes"]
        yield Candidate("torch.softmax(x, axis, out=y)", self.names(problem) | {"axis": axis})

    def hardmax(self, problem: Problem) -> Iterator[Candidate]:
        """Yield argmax and scatter."""
        (axis,) = problem.arguments["axes"]
        statement = "y.zero_().scatter_(axis, torch.argmax(x, axis, keepdim=True), 1)"
        yield Candidate(statement, self.names(problem) | {"axis": axis})

    def mean_variance_normalization(self, problem: Problem) -> Iterator[Candidate]:
        """Yield the operator on the last axis, and for RMS normalization also its formula."""
        (axis,), axes = problem.arguments["axes"], range(problem.input.ndim)
        problem = problem.permuted((*(d for d in axes if d != axis), axis))
        p, names, torch = problem.arguments, self.names(problem), self.library
        names |= {"s": self.tensor(p["scale"]).flatten(), "b": self.tensor(p["bias"]).flatten()}
        names |= {"e": p["epsilon"], "shape": problem.input.shape[-1:]}
        if p["use_mean"]:
            names |= {"layer_norm": torch.ops.aten.native_layer_norm.out}
            names |= {"m_": torch.empty(0), "r_": torch.empty(0)}
            if problem.base.dtype == np.float16:
                names |= {"m_": torch.empty(0).half(), "r_": torch.empty(0).half()}
            statement = "layer_norm(x, shape, s, b, e, out0=y, out1=m_, out2=r_)"
            yield Candidate(statement, names)
            yield Candidate("y.copy_(torch.layer_norm(x, shape, s, b, e))", names)
            return
        yield Candidate("torch.add(torch.rms_norm(x, shape, s, e), b, out=y)", names)
        yield Candidate(
            "r = torch.rsqrt(x.square().mean(-1, keepdim=True).add_(e)); "
            "torch.mul(x, r, out=y); torch.addcmul(b, y, s, out=y)",
            names,
        )

    def batch_normalization_training(self, problem: Problem) -> Iterator[Candidate]:
        """Yield the operator."""
        problem = problem.permuted(permutation_of_channels(problem))
        p, names, torch = problem.arguments, self.names(problem), self.library
        names |= {"s": self.tensor(p["scale"]).flatten(), "b": self.tensor(p["bias"]).flatten()}
        names |= {"e": p["epsilon"], "m_": torch.empty(0), "v_": torch.empty(0)}
        if problem.base.dtype == np.float16:
            names |= {"m_": torch.empty(0).half(), "v_": torch.empty(0).half()}
        statement = "torch.native_batch_norm(x, s, b, None, None, True, 0.1, e, out=(y, m_, v_))"
        yield Candidate(statement, names)
        # With `out`, PyTorch 2.13 is wrong for many strides.
        statement = "y.copy_(torch.native_batch_norm(x, s, b, None, None, True, 0.1, e)[0])"
        yield Candidate(statement, names)

    def batch_normalization_grad(self, problem: Problem) -> Iterator[Candidate]:
        """Yield the operator's gradient with given statistics."""
        yield from self.normalization_gradient(problem, training=False)

    def batch_normalization_training_grad(self, problem: Problem) -> Iterator[Candidate]:
        """Yield the operator's gradient."""
        yield from self.normalization_gradient(problem, training=True)

    def normalization_gradient(self, problem: Problem, *, training: bool) -> Iterator[Candidate]:
        """Yield the gradient of batch normalization, which returns new tensors."""
        order = permutation_of_channels(problem)
        inverse = tuple(map(int, np.argsort(order)))
        problem = problem.permuted(order)
        p, names, torch = problem.arguments, self.names(problem), self.library
        arrays = {"g": "gradient", "s": "scale", "m": "mean", "v": "variance"}
        names |= {name: self.tensor(p[argument]) for name, argument in arrays.items()}
        names |= {name: names[name].flatten() for name in "smv"}
        names |= {"i": torch.rsqrt(names["v"].float() + p["epsilon"]).to(names["v"].dtype)}
        names |= {"e": p["epsilon"], "all": [True] * 3, "training": training, "result": [None]}
        names |= {"backward": torch.ops.aten.native_batch_norm_backward}
        yield Candidate(
            "result[0] = backward(g, x, s, m, v, m, i, training, e, all)[0]",
            names,
            lambda: np.asarray(names["result"][0]).transpose(inverse),
        )

    def parameterized_relu(self, problem: Problem) -> Iterator[Candidate]:
        """Yield the formula; the operator has one slope, or one per channel."""
        names = self.names(problem) | {"s": self.tensor(problem.arguments["slope"])}
        yield Candidate("torch.mul(x, s, out=y); torch.where(x < 0, y, x, out=y)", names)
        names["kernel"], names["result"] = self.library.ops.aten._prelu_kernel, [None]
        yield Candidate("result[0] = kernel(x, s)", names, lambda: np.asarray(names["result"][0]))

    def relu_grad(self, problem: Problem) -> Iterator[Candidate]:
        """Yield the gradient of relu."""
        names = self.names(problem) | {"g": self.tensor(problem.arguments["gradient"])}
        names["backward"] = self.library.ops.aten.threshold_backward.grad_input
        yield Candidate("backward(g, x, 0, grad_input=y)", names)

    def clip_grad(self, problem: Problem) -> Iterator[Candidate]:
        """Yield the gradient of hardtanh."""
        p = problem.arguments
        names = self.names(problem) | {"g": self.tensor(p["gradient"])}
        names |= {"lo": p["min"], "hi": p["max"]}
        names["backward"] = self.library.ops.aten.hardtanh_backward.grad_input
        yield Candidate("backward(g, x, lo, hi, grad_input=y)", names)

    def swish(self, problem: Problem) -> Iterator[Candidate]:
        """Yield silu."""
        yield Candidate(
            "silu(x, out=y)", self.names(problem) | {"silu": self.library.ops.aten.silu.out}
        )

    def hard_swish(self, problem: Problem) -> Iterator[Candidate]:
        """Yield hardswish, whose alpha is 1/6 and beta 0.5."""
        names = self.names(problem) | {"hardswish": self.library.ops.aten.hardswish.out}
        yield Candidate("hardswish(x, out=y)", names)

    def log_softmax(self, problem: Problem) -> Iterator[Candidate]:
        """Yield the operator for one axis; else logsumexp, and the operator on one merged axis."""
        axes, names = problem.arguments["axes"], self.names(problem)
        if len(axes) == 1:
            # The operator copies a dense tensor unless its axes are in memory order.
            orders = [problem, problem.in_memory_order()] if problem.output_axes else [problem]
            for posed in orders:
                names = self.names(posed) | {"axis": posed.arguments["axes"][0]}
                yield Candidate("torch.log_softmax(x, axis, out=y)", names)
                yield Candidate("y.copy_(x); torch.log_softmax(y, axis, out=y)", names)
            return
        x, y = names["x"], names["y"]
        kept = [d for d in range(x.ndim) if d not in axes]
        shape = [1 if d in axes else x.shape[d] for d in range(x.ndim)]
        names |= {"axes": axes, "l": self.library.empty(shape, dtype=x.dtype)}
        yield Candidate("torch.logsumexp(x, axes, True, out=l); torch.sub(x, l, out=y)", names)
        merged = math.prod(x.shape[d] for d in axes)
        order = (*kept, *axes)
        moved = x.permute(order).contiguous()
        names |= {"moved": moved, "x_": x.permute(order), "y_": y.permute(order)}
        names |= {"flat": moved.view(-1, merged)}
        yield Candidate(
            "moved.copy_(x_); torch.log_softmax(flat, 1, out=flat); y_.copy_(moved)", names
        )


def has_other_strides(statement: str, names: dict[str, Any]) -> bool:
    """Return whether the new tensor that a statement makes differs from the output in strides."""
    timeit(statement, number=1, globals=names)
    y, result = names["y"], names["result"][0]
    strides = zip(y.shape, y.stride(), result.stride(), strict=True)
    return any(size > 1 and stride != other for size, stride, other in strides)


def permutation_of_channels(problem: Problem) -> tuple[int, ...]:
    """Return the axes with that of the channels, or another of size 1, in the second place."""
    scale, sizes = problem.arguments["scale"], problem.input.shape
    axis = channel_axis(problem.arguments)
    if axis is None:
        axis = next((d for d, size in enumerate(sizes) if size == 1 and scale.ndim > 1), None)
    if axis is None:
        raise CannotDo("takes no input without an axis of channels")
    first, *others = (d for d in range(len(sizes)) if d != axis)
    return first, axis, *others
