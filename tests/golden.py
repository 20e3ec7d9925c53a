"""The golden digests: the bits of every operator's results on inputs from integer arithmetic.

python tests/golden.py            compare this machine's results with golden.txt
python tests/golden.py --write    rewrite golden.txt, and print the changes

The same file is read by the C++ tests, for other compilers, optimization levels and processors.
"""

from __future__ import annotations

import math
import sys
from collections import Counter
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import samples
from descriptors import ACTIVATIONS, FURTHER
from reference import FLOATS

import dmlops

Array = npt.NDArray[Any]

FILE = Path(__file__).with_name("golden.txt")
HEADER = """\
# The bits of every operator's results. One line for each case: the operator, the data type, the
# sizes, the recipe of the input, the parameters, and the digest of the result's bits.
#
# Written by `python tests/golden.py --write`, which describes the recipes and the digest. Whoever
# changes a digest changes what users get: it has to be said in the changelog.
"""
PARAMETERS_OF_NORMALIZATION = ("mean", "variance", "scale", "bias")


@dataclass(frozen=True)
class Case:
    """A line of the file.

    The recipe is one of those of `values`.
    Parameters: those of the function by their names, `scale` and `scale_bias` of ScaleBias; of
    batch normalization the axes along which its tensors vary, and the activation that is `fused`.
    """

    operator: str
    dtype: str
    shape: tuple[int, ...]
    recipe: str
    parameters: tuple[tuple[str, str], ...]
    digest: str = ""

    @classmethod
    def parse(cls, line: str) -> Case:
        """Return the case that a line describes."""
        operator, dtype, shape, recipe, parameters, digest = line.split()
        pairs = [] if parameters == "-" else [p.split("=") for p in parameters.split(",")]
        sizes = tuple(int(size) for size in shape.split("x"))
        return cls(operator, dtype, sizes, recipe, tuple((k, v) for k, v in pairs), digest)

    def __str__(self) -> str:
        sizes = "x".join(map(str, self.shape))
        parameters = ",".join(f"{name}={value}" for name, value in self.parameters) or "-"
        return " ".join((self.operator, self.dtype, sizes, self.recipe, parameters, self.digest))

    @property
    def axes(self) -> tuple[int, ...]:
        """The axes of log_softmax, or those along which the normalization's tensors vary."""
        text = dict(self.parameters)["axes"]
        return tuple(int(axis) for axis in text.split("+") if axis)

    @property
    def numbers(self) -> dict[str, Any]:
        """The numbers among the parameters, integers where the elements are."""
        kind = float if self.dtype in FLOATS or self.operator != "clip" else int
        names = {"scale": float, "scale_bias": float}
        return {
            name: names.get(name, kind)(value)
            for name, value in self.parameters
            if name not in ("axes", "fused")
        }

    def inputs(self) -> list[Array]:
        """Return the operator's tensors, dense."""
        found = [values(self.recipe, self.shape, self.dtype)]
        if self.operator == "batch_normalization":
            seed = int(self.recipe.split(":")[1])
            sizes = tuple(size if axis in self.axes else 1 for axis, size in enumerate(self.shape))
            for i, parameter in enumerate(PARAMETERS_OF_NORMALIZATION, 1):
                tensor = values(f"near:{seed + i}:-3:3", sizes, self.dtype)
                found.append(np.abs(tensor) if parameter == "variance" else tensor)
        return found

    def __call__(self, *inputs: Array, out: Array | None = None) -> Array:
        """Call the function."""
        keywords = self.numbers
        if self.operator == "log_softmax":
            keywords["axes"] = self.axes
        if self.operator == "batch_normalization":
            keywords = self.normalization(keywords)
        if self.operator == "clip":
            keywords = clip_fields(keywords)
        result: Array = getattr(dmlops, self.operator)(*inputs, **keywords, out=out)
        return result

    def normalization(self, numbers: dict[str, Any]) -> dict[str, Any]:
        """Return the fields of batch normalization, out of its and its activation's numbers."""
        epsilon = numbers.pop("epsilon")
        name = dict(self.parameters).get("fused")
        fused = ACTIVATIONS[name](**numbers) if name else None
        return {"epsilon": epsilon, "fused_activation": fused}

    def descriptor(self, inputs: list[Array], output: Array) -> Any:
        """Return the operator's descriptor for these inputs and this output."""
        first, *more = (dmlops.BufferTensorDesc.from_array(array) for array in inputs)
        tensors: dict[str, Any] = {"input_tensor": first}
        tensors["output_tensor"] = dmlops.BufferTensorDesc.from_array(output)
        numbers = self.numbers
        if self.operator == "log_softmax":
            return dmlops.ActivationLogSoftmax1OperatorDesc(**tensors, axes=self.axes)
        if self.operator == "batch_normalization":
            names = [f"{name}_tensor" for name in PARAMETERS_OF_NORMALIZATION]
            tensors |= dict(zip(names, more, strict=True)) | self.normalization(numbers)
            return dmlops.BatchNormalizationOperatorDesc(**tensors)
        if self.operator == "clip":
            tensors |= {"min": -math.inf, "max": math.inf} | clip_fields(numbers)
            tensors["min_max_data_type"] = first.data_type
            return dmlops.ElementWiseClip1OperatorDesc(**tensors)
        return (ACTIVATIONS | FURTHER)[self.operator](**tensors, **numbers)


