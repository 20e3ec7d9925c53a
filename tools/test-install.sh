#!/usr/bin/env bash
# Installs the C++ library into an empty folder, and builds and runs the examples with the installed
# files only.
#
#   tools/test-install.sh g++|clang++    static and shared, moved, by pkg-config; benchmarks; versions
#   tools/test-install.sh aarch64        cross-compiled for 64-bit Arm, run by QEMU
#   tools/test-install.sh windows        cross-compiled by MinGW-w64, run by Wine where it is installed
#   tools/test-install.sh source         add_subdirectory and FetchContent; refused flags
#   tools/test-install.sh package        the source in the installed Python package
#
# Needs pkg-config and libbenchmark-dev (g++, clang++), g++-aarch64-linux-gnu and qemu-user-static,
# g++-mingw-w64-x86-64-posix (and wine, wine64). Where there is ccache, the kernels are compiled once.
source "$(dirname "$0")/common.sh"

what=${1:?g++, clang++, aarch64, windows, source or package}
work=$BUILD/install-$what
rm -rf "$work"
mkdir -p "$work"
unset CPATH LIBRARY_PATH LD_LIBRARY_PATH PKG_CONFIG_PATH CMAKE_PREFIX_PATH
if command -v ccache >/dev/null; then export CMAKE_CXX_COMPILER_LAUNCHER=ccache; fi

# Restricts CMake's search for packages to the named folder.
ONLY=(-DCMAKE_FIND_USE_PACKAGE_REGISTRY=OFF -DCMAKE_FIND_USE_SYSTEM_PACKAGE_REGISTRY=OFF
  -DCMAKE_FIND_USE_CMAKE_ENVIRONMENT_PATH=OFF -DCMAKE_FIND_USE_SYSTEM_ENVIRONMENT_PATH=OFF
  -DCMAKE_FIND_USE_CMAKE_SYSTEM_PATH=OFF -DCMAKE_MAKE_PROGRAM="$(command -v ninja)")

# The names of the shared library: without a version, with that of its binary interface, with its own.
SHARED=(libdmlops.so "libdmlops.so.$(sed -n 's/#define DMLOPS_ABI_VERSION //p' include/dmlops/export.h)"
  "libdmlops.so.$(sed -n 's/^project(dmlops VERSION \([0-9.]*\).*/\1/p' CMakeLists.txt)")

say() { printf -- '--- %s\n' "$*"; }
quiet() { "$@" >"$work/log" 2>&1 || { tail -n 40 "$work/log"; return 1; }; }

# install_library [cmake arguments]: installs into $work/prefix, from the C++ tests' build if it exists.
install_library() {
  say "build and install"
  quiet configure "cpp-$what" -DCMAKE_BUILD_TYPE=Release -DCMAKE_INSTALL_LIBDIR=lib "$@"
  quiet cmake --build "$BUILD/cpp-$what" --parallel "$JOBS" --target dmlops dmlops_shared
  quiet cmake --install "$BUILD/cpp-$what" --prefix "$work/prefix"
}

# check NAME SOURCE [cmake arguments]: builds a project, and runs its tests unless RUN is `no`.
RUN=yes
check() {
  local name=$1 source=$2
  shift 2
  say "$name"
  quiet cmake -S "$source" -B "$work/check/$name" -G Ninja -DCMAKE_BUILD_TYPE=Release "$@"
  quiet cmake --build "$work/check/$name" --parallel "$JOBS"
  if [[ $RUN == no ]]; then
    say "$name is built, and not run: nothing here can"
    return
  fi
  quiet ctest --test-dir "$work/check/$name" --no-tests=error --verbose
  sed -n 's/^[0-9]*: \(dmlops .*\|All .*\)/    \1/p' "$work/log"
}

# refused REASON [cmake arguments]: checks that find_package fails with this reason.
refused() {
  local reason=$1
  shift
  say "refused: $*"
  if cmake -S tests/install -B "$work/check/refused" -G Ninja -DHOW=find_package \
    -Ddmlops_ROOT="$work/prefix" "$@" >"$work/log" 2>&1; then
    echo "find_package accepts it"
    return 1
  fi
  grep -q "$reason" "$work/log" || { cat "$work/log"; return 1; }
}

# only_expected_files [libraries]: checks the list of installed files.
only_expected_files() {
  say "files"
  {
    find include/dmlops -type f
    printf 'lib/cmake/dmlops/%s\n' dmlopsConfig.cmake dmlopsConfigVersion.cmake \
      dmlopsTargets.cmake dmlopsTargets-release.cmake
    printf 'lib/%s\n' libdmlops.a pkgconfig/dmlops.pc "$@"
    echo share/licenses/dmlops/LICENSE
  } | sed 's|^lib/../||' | sort >"$work/expected"
  (cd "$work/prefix" && find . -type f -o -type l) | sed 's|^./||' | sort >"$work/installed"
  diff "$work/expected" "$work/installed"
}

