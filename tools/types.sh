#!/usr/bin/env bash
# Checks types: mypy --strict on the Python files; the stubs against the installed module; and Pyright
# on the installed package: programs that must and must not pass (tests/typed), and the completeness of
# public types.
#
#   pip install '.[test]' -r requirements-dev.txt && tools/types.sh
source "$(dirname "$0")/common.sh"

mkdir -p "$BUILD"
"$PYTHON" -m mypy --strict --cache-dir "$BUILD/mypy"
# Pyright uses the environment of the first `python` on the path.
PATH=$("$PYTHON" -c 'import sys; print(sys.prefix)')/bin:$PATH
"$PYTHON" -m basedpyright --project tests/typed
"$PYTHON" -m basedpyright --verifytypes dmlops --ignoreexternal >"$BUILD/verifytypes.txt" ||
  { cat "$BUILD/verifytypes.txt"; exit 1; }
grep 'Type completeness score' "$BUILD/verifytypes.txt"

# stubtest ignores cache options and writes to the current folder.
config=$PWD/pyproject.toml
cd "$BUILD"
# The examples are programs, which do not count as part of the package's interface.
echo 'dmlops\.examples.*' >allowed.txt
"$PYTHON" -m mypy.stubtest dmlops --mypy-config-file "$config" --allowlist allowed.txt
