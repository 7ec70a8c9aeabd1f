#!/bin/sh
# run.sh test | compare | build FOLDER: noq with receive timestamps. `build` makes a copy of noq-proto, at the version that
# library/noq pins, with change.patch, in FOLDER. `test` runs the copy's tests, and those of library/noq with it. `compare`
# prints the table of library/noq's example `compare`, both of whose ends ask for receive timestamps.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
root=${here%/*/*}
manifest=$root/library/noq/Cargo.toml

# build FOLDER: makes the copy.
build() {
    source=$(cargo metadata --format-version 1 --manifest-path "$manifest" |
        jq -r '.packages[] | select(.name == "noq-proto").manifest_path')
    mkdir -p "$1"
    cp -r "${source%/Cargo.toml}/." "$1"
    chmod -R u+w "$1"
    patch --quiet --strip 1 --directory "$1" < "$here/change.patch"
    # Not part of the workspace of whoever is above.
    grep -q '^\[workspace\]' "$1/Cargo.toml" || printf '\n[workspace]\n' >> "$1/Cargo.toml"
}

# patched COMMAND...: cargo with the copy in place of noq-proto.
patched() {
    command=$1
    shift
    # A target and a lock file of its own: the copy is no package of the registry.
    RUSTFLAGS="--cfg noq_receive_timestamps" CARGO_TARGET_DIR="$root/target/noq-receive-ts" cargo "$command" \
        --manifest-path "$manifest" --config "patch.crates-io.noq-proto.path='$copy'" "$@"
}

case ${1-} in
    build)
        [ $# -eq 2 ] || { sed -n '2,4s/^# //p' "$0" >&2 && exit 2; }
        build "$2"
        ;;
    test | compare)
        copy=$root/target/noq-receive-ts/noq-proto
        rm -rf "$copy"
        build "$copy"
        lock=$root/examples/Cargo.lock
        kept=$(mktemp)
        cp "$lock" "$kept"
        trap 'cp "$kept" "$lock"; rm "$kept"' EXIT
        if [ "$1" = compare ]; then
            patched run --quiet --example compare
        else
            CARGO_TARGET_DIR="$root/target/noq-receive-ts" cargo test --quiet --lib --manifest-path "$copy/Cargo.toml"
            patched test --quiet
        fi
        ;;
    *)
        sed -n '2,4s/^# //p' "$0" >&2
        exit 2
        ;;
esac
