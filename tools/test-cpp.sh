#!/usr/bin/env bash
# Builds the C++ library with warnings as errors and runs its tests.
#
#   tools/test-cpp.sh [g++|clang++|another compiler]
source "$(dirname "$0")/common.sh"

compiler=${1:-${CXX:-g++}}
build_and_test "cpp-${compiler##*/}" -DCMAKE_CXX_COMPILER="$compiler" -DCMAKE_BUILD_TYPE=Release
