#!/bin/sh
# Starts aiortc's driver with the libweir that scripts/c-library.sh has made last.
cd "$(dirname "$0")/../.." || exit
newest=${WEIR_LIBRARY:-}
for file in "${CARGO_TARGET_DIR:-target}"/*/c/libweir.so.*; do
    if [ -z "$newest" ] || { [ -z "${WEIR_LIBRARY:-}" ] && [ "$file" -nt "$newest" ]; }; then
        newest=$file
    fi
done
WEIR_LIBRARY=$newest
export WEIR_LIBRARY
exec ./arena/aiortc/.venv/bin/python ./arena/aiortc/driver.py "$@"
