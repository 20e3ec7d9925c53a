#!/usr/bin/env bash
# Builds the C++ library with warnings as errors and runs its tests.
#
#   tools/test-cpp.sh [g++|clang++|another compiler]
#   tools/test-cpp.sh clang++ -O3     at this level, with flags that change bits (tools/test-bits.sh)
source "$(dirname "$0")/common.sh"

compiler=${1:-${CXX:-g++}}
AT_LEVEL=()
if (($# > 1)); then at_level "$2" "$compiler"; fi
build_and_test "cpp-${compiler##*/}" -DCMAKE_CXX_COMPILER="$compiler" -DCMAKE_BUILD_TYPE=Release "${AT_LEVEL[@]}"
