"""PyTorch's tensors: the negative bit, and the conversions that error messages show."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import dmlops as _dmlops

torch = pytest.importorskip("torch")

dmlops: Any = _dmlops  # its types are those of NumPy arrays


def negated() -> Any:
    """Return a tensor of 2, -1 whose memory has -2, 1."""
    tensor = torch.tensor([1 - 2j, 3 + 1j]).conj().imag
    assert tensor.is_neg()
    return tensor


def test_the_negative_bit_is_refused() -> None:
    with pytest.raises(BufferError, match=r"relu: input has .*negative bit.* input\.resolve_neg"):
        dmlops.relu(negated())
    assert dmlops.relu(negated().resolve_neg()).tolist() == [2, 0]
    x = torch.tensor([1.0, -1.0])
    with pytest.raises(BufferError, match=r"relu_grad: input_gradient has .*negative bit"):
        dmlops.relu_grad(x, negated())
    with pytest.raises(BufferError, match=r"relu: out has .*torch\.empty_like\(out\)"):
        dmlops.relu(x, out=negated())
    tensor = dmlops.BufferTensorDesc.from_array(np.zeros(2, np.float32))
    desc = dmlops.ActivationReluOperatorDesc(input_tensor=tensor, output_tensor=tensor)
    with pytest.raises(BufferError, match=r"input_tensor has .*negative bit"):
        dmlops.Device().compile(desc).dispatch([negated()], [np.zeros(2, np.float32)])
    with pytest.raises(BufferError, match=r"torch\.empty_like\(output_tensor\)"):
        dmlops.Device().compile(desc).dispatch([np.zeros(2, np.float32)], [negated()])


@pytest.mark.filterwarnings("ignore:Accessing the data pointer of FakeTensor")
def test_tensors_without_memory_are_refused() -> None:
    fake_tensor = pytest.importorskip("torch._subclasses.fake_tensor")
    with fake_tensor.FakeTensorMode():
        fake = torch.ones(3)
    for tensor in (fake, torch._efficientzerotensor(3)):
        with pytest.raises(BufferError, match=r"relu: input cannot be shared .*pointer is null"):
            dmlops.relu(tensor)
    assert dmlops.relu(torch.ones(0)).tolist() == []


def test_bounds_of_several_elements() -> None:
    words = r"clip: min must be a number or None, not Tensor; for bounds .*, use numpy\.clip$"
    with pytest.raises(TypeError, match=words):
        dmlops.clip(torch.ones(3), torch.ones(3))
    with pytest.raises(TypeError, match=r"elu: alpha must be a number, not Tensor$"):
        dmlops.elu(torch.ones(3), torch.ones(3))
    assert dmlops.clip(torch.ones(3), torch.tensor(2)).tolist() == [2, 2, 2]


def test_the_advice_for_bindings_works() -> None:
    tensor = dmlops.BufferTensorDesc.from_array(np.zeros((2, 2), np.float16))
    desc = dmlops.ActivationReluOperatorDesc(input_tensor=tensor, output_tensor=tensor)
    compiled = dmlops.Device().compile(desc)
    x = torch.tensor([[1.0, -2.0], [-3.0, 4.0]])
    result = np.empty((2, 2), np.float16)
    words = r"convert it with (array\.\S+), or, to bind its bytes as they are, (numpy\..*)$"
    with pytest.raises(dmlops.BindingError, match=words) as caught:
        compiled.dispatch([x], [result])
    fix = re.search(words, str(caught.value))
    assert fix is not None
    compiled.dispatch([eval(fix[1], {"torch": torch, "array": x})], [result])
    assert result.tolist() == [[1, 0], [0, 4]]
    same = torch.from_numpy(np.array([[1, -2], [-3, 4]], np.float16).view(np.int16))
    out = torch.zeros(2, 2, dtype=torch.int16)
    scope = {"numpy": np}
    compiled.dispatch(
        [eval(fix[2], scope | {"array": same})], [eval(fix[2], scope | {"array": out})]
    )
    assert out.numpy().view(np.float16).tolist() == [[1, 0], [0, 4]]
    with pytest.raises(dmlops.BindingError, match=r"; pass an array of float16, or, .* numpy\.as"):
        compiled.dispatch([result], [x])


@pytest.mark.parametrize("dtype", ["int8", "int16", "int32", "float16", "float32"])
def test_the_advice_for_another_dtype_works(dtype: str) -> None:
    x = torch.tensor([-2, 3]).to(getattr(torch, dtype))
    slope = torch.tensor([2, 2]).to(torch.float16 if dtype == "float32" else torch.float32)
    with pytest.raises(TypeError, match="they must be the same; convert it with") as caught:
        dmlops.parameterized_relu(x, slope)
    fix = re.search(r"; convert it with (.*)$", str(caught.value))
    assert fix is not None
    converted = eval(fix[1], {"torch": torch, "slope": slope})
    assert dmlops.parameterized_relu(x, converted).tolist() == [-4, 3]


def test_autograd_refuses_values_that_were_overwritten() -> None:
    x = torch.tensor([3.0, 5.0], requires_grad=True)
    factor = torch.tensor([-1.0, 2.0])
    product = x * factor
    assert dmlops.leaky_relu(factor, 0.5, out=factor) is factor
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        product.sum().backward()
    with torch.inference_mode():
        out = torch.empty(2)  # has no version
    assert dmlops.relu(factor, out=out).tolist() == [0, 2]


def test_outputs_count_as_written() -> None:
    one = torch.ones(1, 2)
    outs = tuple(torch.empty(size, 2) for size in (3, 1, 1))
    dmlops.batch_normalization_training(torch.ones(3, 2), one, one, out=outs)
    tensor = dmlops.BufferTensorDesc.from_array(np.zeros((1, 2), np.float32))
    desc = dmlops.ActivationReluOperatorDesc(input_tensor=tensor, output_tensor=tensor)
    relu = dmlops.Device().compile(desc)
    array, memory = torch.empty(1, 2), torch.empty(1, 2)
    relu.dispatch([one], [array])
    relu.dispatch([one], [dmlops.BufferBinding(memory)])
    assert [tensor._version for tensor in (*outs, array, memory, one)] == [1, 1, 1, 1, 1, 0]


def test_traced_values_are_refused() -> None:
    fx = pytest.importorskip("torch.fx")

    class Module(torch.nn.Module):  # type: ignore[misc, name-defined]
        def forward(self, x: Any) -> Any:
            return dmlops.relu(x)

    with pytest.raises(TypeError, match=r"relu: input is a torch\.fx\.Proxy"):
        fx.symbolic_trace(Module())


def test_a_class_is_no_tensor() -> None:
    with pytest.raises(TypeError, match=r"relu: input must be a numpy\.ndarray"):
        dmlops.relu(torch.Tensor)
    with pytest.raises(TypeError, match=r"must be a numpy\.ndarray"):
        dmlops.BufferTensorDesc.from_array(torch.Tensor)
