#!/usr/bin/env bash
# Fuzzing under the address and undefined behavior sanitizers; any finding fails. Coverage-guided,
# except the bindings' fuzzer, which draws random cases.
#
#   tools/fuzz.sh [SECONDS]     all fuzzers in parallel, by default for 60 seconds, from the corpus in fuzz/corpus
#
# A finding is left in build/fuzz/findings; FUZZER FILE runs it again. Needs Clang with its runtimes,
# for the fuzzer of operator files the installed package with `pip install '.[fuzz]'`, and for that of
# the bindings pybind11.
source "$(dirname "$0")/common.sh"

seconds=${1:-60}
logs=$BUILD/fuzz/logs
findings=$BUILD/fuzz/findings
mkdir -p "$logs" "$findings"

configure "${ADDRESS[@]}"
targets=(fuzz_descriptors fuzz_dispatch)
if ((${#PYTHON_BINDING[@]} > 0)); then targets+=(_core); fi
cmake --build "$BUILD/sanitize-address" --parallel "$JOBS" --target "${targets[@]}"

launcher=()
if setarch -R true 2>/dev/null; then launcher=(setarch -R); fi
export UBSAN_OPTIONS=print_stacktrace=1

# fuzz NAME MAX_LEN COMMAND...: starts a fuzzer in the background.
declare -A running
fuzz() {
  local name=$1 length=$2
  shift 2
  mkdir -p "$BUILD/fuzz/corpus/$name"
  "${launcher[@]}" "$@" -max_total_time="$seconds" -max_len="$length" -len_control=0 -entropic=0 -timeout=20 \
    -print_final_stats=1 -verbosity=0 -artifact_prefix="$findings/$name-" \
    "$BUILD/fuzz/corpus/$name" "fuzz/corpus/$name" >"$logs/$name" 2>&1 &
  running[$name]=$!
}
fuzz descriptors 2048 "$BUILD/sanitize-address/fuzz/fuzz_descriptors"
fuzz dispatch 2048 "$BUILD/sanitize-address/fuzz/fuzz_dispatch"
fuzz operator_files 512 "$PYTHON" fuzz/json_files.py
if ((${#PYTHON_BINDING[@]} > 0)); then
  sanitized_package halt_on_error=1
  fuzz bindings 0 "${SANITIZED_PYTHON[@]}" fuzz/bindings.py
fi

status=0
for name in "${!running[@]}"; do
  if wait "${running[$name]}"; then
    echo "$name: $(sed -n 's/stat::number_of_executed_units: *//p' "$logs/$name") executions, no finding"
  else
    status=1
    printf '\n%s:\n' "$name"
    tail -n 60 "$logs/$name" | cut -c 1-300
  fi
done
exit "$status"