# Compiles and runs the documentation's programs with the given flags, and compares their output with
# their comments.
documented_programs() {
  local compiler=$1 page=$work/page number
  shift
  rm -rf "$page" && mkdir -p "$page"
  awk -v page="$page" '/^```cpp/ { inside = ++n; next } /^```/ { inside = 0 }
    inside { print > (page "/" n ".cpp") }' docs/cpp.md docs/directml.md
  for number in "$page"/*.cpp; do
    grep -q 'int main' "$number" || continue # a fragment of a program
    "$compiler" -std=c++17 -Wall -Wextra -Werror "$number" "$@" -o "$page/program"
    diff <(sed -n 's|.*// ||p' "$number" | grep -E '^(-?[0-9.]+ ?)+$') \
      <("$page/program" | grep -E '^(-?[0-9.]+ ?)+$')
  done
}

host() {
  local compiler prefix=$work/moved libdir=$work/prefix/lib flags
  install_library -DCMAKE_CXX_COMPILER="$1"
  only_expected_files "${SHARED[@]}"

  say "exported symbols"
  nm --dynamic --demangle --defined-only "$work/prefix/lib/libdmlops.so" >"$work/symbols"
  if grep -vE ' (A DMLOPS_|T dmlops::|T dmlops_|V (typeinfo|typeinfo name|vtable) for dmlops::)' "$work/symbols"; then
    echo "symbols that are not the interface"
    return 1
  fi

  compiler=$(command -v "$1") # ONLY restricts the search for programs, too
  local compilers=(-DCMAKE_CXX_COMPILER="$compiler" -DCMAKE_C_COMPILER="$(command -v cc)")
  mv "$work/prefix" "$prefix" # the installation must be relocatable
  check directml_example examples/directml "${ONLY[@]}" "${compilers[@]}" -DCMAKE_PREFIX_PATH="$prefix"
  check c_example examples/c "${ONLY[@]}" "${compilers[@]}" -DCMAKE_PREFIX_PATH="$prefix"
  for component in static shared; do
    check $component tests/install "${ONLY[@]}" "${compilers[@]}" -DHOW=find_package \
      -DCMAKE_PREFIX_PATH="$prefix" -DVERSION=0.1 -DCOMPONENT=$component
  done
  mv "$prefix" "$work/prefix"
  refused 'considered but not accepted' -DVERSION=0.2
  refused 'considered but not accepted' -DVERSION=0.0
  refused 'this dmlops has no component python' -DVERSION=0.1 -DCOMPONENT=python
  refused 'needs the language CXX' -DVERSION=0.1 -DLANGUAGES=C

  say "pkg-config"
  export PKG_CONFIG_PATH=$libdir/pkgconfig
  read -ra flags < <(pkg-config --cflags --libs dmlops)
  flags+=("-Wl,-rpath,$(pkg-config --variable=libdir dmlops)")
  "$compiler" -std=c++17 examples/directml/directml_example.cpp "${flags[@]}" -o "$work/example"
  "$work/example" | sed 's/^/    /'
  cc -std=c99 -pedantic -Wall -Wextra -Werror examples/c/c_example.c "${flags[@]}" -lm \
    -o "$work/example"
  "$work/example" | sed 's/^/    /'
  "$PYTHON" examples/c/ctypes_example.py "$libdir/libdmlops.so" | sed 's/^/    /'
  say "refused: containers or enumerations of another layout than in the library"
  (! "$compiler" -std=c++17 -D_GLIBCXX_DEBUG examples/directml/directml_example.cpp "${flags[@]}" \
    -o "$work/example" 2>"$work/log")
  grep -q 'abi:glibcxx_debug' "$work/log"
  (! cc -fshort-enums -fsyntax-only examples/c/c_example.c "${flags[@]}" 2>"$work/log")
  grep -q 'enumerations_have_4_bytes' "$work/log"
  read -ra static < <(pkg-config --static --cflags --libs dmlops)
  "$compiler" -std=c++17 examples/directml/directml_example.cpp -static "${static[@]}" \
    -o "$work/example"
  (! readelf --dynamic "$work/example" | grep NEEDED)
  "$work/example" | tail -n 1 | sed 's/^/    /'
  cc -std=c99 -shared -fPIC examples/c/c_example.c "${static[@]}" -o "$work/plugin.so"
  readelf --dynamic "$work/plugin.so" | grep NODELETE >/dev/null # its unloading would crash
  say "the programs in docs/cpp.md, docs/directml.md and docs/c.md"
  documented_programs "$compiler" "${flags[@]}"
  awk '/^```c$/ { inside = 1; next } /^```/ { inside = 0 } inside' docs/c.md >"$work/program.c"
  cc -std=c99 -pedantic -Wall -Wextra -Werror "$work/program.c" "${flags[@]}" -o "$work/program"
  diff <(sed -n 's|.*/\* \([0-9. ]*\) \*/|\1|p' "$work/program.c") <("$work/program")
  cc -std=c99 "$work/program.c" -static "${static[@]}" -o "$work/static_program"
  diff <("$work/static_program") <("$work/program")
  (! ldd "$libdir/libdmlops.so" | grep -i python)

  say "benchmarks"
  quiet cmake -S bench -B "$work/check/bench" -G Ninja -DCMAKE_CXX_COMPILER="$compiler" \
    -Ddmlops_ROOT="$work/prefix"
  quiet cmake --build "$work/check/bench" --parallel "$JOBS"
  "$work/check/bench/bench_clip" --benchmark_filter='clip/f32/.*/dense/1KiB' \
    --benchmark_min_time=0.01 2>/dev/null | sed 's/^/    /'
}

