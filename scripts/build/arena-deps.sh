#!/bin/sh
# Installs the stacks of the arena, each by the command in its stack.toml. A stack that fails is named
# at the end, and the others are still there. Needs Go, Node, Python and Rust; `weir arena doctor` says
# what is missing.
set -u
. "$(dirname "$0")/../usage.sh"
accept '' "$@"
cd "$(dirname "$0")/../.." || exit

failed=
for file in ./arena/*/stack.toml; do
    folder=${file%/stack.toml}
    command=$(sed -n 's/^install = "\(.*\)"$/\1/p' "$file")
    echo "arena: $folder: $command"
    (cd "$folder" && sh -c "$command") || failed="$failed ${folder#./arena/}"
done
[ -z "$failed" ] || { echo "arena-deps: not installed:$failed" >&2 && exit 1; }
