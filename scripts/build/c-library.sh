#!/bin/sh
# c-library.sh build|install|uninstall: builds libweir for C programs, and installs header, libraries
# and weir.pc below $DESTDIR$PREFIX, or removes them. `install` builds first if there is a cargo.
#
#     scripts/build/c-library.sh build
#     sudo PREFIX=/usr scripts/build/c-library.sh install
#     CARGO_BUILD_TARGET=aarch64-unknown-linux-gnu CC=aarch64-linux-gnu-gcc scripts/build/c-library.sh build
#
# PREFIX is /usr/local unless it is set, LIBDIR is $PREFIX/lib. PROFILE=dev builds faster and gives
# slower libraries. The shared library is linked here, from the static one: its symbols have versions,
# and rustc cannot link a library with a version script of ours.
set -eu
. "$(dirname "$0")/../usage.sh"
accept 'build install uninstall' "$@"
cd "$(dirname "$0")/../.."

source=library/capi
version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n 1)
# The number of the binary interface: see docs/reference/c-abi.md.
abi=0
soname=libweir.so.$abi
shared=$soname.${version#*.}
profile=${PROFILE:-dist}
folder=$profile
[ "$profile" != dev ] || folder=debug
made=${CARGO_TARGET_DIR:-target}/${CARGO_BUILD_TARGET:+$CARGO_BUILD_TARGET/}$folder
prefix=${PREFIX:-/usr/local}
libdir=${LIBDIR:-$prefix/lib}
for path in "$prefix" "$libdir"; do
    case $path in
        /*) ;;
        *) echo "c-library: PREFIX and LIBDIR must be whole paths, not '$path'" >&2 && exit 2 ;;
    esac
done
root=${DESTDIR:-}
list=$prefix/share/doc/libweir/installed.txt

build() {
    # Only the static library, because a build of several kinds at once has no link-time optimisation.
    cargo rustc --quiet --package weir-capi --lib --profile "$profile" --crate-type staticlib
    mkdir -p "$made/c"
    cp "$made/libweir_capi.a" "$made/c/libweir.a"
    "${CC:-cc}" -shared -o "$made/c/$shared" \
        -Wl,-soname,"$soname" -Wl,--version-script="$source/weir.map" \
        -Wl,--whole-archive "$made/c/libweir.a" -Wl,--no-whole-archive \
        -Wl,--gc-sections -Wl,-z,defs -Wl,-z,relro -Wl,-z,now -Wl,--strip-all \
        -lgcc_s -lpthread -ldl -lm -lc
    # The only code of others besides Rust's standard library.
    libm=$(cargo metadata --locked --format-version 1 | grep -o '"[^"]*/libm-[^"/]*/Cargo.toml"' | tr -d '"' | head -n 1)
    cp "${libm%/*}/LICENSE.txt" "$made/c/LICENSE-libm"
    # A program is compiled with -I and -L of this one folder.
    cp "$source/include/weir.h" "$made/c/"
    ln -sf "$shared" "$made/c/$soname"
    ln -sf "$soname" "$made/c/libweir.so"
    echo "$made/c"
}

uninstall() {
    while IFS= read -r file; do
        rm -f "$root$file"
    done < "$root$list"
    rm -f "$root$list"
    rmdir "$root${list%/*}"
}

# put MODE FILE DESTINATION: installs a file, and adds it to the list.
put() {
    install -D -m "$1" "$2" "$root$3"
    echo "$3" >> "$work/installed.txt"
}

# link TARGET DESTINATION: the same for a symbolic link.
link() {
    ln -sf "$1" "$root$2"
    echo "$2" >> "$work/installed.txt"
}

case ${1:-} in
    build) build ;;
    install)
        if command -v cargo > /dev/null; then
            build > /dev/null
        elif [ ! -f "$made/c/$shared" ]; then
            echo "c-library: there is no library yet: run '$0 build' first, as yourself" >&2
            exit 1
        fi
        [ ! -f "$root$list" ] || uninstall
        work=$(mktemp -d)
        trap 'rm -rf "$work"' EXIT
        sed "s|@PREFIX@|$prefix|; s|@LIBDIR@|$libdir|; s|@VERSION@|$version|" "$source/weir.pc.in" > "$work/weir.pc"
        put 644 "$source/include/weir.h" "$prefix/include/weir.h"
        put 644 "$made/c/libweir.a" "$libdir/libweir.a"
        put 755 "$made/c/$shared" "$libdir/$shared"
        link "$shared" "$libdir/$soname"
        link "$soname" "$libdir/libweir.so"
        put 644 "$work/weir.pc" "$libdir/pkgconfig/weir.pc"
        for licence in LICENSE-APACHE LICENSE-MIT "$made/c/LICENSE-libm"; do
            put 644 "$licence" "${list%/*}/${licence##*/}"
        done
        install -m 644 "$work/installed.txt" "$root$list"
        echo "$root$libdir/$shared"
        ;;
    uninstall)
        if [ ! -f "$root$list" ]; then
            echo "c-library: nothing is installed below $root$prefix: say PREFIX= as for install" >&2
            exit 1
        fi
        uninstall
        ;;
    *)
        echo "usage: $0 build|install|uninstall; see $0 --help" >&2
        exit 2
        ;;
esac
