#!/usr/bin/env bash
# Pins the packages that build releases: writes tools/wheel-requirements.lock, versions and hashes for
# every system and Python, from tools/wheel-requirements.in and the build requirements in pyproject.toml.
#
#   pip install uv && tools/lock.sh [--upgrade]     without --upgrade: required changes only
source "$(dirname "$0")/common.sh"

lock=tools/wheel-requirements.lock
"$PYTHON" - <<'END' |
import tomllib
from pathlib import Path
print(*tomllib.loads(Path("pyproject.toml").read_text())["build-system"]["requires"], sep="\n")
END
  "$PYTHON" -m uv pip compile --quiet --universal --generate-hashes --no-python-downloads \
    --python-version 3.10 --no-annotate --no-header "$@" --output-file "$lock" \
    - tools/wheel-requirements.in >/dev/null
sed -i '1i # Written by tools/lock.sh: the packages that build releases.' "$lock"
