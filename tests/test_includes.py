"""The order of the folders in src: each includes only itself and those before it."""

import re
from pathlib import Path

SOURCE = Path(__file__).parent.parent / "src"

# The order of src/README.md, the lowest folder first.
ORDER = ["kernels", "core", "traversal", "operators", "descriptors", "python"]


def folder(path: Path) -> str:
    """Return the folder that a file belongs to."""
    return path.relative_to(SOURCE).parts[0]


def includes() -> list[tuple[Path, Path]]:
    """Return each file of src with each file of src that it includes."""
    found = []
    for path in sorted([*SOURCE.rglob("*.hpp"), *SOURCE.rglob("*.cpp")]):
        for name in re.findall(r'^#include "(.*)"', path.read_text(), re.MULTILINE):
            beside, from_root = path.parent / name, SOURCE / name
            if from_root.exists() or beside.exists():
                found.append((path, from_root if from_root.exists() else beside))
    return found


def test_includes_go_down() -> None:
    """No file includes one of a later folder."""
    pairs = includes()
    assert len(pairs) > 150
    wrong = [
        f"{path.relative_to(SOURCE)} includes {target.relative_to(SOURCE)}"
        for path, target in pairs
        if ORDER.index(folder(target)) > ORDER.index(folder(path))
    ]
    assert not wrong, "\n".join(wrong)


def test_kernels_include_what_is_below() -> None:
    """Families of kernels do not include each other, except that operators may fuse activations."""
    below = {"simd": [], "blocks": ["simd"], "elementwise": ["simd", "blocks"]}
    for path, target in includes():
        _, own, *file = path.relative_to(SOURCE).parts
        _, used, *used_file = target.relative_to(SOURCE).parts
        if path.is_relative_to(SOURCE / "kernels") and file and used_file:
            assert used in [own, *below.get(own, below)], (path, target)


def test_kernels_use_no_standard_algorithms() -> None:
    """Code compiled per instruction set must not define symbols of the standard library."""
    allowed = {"cstddef", "cstdint", "cstring", "limits", "type_traits", "utility"}
    allowed |= {"immintrin.h", "arm_neon.h"}
    for path in sorted((SOURCE / "kernels").rglob("*.*pp")):
        headers = set(re.findall(r"^#include <(.*)>", path.read_text(), re.MULTILINE))
        assert headers <= allowed, (path, headers - allowed)


def test_intrinsics_are_in_simd() -> None:
    """Kernels reach the instruction set through simd alone."""
    intrinsic = re.compile(r"\b_mm\d*_\w+|\bv\w+q_[suf]\d+\(")
    found = [
        path.relative_to(SOURCE / "kernels").parts[0]
        for path in sorted((SOURCE / "kernels").rglob("*.*pp"))
        if intrinsic.search(path.read_text())
    ]
    assert set(found) == {"simd"}, found
