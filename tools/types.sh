#!/usr/bin/env bash
# Types: mypy --strict over the Python files; the stubs against the installed module; and what a
# user's editor sees of the installed package, by Pyright's rules: programs that must and must not
# pass (tests/typed), and no public name without its type.
#
#   pip install '.[test]' -r requirements-dev.txt && tools/types.sh
source "$(dirname "$0")/common.sh"

mkdir -p "$BUILD"
"$PYTHON" -m mypy --strict --cache-dir "$BUILD/mypy"
# The checker looks for the environment of the `python` that it finds first.
PATH=$("$PYTHON" -c 'import sys; print(sys.prefix)')/bin:$PATH
"$PYTHON" -m basedpyright --project tests/typed
"$PYTHON" -m basedpyright --verifytypes dmlops --ignoreexternal >"$BUILD/verifytypes.txt" ||
  { cat "$BUILD/verifytypes.txt"; exit 1; }
grep 'Type completeness score' "$BUILD/verifytypes.txt"

# stubtest keeps its cache in the current folder, whatever it is told.
config=$PWD/pyproject.toml
cd "$BUILD"
# The examples are programs: their imports and what they define are not the package's.
echo 'dmlops\.examples.*' >allowed.txt
"$PYTHON" -m mypy.stubtest dmlops --mypy-config-file "$config" --allowlist allowed.txt