def clip_fields(numbers: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of clip, with the scale and its bias as one."""
    if "scale" not in numbers:
        return numbers
    pair = dmlops.ScaleBias(numbers.pop("scale"), numbers.pop("scale_bias"))
    return {**numbers, "scale_bias": pair}


@lru_cache(64)
def values(recipe: str, shape: tuple[int, ...], dtype: str) -> Array:
    """Return values of which each bit is integer arithmetic.

    `any:seed`: any bit pattern. `near:seed:low:high`: the same with exponents that bring the
    magnitude, of a float, into [2^low, 2^high). `mixed:seed:low:high`: any, near, any, near, ...
    """
    name, *numbers = recipe.split(":")
    seed, low, high = [*map(int, numbers), 0, 0][:3]
    kind, count = np.dtype(dtype), math.prod(shape)
    bits = samples.any_bits((count,), dtype, seed).view(f"u{kind.itemsize}")
    if kind.kind == "f" and name != "any":
        info = np.finfo(kind)
        picks = (samples.hashed(count, seed) & np.uint64(0xFFFF)) * np.uint64(high - low)
        exponents = (picks >> np.uint64(16)).astype(np.int64) + (low + 1 - int(info.minexp))
        field = (1 << (8 * kind.itemsize - 1)) - (1 << info.nmant)
        near = (bits & ~bits.dtype.type(field)) | (exponents << info.nmant).astype(bits.dtype)
        chosen = slice(1, None, 2) if name == "mixed" else slice(None)
        bits[chosen] = near[chosen]
    result: Array = bits.view(kind).reshape(shape)
    result.flags.writeable = False
    return result


def digest(result: Array) -> str:
    """Return the sum of all elements' bits, each mixed with its place, as 16 hexadecimal digits."""
    bits = np.ascontiguousarray(result).ravel().view(f"u{result.dtype.itemsize}")
    with np.errstate(over="ignore"):
        places = samples.counter(bits.size) + bits.astype(np.uint64)
        return f"{int(samples.finalized(places).sum(dtype=np.uint64)):016x}"


def read() -> list[Case]:
    """Return the cases of the file."""
    lines = FILE.read_text(encoding="ascii").splitlines()
    return [Case.parse(line) for line in lines if not line.startswith("#")]


def computed(cases: list[Case]) -> list[Case]:
    """Return the cases with the digests of this machine's results."""
    return [replace(case, digest=digest(case(*case.inputs()))) for case in cases]


def changes(before: list[Case], after: list[Case]) -> list[str]:
    """Return a line for each operator and data type with digests that differ."""
    known = {replace(case, digest=""): case.digest for case in before}
    total, changed = Counter[str](), Counter[str]()
    for case in after:
        name = f"{case.operator} {case.dtype}"
        total[name] += 1
        changed[name] += known.get(replace(case, digest=""), case.digest) != case.digest
    return [f"{name}: {n} of {total[name]} digests differ" for name, n in changed.items() if n]


def main(words: list[str]) -> int:
    """Compare or write; return the exit status."""
    if words not in ([], ["--write"]):
        print(__doc__, file=sys.stderr)
        return 2
    before = read() if FILE.exists() else []
    if not words:
        found = changes(before, computed(before))
        print("\n".join(found) or f"All {len(before)} digests are as in {FILE.name}.")
        return 1 if found else 0
    from golden_cases import all_cases  # noqa: PLC0415 - what reads the file needs no list

    after = computed(list(all_cases()))
    FILE.write_text(HEADER + "".join(f"{case}\n" for case in after), encoding="ascii")
    found = changes(before, after)
    print(f"{len(after)} digests written to {FILE.name}.")
    if found:
        print("\n".join(found))
        print("Users get other bits than before: say so in CHANGELOG.md.")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
