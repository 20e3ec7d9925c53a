#!/usr/bin/env bash
# Coverage-guided fuzzing under the address and undefined behaviour sanitizers; the first finding fails.
#
#   tools/fuzz.sh [SECONDS]     each fuzzer for so long (default: 60), from the corpus in fuzz/corpus
#
# A finding is left in build/fuzz/findings; FUZZER FILE runs it again. Needs Clang with its runtimes,
# and for the fuzzer of operator files the installed package with `pip install '.[fuzz]'`.
source "$(dirname "$0")/common.sh"

seconds=${1:-60}
findings=$BUILD/fuzz/findings
mkdir -p "$findings"

configure fuzz -DCMAKE_CXX_COMPILER=clang++ -DCMAKE_BUILD_TYPE=Release -DCMAKE_CXX_FLAGS=-g1 \
  -DDMLOPS_KERNEL_OPTIMIZATION=-O1 -DDMLOPS_SANITIZE=address -DDMLOPS_BUILD_FUZZERS=ON
cmake --build "$BUILD/fuzz" --parallel "$JOBS"

launcher=()
if setarch -R true 2>/dev/null; then launcher=(setarch -R); fi
export UBSAN_OPTIONS=print_stacktrace=1
for name in descriptors dispatch; do
  mkdir -p "$BUILD/fuzz/corpus/$name"
  "${launcher[@]}" "$BUILD/fuzz/fuzz/fuzz_$name" -max_total_time="$seconds" -max_len=2048 -len_control=0 -timeout=20 \
    -print_final_stats=1 -verbosity=0 -artifact_prefix="$findings/$name-" \
    "$BUILD/fuzz/corpus/$name" "fuzz/corpus/$name"
done

mkdir -p "$BUILD/fuzz/corpus/operator_files"
"$PYTHON" fuzz/operator_files.py -max_total_time="$seconds" -max_len=512 -len_control=0 -timeout=20 \
  -print_final_stats=1 -verbosity=0 -artifact_prefix="$findings/operator_files-" \
  "$BUILD/fuzz/corpus/operator_files" fuzz/corpus/operator_files
