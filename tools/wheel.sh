#!/usr/bin/env bash
# Builds the sdist, and from it a wheel for Linux with glibc 2.17 or later, and tests it without a compiler.
#
#   tools/wheel.sh build                     both, into $BUILD/wheel/dist, with a check of their contents
#   tools/wheel.sh test [pytest arguments]   the sdist's tests, with the wheel in a new environment
#   tools/wheel.sh                           both steps, with the exhaustive tests
#
# Installs its own tools, the compiler included. tools/wheel-requirements.lock pins the versions and hashes
# of all tools and build requirements.
source "$(dirname "$0")/common.sh"

work=$BUILD/wheel
policy=manylinux_2_17_$(uname -m)
unset PYTHONPATH CMAKE_CXX_COMPILER_LAUNCHER

fail() {
  cat "$work/build.log"
  exit 1
}

build() {
  rm -rf "$work"
  "$PYTHON" -m venv "$work/tools"
  local python=$work/tools/bin/python
  "$python" -m pip install --quiet --require-hashes --requirement tools/wheel-requirements.lock
  export PATH=$work/tools/bin:$PATH ZIG_GLOBAL_CACHE_DIR=${ZIG_GLOBAL_CACHE_DIR:-$BUILD/zig}

  # Isolated builds: the sdist from the checkout, the wheel from the sdist alone.
  CXX="python-zig c++ -target $(uname -m)-linux-gnu.2.17" \
    "$python" -m build --dependency-constraints-txt tools/wheel-requirements.lock --outdir "$work/raw" . >"$work/build.log" 2>&1 || fail
  auditwheel repair --strip --wheel-dir "$work/dist" "$work"/raw/*.whl
  mv "$work"/raw/*.tar.gz "$work/dist"
  "$python" -m twine check --strict "$work"/dist/*
  "$python" tools/check_dist.py "$work"/dist/*.tar.gz "$work"/dist/*.whl "$policy"
}

run_tests() {
  local venv=$work/clean
  "$PYTHON" -m venv --clear "$venv"
  local wheels=("$work"/dist/*.whl)
  "$venv/bin/python" -m pip install --quiet "dmlops[test] @ file://${wheels[0]}"

  rm -rf "$work/source" && mkdir "$work/source"
  tar -xzf "$work"/dist/*.tar.gz --strip-components=1 --directory "$work/source"
  cd "$work/source"
  # Only the environment's programs are on the path.
  env -i PATH="$venv/bin" HOME="$work" python -m pytest "$@"
}

step=${1:-all}
case $step in
  build) build ;;
  test) shift; run_tests "$@" ;;
  all) build; run_tests -m 'not large' ;;
  *) echo "$0: build, test or nothing, not $step" >&2; exit 2 ;;
esac
