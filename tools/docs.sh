#!/usr/bin/env bash
# The documentation, as web pages in $BUILD/docs; a warning is an error.
#
#   pip install '.[docs]' && tools/docs.sh [arguments of sphinx-build]
source "$(dirname "$0")/common.sh"

# Builds in a copy, which keeps generated pages out of the checkout.
source=$BUILD/docs-source
rm -rf "$source" && mkdir -p "$source"
cp -R docs ./*.md "$source"
"$PYTHON" -m sphinx --quiet --fail-on-warning --keep-going --fresh-env --jobs "$JOBS" "$@" \
  "$source/docs" "$BUILD/docs"
echo "$BUILD/docs/index.html"
