#!/usr/bin/env bash
# The C++ interface as web pages in $BUILD/api-docs; a missing comment is an error.
#
# Needs doxygen.
source "$(dirname "$0")/common.sh"

export DMLOPS_API_DOCS=$BUILD/api-docs
DMLOPS_VERSION=$(sed -n 's/^project(dmlops VERSION \([0-9.]*\).*/\1/p' CMakeLists.txt)
export DMLOPS_VERSION
rm -rf "$DMLOPS_API_DOCS" && mkdir -p "$DMLOPS_API_DOCS"
doxygen docs/Doxyfile
echo "$DMLOPS_API_DOCS/html/index.html"
