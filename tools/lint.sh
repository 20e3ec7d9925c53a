#!/usr/bin/env bash
# Layout, lint and length of every file; changes nothing.
#
#   tools/lint.sh          check
#   tools/lint.sh --fix    let the formatters rewrite the files first
#
# Needs ruff (requirements-dev.txt), clang-format and shellcheck.
source "$(dirname "$0")/common.sh"

mapfile -t cpp < <(sources '*.hpp' '*.h' '*.cpp' '*.c')
mapfile -t shell < <(sources '*.sh' run)

if [[ ${1:-} == --fix ]]; then
  "$PYTHON" -m ruff check --fix --exit-zero --quiet .
  "$PYTHON" -m ruff format .
  clang-format -i "${cpp[@]}"
fi

failed=0
"$PYTHON" -m ruff check . || failed=1
"$PYTHON" -m ruff format --check . || failed=1
clang-format --dry-run -Werror "${cpp[@]}" || failed=1
shellcheck --external-sources --source-path=SCRIPTDIR "${shell[@]}" || failed=1

# Limits files to 400 lines: a longer one has more than one job.
mapfile -t text < <(sources '*.hpp' '*.h' '*.cpp' '*.c' '*.py' '*.pyi' '*.sh' '*.cmake' '*.txt' '*.md' run
  find . -maxdepth 1 -type f)
awk 'FNR == 401 { print FILENAME ": more than 400 lines"; found = 1 } END { exit found }' \
  "${text[@]}" || failed=1

# Forbids function-local statics with dynamic initialization: after a fork during the first call, the
# child waits forever for the initialization to end. `static constexpr` is initialized by the compiler;
# static functions have parentheses first.
if grep -rnE '^[[:space:]]+(inline |const )*static [^(]*[={;]' src include | grep -v 'static constexpr'; then
  echo "function-local statics: make them constexpr, or initialize them when the library is loaded"
  failed=1
fi
exit $failed
