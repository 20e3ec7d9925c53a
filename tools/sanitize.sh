#!/usr/bin/env bash
# Tests under the compiler's sanitizers; the first finding fails.
#
#   tools/sanitize.sh address [pytest arguments]   memory, undefined behaviour: C++ and Python tests
#   tools/sanitize.sh thread                       data races: C++ tests
#
# Without arguments pytest runs the tests of what comes from outside; `address tests` runs all of them.
# The golden digests, the elementary functions and the guard pages go through every instruction set
# that the processor has.
#
# Needs Clang with its runtimes (GCC takes many times as long for the kernels); the Python tests need
# `pip install '.[test]' -r requirements-dev.txt`.
source "$(dirname "$0")/common.sh"

kind=${1:?address or thread}
shift
if (($# == 0)); then
  set -- tests/test_{descriptors,device}_*.py tests/test_{batch_normalization,errors,free_threading,guard_pages}.py \
    tests/test_{hostile,inputs,log_softmax,normalization_factor,out,threads}.py
fi
name=sanitize-$kind

# The sanitizers' shadow memory has fixed places, which strong address randomization can occupy.
if setarch -R true 2>/dev/null; then LAUNCHER=(setarch -R); fi

export UBSAN_OPTIONS=print_stacktrace=1
export TSAN_OPTIONS=halt_on_error=1

if [[ $kind == thread ]]; then
  build_and_test "$name" "${SANITIZED[@]}" -DDMLOPS_SANITIZE=thread
  exit
fi
build_and_test "${ADDRESS[@]}"
if ((${#PYTHON_BINDING[@]} == 0)); then exit 0; fi

# pytest would swallow the report. test_resources.py is left out: it measures memory, which the
# sanitizer uses, too.
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
