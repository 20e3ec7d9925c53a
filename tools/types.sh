#!/usr/bin/env bash
# Types: mypy --strict over the Python files, and the stubs against the installed module.
#
#   pip install '.[test]' -r requirements-dev.txt && tools/types.sh
source "$(dirname "$0")/common.sh"

"$PYTHON" -m mypy --strict --cache-dir "$BUILD/mypy"

# stubtest keeps its cache in the current folder, whatever it is told.
config=$PWD/pyproject.toml
mkdir -p "$BUILD" && cd "$BUILD"
"$PYTHON" -m mypy.stubtest dmlops --mypy-config-file "$config"
