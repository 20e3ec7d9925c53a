#!/usr/bin/env bash
# Cross-compiles the C++ library for 64-bit Arm (NEON) and runs its tests under emulation.
#
#   tools/test-aarch64.sh
#
# Needs g++-aarch64-linux-gnu and qemu-user-static.
source "$(dirname "$0")/common.sh"

build_and_test cpp-aarch64 "${UNITY[@]}" -DCMAKE_TOOLCHAIN_FILE="$PWD/cmake/aarch64-linux-gnu.cmake" \
  -DCMAKE_BUILD_TYPE=Release
