#!/bin/sh
# Starts aiortc's driver with the libweir that scripts/c-library.sh has made last.
cd "$(dirname "$0")/../.." || exit
made=${CARGO_TARGET_DIR:-target}
WEIR_LIBRARY=${WEIR_LIBRARY:-$(ls -t "$made"/*/c/libweir.so.* 2> /dev/null | head -n 1)}
export WEIR_LIBRARY
exec ./arena/aiortc/.venv/bin/python ./arena/aiortc/driver.py "$@"
