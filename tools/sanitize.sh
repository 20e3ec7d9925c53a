#!/usr/bin/env bash
# Tests under the compiler's sanitizers; the first finding fails.
#
#   tools/sanitize.sh address [pytest arguments]   memory, undefined behaviour: C++ and Python tests
#   tools/sanitize.sh thread                       data races: C++ tests
#
# Needs GCC; the Python part needs the packages of `pip install '.[test]'`.
source "$(dirname "$0")/common.sh"

kind=${1:?address or thread}
shift

# The sanitizers' shadow memory has fixed places, which strong address randomization can occupy.
if setarch -R true 2>/dev/null; then LAUNCHER=(setarch -R); fi

export UBSAN_OPTIONS=print_stacktrace=1
export TSAN_OPTIONS=halt_on_error=1

build_and_test "sanitize-$kind" -DCMAKE_CXX_COMPILER=g++ -DCMAKE_BUILD_TYPE=RelWithDebInfo \
  -DDMLOPS_SANITIZE="$kind"
[[ $kind == address ]] || exit 0

# The module is loaded by an interpreter that knows nothing of the sanitizer, so its library goes
# first. CPython keeps memory until its end, which would be taken for leaks.
site=$BUILD/sanitize-site
rm -rf "$site"
CXX=g++ "$PYTHON" -m pip install --quiet --no-deps --target "$site" . \
  --config-settings=build-dir="$BUILD/sanitize-module" \
  --config-settings=cmake.build-type=RelWithDebInfo \
  --config-settings=cmake.define.DMLOPS_SANITIZE=address
runtime="$(g++ -print-file-name=libasan.so) $(g++ -print-file-name=libstdc++.so)"
PYTHONPATH=$site ASAN_OPTIONS=detect_leaks=0 LD_PRELOAD=$runtime \
  "${LAUNCHER[@]}" "$PYTHON" -m pytest -q "$@"
