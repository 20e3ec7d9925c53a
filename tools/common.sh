# Shared by the scripts in this folder: sourced, not run. Leaves the caller in the repository's root.
# shellcheck shell=bash
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# Settings: the interpreter, the build folder, the number of parallel jobs.
PYTHON=${PYTHON:-python3}
BUILD=${DMLOPS_BUILD_DIR:-$PWD/build}
JOBS=${JOBS:-$(nproc)}

# sources PATTERN...: prints the project's own files that match; missing folders are skipped.
sources() {
  local patterns=() pattern
  for pattern in "$@"; do patterns+=(-o -name "$pattern"); done
  find .ci bench cmake docs examples fuzz include python src tests tools \
    -type f '(' "${patterns[@]:1}" ')' -not -path '*/__pycache__/*' -print 2>/dev/null || true
}

# configure NAME [cmake arguments]: prepares $BUILD/NAME.
configure() {
  local name=$1
  shift
  cmake -S . -B "$BUILD/$name" -G Ninja --log-level=WARNING -Wno-deprecated \
    -DCMAKE_EXPORT_COMPILE_COMMANDS=ON -DDMLOPS_WERROR=ON "$@"
}

# Arguments of `configure` that add the Python module, where pybind11 is installed.
PYTHON_BINDING=()
if pybind11=$("$PYTHON" -m pybind11 --cmakedir 2>/dev/null); then
  # shellcheck disable=SC2034 # the scripts that source this file use it
  PYTHON_BINDING=(-DDMLOPS_BUILD_PYTHON=ON -Dpybind11_DIR="$pybind11"
    -DPython_EXECUTABLE="$("$PYTHON" -c 'import sys; print(sys.executable)')")
fi

# Arguments of `configure` that let several sources share the compilation of headers: a third less time.
UNITY=(-DCMAKE_UNITY_BUILD=ON -DCMAKE_UNITY_BUILD_BATCH_SIZE=6)

# The instruction sets of this processor: checks that run the kernels under a compiler's special flags need no others.
ISAS=baseline
if grep -qsw avx2 /proc/cpuinfo; then ISAS+=';avx2'; fi
if grep -qsw avx512dq /proc/cpuinfo; then ISAS+=';avx512'; fi

# at_level LEVEL COMPILER: sets AT_LEVEL to the arguments of `configure` for this optimization level, with fast math and
# other flags that change bits, which the build takes back.
at_level() {
  local flags=-ffast-math
  if [[ $2 != *clang* ]]; then flags+=' -fsingle-precision-constant -fallow-store-data-races'; fi
  if [[ $2 == g++ && $(uname -m) == x86_64 ]]; then flags+=' -mfpmath=387 -mno-ieee-fp'; fi
  # shellcheck disable=SC2034 # the scripts that source this file use it
  AT_LEVEL=(-DCMAKE_CXX_FLAGS_RELEASE="$1 $flags -DNDEBUG" -DDMLOPS_KERNEL_OPTIMIZATION="$1")
}

# Arguments of `configure` for the builds under sanitizers; ADDRESS is the build that tests and fuzzers share.
# At higher levels, instrumented code takes minutes to compile. No test uses the shared library.
# shellcheck disable=SC2034 # the scripts that source this file use them
SANITIZED=("${UNITY[@]}" -DDMLOPS_BUILD_SHARED=OFF
  -DCMAKE_CXX_COMPILER=clang++ -DCMAKE_BUILD_TYPE=Release -DCMAKE_CXX_FLAGS=-g1
  -DCMAKE_CXX_FLAGS_RELEASE="-O1 -DNDEBUG" -DDMLOPS_KERNEL_OPTIMIZATION=-O1)
# shellcheck disable=SC2034
ADDRESS=(sanitize-address "${SANITIZED[@]}" -DDMLOPS_SANITIZE=address -DDMLOPS_ISAS="$ISAS"
  -DDMLOPS_BUILD_FUZZERS=ON -DDMLOPS_BUILD_TESTS=ON "${PYTHON_BINDING[@]}")

# sanitized_package: the Python package with the module that was built under the address sanitizer.
# Leaves in SANITIZED_PYTHON the command of an interpreter that imports it; the arguments are further
# sanitizer options. The interpreter is not instrumented, so it must load the sanitizer's library
# first. Memory that CPython keeps until exit is not a leak.
SANITIZED_PYTHON=()
sanitized_package() {
  local site=$BUILD/sanitize-address/site libraries
  cmake --install "$BUILD/sanitize-address" --prefix "$site" >/dev/null
  cp -R python/dmlops "$site"
  libraries="$(clang++ -print-file-name="libclang_rt.asan-$(uname -m).so") $(clang++ -print-file-name=libstdc++.so)"
  # shellcheck disable=SC2034 # the scripts that source this file use it
  SANITIZED_PYTHON=(env PYTHONPATH="$site" LD_PRELOAD="$libraries"
    ASAN_OPTIONS="detect_leaks=0:allocator_may_return_null=1:$1"
    UBSAN_OPTIONS="print_stacktrace=1:$1" "$PYTHON")
}

# build_and_test NAME [cmake arguments]: the C++ library and its tests, every test run through
# the command in LAUNCHER, if any.
LAUNCHER=()
build_and_test() {
  local name=$1
  configure "$@" -DDMLOPS_BUILD_TESTS=ON
  cmake --build "$BUILD/$name" --parallel "$JOBS"
  "${LAUNCHER[@]}" ctest --test-dir "$BUILD/$name" --output-on-failure --no-tests=error --parallel "$JOBS"
}
