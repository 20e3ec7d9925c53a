#!/usr/bin/env bash
# Compares the golden digests (tests/golden.txt) at optimization levels other than -O2, with fast math and
# other flags that change bits, which the build takes back: no compiler and no flag may change a bit.
#
#   tools/test-bits.sh                     GCC at -O1
#   tools/test-bits.sh g++:-O2 clang++:-O1 ...
#   tools/test-bits.sh all                 both compilers at every level, and GCC for 64-bit Arm
source "$(dirname "$0")/common.sh"

chosen=("${@:-g++:-O1}")
if [[ ${chosen[0]} == all ]]; then
  chosen=({g++,clang++}:-O{1,2,3} aarch64-linux-gnu-g++:-O{1,2,3})
fi

for pair in "${chosen[@]}"; do
  compiler=${pair%:*} level=${pair#*:} begin=$SECONDS
  name=bits-$compiler$level
  arguments=(-DCMAKE_CXX_COMPILER="$compiler" -DDMLOPS_ISAS="$ISAS")
  if [[ $compiler == aarch64-* ]]; then
    arguments=(-DCMAKE_TOOLCHAIN_FILE="$PWD/cmake/aarch64-linux-gnu.cmake")
  fi
  at_level "$level" "$compiler"
  configure "$name" "${arguments[@]}" -DDMLOPS_BUILD_TESTS=ON -DCMAKE_BUILD_TYPE=Release "${AT_LEVEL[@]}" >/dev/null
  cmake --build "$BUILD/$name" --target golden_test --parallel "$JOBS"
  ctest --test-dir "$BUILD/$name" --tests-regex '^golden_' --output-on-failure --no-tests=error
  printf '%s at %s: the golden bits (%d s)\n' "$compiler" "$level" $((SECONDS - begin))
done
