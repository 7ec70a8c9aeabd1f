#!/bin/sh
# Starts aiortc's driver with the libweir that scripts/build/c-library.sh has made, the fastest build if there are several.
cd "$(dirname "$0")/../.." || exit
made=${CARGO_TARGET_DIR:-target}
for file in "$made"/debug/c/libweir.so.* "$made"/dist/c/libweir.so.*; do
    [ ! -f "$file" ] || found=$file
done
WEIR_LIBRARY=${WEIR_LIBRARY:-${found:-libweir.so.0}}
export WEIR_LIBRARY
exec ./arena/aiortc/.venv/bin/python ./arena/aiortc/driver.py "$@"
