#!/bin/sh
# install-gst.sh install|uninstall: builds the GStreamer plugin and installs it, or removes it. As
# root it first installs the Debian packages that GStreamer lacks. The plugin goes to GStreamer's own
# folder of plugins. With PREFIX in the environment it goes to $PREFIX/lib/gstreamer-1.0, below
# $DESTDIR. GStreamer finds it there if GST_PLUGIN_PATH names that folder. PROFILE=dev builds faster.
set -eu
. "$(dirname "$0")/../usage.sh"
accept 'install uninstall' "$@"
cd "$(dirname "$0")/../.."

name=libgstweir.so
profile=${PROFILE:-release}
made=$profile
[ "$profile" != dev ] || made=debug
case ${PREFIX:-/} in
    /*) ;;
    *) echo "install-gst: PREFIX must be a whole path, not '$PREFIX'" >&2 && exit 2 ;;
esac

install_packages() {
    missing=$(scripts/test/missing-for-gst.sh)
    [ -n "$missing" ] || return 0
    if [ "$(id -u)" -ne 0 ] || ! command -v apt-get > /dev/null; then
        echo "install-gst: install these Debian packages or their like: $missing" >&2
        exit 1
    fi
    apt-get update -q
    # shellcheck disable=SC2086 # one word a package
    DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends $missing
}

folder() {
    if [ -n "${PREFIX:-}" ]; then
        echo "${DESTDIR:-}$PREFIX/lib/gstreamer-1.0"
    else
        echo "${DESTDIR:-}$(pkg-config --variable=pluginsdir gstreamer-1.0)"
    fi
}

case ${1:-} in
    install)
        install_packages
        target=${CARGO_TARGET_DIR:-library/gst/target}
        cargo build --profile "$profile" --locked --manifest-path library/gst/Cargo.toml --target-dir "$target"
        folder=$(folder)
        install -D -m 644 "$target/$made/$name" "$folder/$name"
        echo "$folder/$name"
        ;;
    uninstall)
        rm -f "$(folder)/$name"
        ;;
    *)
        echo 'install-gst: write install or uninstall' >&2
        exit 2
        ;;
esac
