#!/usr/bin/env bash
# clang-tidy over every file, with every instruction set's flags.
#
#   tools/tidy.sh [regular expression of files]
#
# Needs clang and clang-tidy; the Python binding is included where pybind11 is installed.
source "$(dirname "$0")/common.sh"

# One unity file per target, as most of the time goes into shared headers.
files='^(?!.*googletest)' unity=ON
if (($# > 0)); then files=$1 unity=OFF; fi
configure tidy -DCMAKE_CXX_COMPILER=clang++ -DCMAKE_BUILD_TYPE=Release -DDMLOPS_BUILD_TESTS=ON \
  -DCMAKE_UNITY_BUILD=$unity -DCMAKE_UNITY_BUILD_BATCH_SIZE=0 "${PYTHON_BINDING[@]}"
# clang-tidy searches for its rules next to each file. CMake's unity files include .cpp files.
sed 's/^  -bugprone-easily/  -bugprone-suspicious-include,\n&/' .clang-tidy >"$BUILD/tidy/.clang-tidy"

# Prints the output of failing files only: the rest is command lines.
log=$BUILD/tidy/findings.txt
if run-clang-tidy -quiet -j "$JOBS" -p "$BUILD/tidy" "$files" >"$log" 2>&1; then
  [[ -s $log ]] || { echo "no file is like $files"; exit 1; }
  exit 0
fi
grep -Ev '^(clang-tidy|/.*/clang-tidy|[0-9]+ warnings? (generated|treated)|Suppressed|Use -)' "$log" | awk '!seen[$0]++'
exit 1
