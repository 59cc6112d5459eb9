#!/bin/sh
# Writes one source that has several tests in it, each in a namespace of its own: what they include is compiled once.
#
#     joined.sh SOURCE...
awk '/^#include/ && !seen[$0]++' "$@"
for source; do
    echo "namespace ${source%.cpp} {"
    echo "#line 1 \"$source\""
    sed 's/^#include.*//' "$source"
    echo "}  // namespace ${source%.cpp}"
done
