#!/usr/bin/env bash
# Tests under the compiler's sanitizers; the first finding fails.
#
#   tools/sanitize.sh address [pytest arguments]   memory, undefined behavior: C++ and Python tests
#   tools/sanitize.sh thread                       data races: C++ tests, on the baseline
#
# By default pytest runs the tests of untrusted input only, without those that take minutes there and
# are about digits and numbers of threads; `address tests` runs all tests. The golden digests, the
# elementary functions and the guard pages run on every instruction set of the processor.
#
# Needs Clang with its runtimes (GCC compiles the kernels many times slower); the Python tests need
# `pip install '.[test]' -r requirements-dev.txt`.
source "$(dirname "$0")/common.sh"

kind=${1:?address or thread}
shift
if (($# == 0)); then
  set -- tests/test_{descriptors,device}_*.py tests/test_{batch_normalization,errors,free_threading,guard_pages}.py \
    tests/test_{hostile,inputs,log_softmax,normalization_factor,out,threads}.py \
    --deselect tests/test_batch_normalization.py::test_large \
    --deselect tests/test_log_softmax.py::test_large \
    --deselect tests/test_log_softmax.py::test_leads_of_every_size \
    --deselect tests/test_threads.py::test_compiled_operators_start_as_many_as_functions
fi
name=sanitize-$kind

# High-entropy address randomization can occupy the fixed addresses of the sanitizers' shadow memory.
if setarch -R true 2>/dev/null; then LAUNCHER=(setarch -R); fi

export UBSAN_OPTIONS=print_stacktrace=1
export TSAN_OPTIONS=halt_on_error=1

if [[ $kind == thread ]]; then
  # The baseline only, whose vectors have 16 bytes: the sanitizer ignores accesses of more.
  build_and_test "$name" "${SANITIZED[@]}" -DDMLOPS_ISAS=baseline -DDMLOPS_SANITIZE=thread
  exit
fi
build_and_test "${ADDRESS[@]}"
if ((${#PYTHON_BINDING[@]} == 0)); then exit 0; fi

# Writes reports to files, as pytest would capture them. test_resources.py is left out: it would
# measure the sanitizer's own memory.
report=$BUILD/$name/report
rm -f "$report".*
sanitized_package "log_path=$report"
status=0
"${LAUNCHER[@]}" "${SANITIZED_PYTHON[@]}" -m pytest -q --ignore=tests/test_resources.py "$@" || status=$?
if grep -sE 'ERROR:|runtime error:' "$report".* >/dev/null; then
  cat "$report".*
  status=1
fi
exit "$status"
