"""Checks the contents of a release: python tools/check_dist.py SDIST WHEEL POLICY."""

from __future__ import annotations

import io
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

from elftools.elf.dynamic import DynamicSection
from elftools.elf.elffile import ELFFile

SDIST = ("CHANGELOG.md", "CMakeLists.txt", "LICENSE", "README.md", "pyproject.toml")
SDIST_FOLDERS = ("cmake", "examples", "include", "python", "src", "tests")
METADATA = {"METADATA", "RECORD", "WHEEL", "entry_points.txt", "licenses/LICENSE"}
WHEEL_BYTES = 2 * 1024 * 1024
# Libraries of the system: glibc, in several files in older versions, and the loader.
LIBRARIES = ("libc.so", "libm.so", "libpthread.so", "libdl.so", "ld-linux")


def main(sdist: Path, wheel: Path, policy: str) -> int:
    """Print the errors, or the wheel's size and policy; return the exit status."""
    wrong = [*check_sdist(sdist), *check_wheel(wheel), *check_extension(wheel)]
    if policy not in wheel.name:
        wrong.append(f"{wheel.name}: its policy is not {policy}")
    for line in wrong:
        print(line, file=sys.stderr)
    if not wrong:
        print(f"{sdist.name}: {sdist.stat().st_size:,} bytes")
        print(f"{wheel.name}: {wheel.stat().st_size:,} bytes, {policy}")
    return len(wrong) > 0


def check_sdist(path: Path) -> list[str]:
    """Compare the sdist with git's files in the folders that it includes."""
    expected = {*tracked(*SDIST, *SDIST_FOLDERS), "PKG-INFO"}
    with tarfile.open(path) as archive:
        found = {
            member.name.partition("/")[2] for member in archive.getmembers() if member.isfile()
        }
    return differences(path, expected, found)


def check_wheel(path: Path) -> list[str]:
    """Compare the wheel with git's Python files, examples and C++ source, and check its size."""
    expected = {name.removeprefix("python/") for name in tracked("python/dmlops")}
    expected |= {f"dmlops/{name}" for name in tracked("examples")}
    source = tracked("CMakeLists.txt", "LICENSE", "cmake", "include", "src") - tracked("src/python")
    expected |= {f"dmlops/cpp/{name}" for name in source}
    expected.add("dmlops/cpp/cmake/package/dmlopsConfigVersion.cmake")
    with zipfile.ZipFile(path) as archive:
        found = {name for name in archive.namelist() if not name.endswith("/")}
    extensions = {name for name in found if name.startswith("dmlops/_core.") and name[-3:] == ".so"}
    metadata = {name for name in found if name.partition("/")[2] in METADATA}
    wrong = differences(path, expected, found - extensions - metadata)
    if len(extensions) != 1:
        wrong.append(f"{path.name}: one extension module is expected, not {len(extensions)}")
    if path.stat().st_size > WHEEL_BYTES:
        wrong.append(f"{path.name}: {path.stat().st_size:,} bytes are more than {WHEEL_BYTES:,}")
    return wrong


def check_extension(path: Path) -> list[str]:
    """Check the extension module for symbols and dependencies that it should not have."""
    wrong = []
    with zipfile.ZipFile(path) as archive:
        names = [name for name in archive.namelist() if name.endswith(".so")]
        for name in names:
            elf = ELFFile(io.BytesIO(archive.read(name)))
            if elf.get_section_by_name(".symtab"):
                wrong.append(f"{name}: not stripped")
            dynamic = elf.get_section_by_name(".dynamic")
            assert isinstance(dynamic, DynamicSection)
            wrong += [
                f"{name}: needs {tag.needed}"
                for tag in dynamic.iter_tags("DT_NEEDED")
                if not tag.needed.startswith(LIBRARIES)
            ]
            wrong += [
                f"{name}: has an {tag.entry.d_tag}" for tag in dynamic.iter_tags("DT_RUNPATH")
            ]
    return wrong


def tracked(*names: str) -> set[str]:
    """Return git's files in these files and folders."""
    output = subprocess.run(["git", "ls-files", "--", *names], check=True, capture_output=True)
    return set(output.stdout.decode().splitlines())


def differences(path: Path, expected: set[str], found: set[str]) -> list[str]:
    """Return the missing and the unexpected files of an archive."""
    return [
        *(f"{path.name}: {name} is missing" for name in sorted(expected - found)),
        *(f"{path.name}: {name} is too much" for name in sorted(found - expected)),
    ]


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]))
