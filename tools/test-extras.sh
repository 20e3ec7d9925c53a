#!/usr/bin/env bash
# Installs the package with its extras and their peers, and runs the tests that skip without them.
#
#   tools/test-extras.sh [pytest arguments]
source "$(dirname "$0")/common.sh"

"$PYTHON" -m pip install --quiet '.[test,dask,onnx,completion]' -r requirements-extras.txt
"$PYTHON" -m pytest -q -rs --durations=5 tests/test_completion.py tests/test_dask.py \
  tests/test_dask_distributed.py tests/test_docs.py tests/test_onnx.py tests/test_onnx_backend.py \
  tests/test_peers.py "$@"
