#!/bin/sh
# Makes the packages for other languages, each with its library, into dist/packages/: a program that takes them needs no Rust.
#
#     weir-go-VERSION.tar.gz               the Go module: unpack it, then `go mod edit -replace weir-go=FOLDER`
#     weir-sender-VERSION.tgz              for Node: `npm install FILE`
#     weir_sender-VERSION-...whl           for Python on this kind of machine: `pip install FILE`
#
# It needs Rust with wasm32-unknown-unknown, a C compiler, npm, and Python with pip.
set -eu
. "$(dirname "$0")/../usage.sh"
accept '' "$@"
cd "$(dirname "$0")/../.."

version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n 1)
out=$PWD/dist/packages
stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT
mkdir -p "$out"

scripts/build/go-wasm.sh
mkdir "$stage/weir-go-$version"
cp -rL library/go/. "$stage/weir-go-$version/"
tar -C "$stage" --sort=name --owner=0 --group=0 --numeric-owner -czf "$out/weir-go-$version.tar.gz" "weir-go-$version"

(cd library/node && npm pack --silent --pack-destination "$out")
rm -f library/node/weir.wasm

libraries=$(scripts/build/c-library.sh build)
cp -rL library/python "$stage/python"
cp -L "$libraries/libweir.so.0" "$libraries/LICENSE-libm" "$stage/python/weir_sender/"
python3 -m pip wheel --quiet --no-deps --wheel-dir "$stage/wheel" "$stage/python"
# Its library is of one kind of machine, which setuptools cannot know.
python3 - "$stage"/wheel/*.whl "$out" << 'PYTHON'
import pathlib
import shutil
import sys
import sysconfig

wheel, out = map(pathlib.Path, sys.argv[1:])
platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
shutil.copy(wheel, out / wheel.name.replace("-any.whl", f"-{platform}.whl"))
PYTHON
ls "$out"
