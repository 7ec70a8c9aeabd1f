#!/bin/sh
# driver.sh FINDING before|after FOLDER: makes the driver of a finding's stack in FOLDER, as it is installed or with the
# finding's change.patch, and prints its command for `weir arena --driver`. The stack must be installed (make arena-deps).
set -eu
[ $# -eq 3 ] || { sed -n '2,3s/^# //p' "$0" >&2 && exit 2; }
finding=$1 state=$2
arena=$(cd "$(dirname "$0")/.." && pwd)
root=${arena%/*}
patch=$arena/findings/$finding/change.patch
[ -f "$patch" ] || { echo "driver.sh: no finding '$finding'" >&2 && exit 2; }
mkdir -p "$3"
folder=$(cd "$3" && pwd)
# The driver may run as another user.
chmod 755 "$folder"

# change FOLDER: applies the change there, if it is wanted.
change() {
    [ "$state" = before ] || patch --quiet --strip 1 --directory "$1" < "$patch"
}

case $finding in
    aiortc-*)
        mkdir -p "$folder/site"
        cp -r "$arena"/aiortc/.venv/lib/python3*/site-packages/aiortc "$folder/site/"
        change "$folder/site"
        options=
        [ "$finding" != aiortc-key-frames ] || options=' --as-decoded'
        echo "env PYTHONPATH=$folder/site $arena/aiortc/.venv/bin/python $arena/aiortc/driver.py$options"
        ;;
    werift-*)
        mkdir -p "$folder/arena/werift"
        cp -r "$arena"/werift/*.mjs "$arena"/werift/node_modules "$folder/arena/werift/"
        ln -sfn "$arena/node" "$folder/arena/node"
        ln -sfn "$root/library" "$folder/library"
        change "$folder/arena/werift/node_modules/werift"
        echo "node $folder/arena/werift/driver.mjs"
        ;;
    webrtc-rs-*)
        name=rtc-interceptor
        mkdir -p "$folder/arena"
        cp -r "$arena/webrtc-rs" "$folder/arena/"
        # The encoder's script is beside the folder of the stack.
        ln -sfn "$arena/encoder.py" "$folder/arena/encoder.py"
        cd "$folder/arena/webrtc-rs"
        sed -i "/^workspace = /d; s#\"../../library#\"$root/library#; s#\"../rust#\"$arena/rust#" Cargo.toml
        printf '\n[workspace]\n' >> Cargo.toml
        cp "$root/examples/Cargo.lock" .
        source=$(cargo metadata --format-version 1 | jq -r ".packages[] | select(.name == \"$name\").manifest_path")
        cp -r "${source%/Cargo.toml}" "$folder/$name"
        change "$folder/$name"
        cargo build --quiet --release --target-dir target --config "patch.crates-io.$name.path='$folder/$name'" >&2
        echo "$folder/arena/webrtc-rs/target/release/arena-webrtc-rs"
        ;;
    pion-*)
        module=github.com/pion/interceptor
        cd "$arena/pion"
        cp -r "$(go list -m -f '{{.Dir}}' $module)" "$folder/interceptor"
        chmod -R u+w "$folder/interceptor"
        change "$folder/interceptor"
        cp go.mod "$folder/changed.mod"
        cp go.sum "$folder/changed.sum"
        go mod edit -replace "$module=$folder/interceptor" "$folder/changed.mod"
        # The encoder's script is beside the folder of the stack.
        mkdir -p "$folder/pion"
        ln -sfn "$arena/encoder.py" "$folder/encoder.py"
        go build -mod=mod "-modfile=$folder/changed.mod" -o "$folder/pion/driver" .
        echo "$folder/pion/driver gcc"
        ;;
    *)
        echo "driver.sh: $finding is about a server, which has no driver: ./arena/findings/$finding/README.md" >&2
        exit 2
        ;;
esac
