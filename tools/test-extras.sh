#!/usr/bin/env bash
# Runs the tests that are skipped without the package's extras and the peers.
#
#   pip install '.[test,dask,onnx,completion]' -r requirements-extras.txt && tools/test-extras.sh [pytest arguments]
source "$(dirname "$0")/common.sh"

"$PYTHON" -m pytest -q -rs --durations=5 tests/test_bench*.py tests/test_completion.py \
  tests/test_dask*.py tests/test_docs*.py tests/test_errors_outputs.py tests/test_gradients.py \
  tests/test_interface.py tests/test_jax.py tests/test_onnx*.py tests/test_minimax.py tests/test_peers.py \
  tests/test_torch.py "$@"