# cross TOOLCHAIN [libraries in addition to the static one]: cross-compiles and runs the examples.
cross() {
  local toolchain=$PWD/cmake/$1.cmake component
  install_library -DCMAKE_TOOLCHAIN_FILE="$toolchain"
  only_expected_files "${@:2}"
  for component in static shared; do
    check $component tests/install -DCMAKE_TOOLCHAIN_FILE="$toolchain" -DHOW=find_package \
      -Ddmlops_DIR="$work/prefix/lib/cmake/dmlops" -DCOMPONENT=$component
  done
}

# Configures with the arguments, which must fail with the message.
refuse() { # WHAT MESSAGE CMAKE_ARGUMENT...
  local what=$1 message=$2
  shift 2
  say "refused: $what"
  if cmake -S . -B "$work/check/refused" -G Ninja "$@" >"$work/log" 2>&1; then
    echo "$what is accepted"
    return 1
  fi
  grep -q "$message" "$work/log" || { cat "$work/log"; return 1; }
  rm -rf "$work/check/refused"
}

# Builds the source as part of another project, which has link-time optimization; unoptimized kernels
# save time.
from_source() {
  check FetchContent tests/install -DHOW=FetchContent -DSOURCE="$PWD" -DBUILD_SHARED_LIBS=ON \
    -DCMAKE_INTERPROCEDURAL_OPTIMIZATION=ON -DDMLOPS_KERNEL_OPTIMIZATION=-O1
  quiet cmake --install "$work/check/FetchContent" --prefix "$work/prefix"
  diff <(echo ./bin/example) <(cd "$work/prefix" && find . -type f)
  say "add_subdirectory"
  quiet cmake -S tests/install -B "$work/check/add_subdirectory" -G Ninja -DHOW=add_subdirectory \
    -DSOURCE="$PWD"
  ninja -C "$work/check/add_subdirectory" -n -v example >"$work/log"
  if [[ -n $(awk '/ -c / && /dmlops(_[a-z0-9]+)?\.dir\// && !/ -O[2s3] /' "$work/log") ]]; then
    echo "a project without a build type gets a library that is not optimized"
    return 1
  fi
  if grep -qF -- ' -shared ' "$work/log"; then
    echo "the static library is enough for a project that does not ask for a shared one"
    return 1
  fi
  for flag in -Ofast -mdaz-ftz; do
    refuse "$flag" "with $flag, the linker" -DCMAKE_CXX_FLAGS_RELEASE="$flag"
    refuse "$flag of the linker" "with $flag, the linker" -DCMAKE_SHARED_LINKER_FLAGS="$flag"
  done
  refuse 'an unknown instruction set' 'DMLOPS_ISAS has sse9' -DDMLOPS_ISAS='baseline;sse9'
  refuse 'no baseline' 'DMLOPS_ISAS lacks baseline' -DDMLOPS_ISAS=
  if [[ $(uname -m) == x86_64 ]]; then # compiled only, since the libraries for 32 bits may be missing
    refuse '32-bit x86' 'needs a compiler for 64-bit x86 or 64-bit Arm' -DCMAKE_CXX_FLAGS=-m32 \
      -DCMAKE_TRY_COMPILE_TARGET_TYPE=STATIC_LIBRARY
  fi
}

# Builds the example with the folder of the installed Python package only.
package() {
  local config
  config=$("$PYTHON" -m dmlops --cmake-dir)
  check package tests/install "${ONLY[@]}" -DCMAKE_CXX_COMPILER="$(command -v "${CXX:-g++}")" \
    -DCMAKE_C_COMPILER="$(command -v cc)" -Ddmlops_DIR="$config" -DHOW=find_package -DVERSION=0.1 -DCOMPONENT=shared \
    -DDMLOPS_KERNEL_OPTIMIZATION=-O1
}

case $what in
  aarch64) cross aarch64-linux-gnu "${SHARED[@]}" ;;
  windows)
    windows_path=Z:$work/prefix/bin # Wine's search path for the shared library
    export WINEPATH=${windows_path//\//\\} WINEDEBUG=-all WINEPREFIX=$work/wine
    if ! command -v wine >/dev/null; then RUN=no; fi
    cross x86_64-w64-mingw32 libdmlops.dll.a ../bin/libdmlops.dll
    ;;
  source) from_source ;;
  package) package ;;
  *) host "$what" ;;
esac
