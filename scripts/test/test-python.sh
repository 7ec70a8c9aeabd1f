#!/bin/bash
# Builds the Python package, installs it into an environment of its own below target/, and runs its
# tests. With --missing it only prints why it cannot; nothing if it can. WEIR_SWEEPS=1 also tests sweeps, for which it
# installs Dask and SciPy.
set -euo pipefail
. "$(dirname "$0")/../usage.sh"
accept --missing "$@"
cd "$(dirname "$0")/../.."

if [ "${1:-}" = --missing ]; then
    python3 -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' 2> /dev/null ||
        echo 'no Python 3.11 with venv: apt-get install python3-venv'
    exit
fi

target=$(realpath -m "${CARGO_TARGET_DIR:-target}")
environment=$target/python-package
[ -x "$environment/bin/pip" ] || python3 -m venv "$environment"
# scripts/release/dist.sh may have made it with maturin alone. What is there already needs no network.
"$environment/bin/pip" install --quiet --disable-pip-version-check 'maturin>=1.9,<2' pytest pyarrow pandas \
    polars duckdb 'gymnasium>=1' numpy nbclient ipykernel fsspec s3fs 'moto[server]'
if [ -n "${WEIR_SWEEPS:-}" ]; then
    "$environment/bin/pip" install --quiet --disable-pip-version-check distributed 'scipy>=1.15'
fi
export CARGO_TARGET_DIR=$target VIRTUAL_ENV=$environment
"$environment/bin/maturin" develop --quiet --manifest-path lab/python/Cargo.toml
"$environment/bin/python" -m pytest -q -p no:cacheprovider "lab/python/tests"
