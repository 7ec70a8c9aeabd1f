#!/bin/sh
# driver.sh --version: prints str0m's version, if the example was built.
cd "$(dirname "$0")" || exit
[ -x target/release/chat ] || { echo 'target/release/chat is missing' >&2 && exit 1; }
sed -n '/^name = "str0m"$/{n;s/version = "\(.*\)"/str0m \1, its example chat/p}' example.lock
