#!/bin/sh
# install-program.sh install|uninstall: installs the program, its manual pages, completions and
# licences below $DESTDIR$PREFIX, or removes them, and the Python package of `weir fleet` and `weir sweep`. The list of
# installed files is kept next to the licences. Uninstalling removes exactly these files, whichever version installed them.
set -eu
. "$(dirname "$0")/../usage.sh"
accept 'install uninstall' "$@"
cd "$(dirname "$0")/../.."

# Another program than the one of `make build`, for scripts/release/dist.sh.
weir=${WEIR_PROGRAM:-${CARGO_TARGET_DIR:-target}/release/weir}
prefix=${PREFIX:-/usr/local}
case $prefix in
    /*) ;;
    *) echo "install: PREFIX must be a whole path, not '$prefix'" >&2 && exit 2 ;;
esac
# The Python package's compiled part; dist.sh has wheels instead.
compiled=${CARGO_TARGET_DIR:-target}/release/lib_weir.so
[ -z "${WEIR_PROGRAM:-}" ] || compiled=
package=lib/weir/python/weir_rtc
# `make build` and scripts/release/dist.sh write it.
notices=${CARGO_TARGET_DIR:-target}/THIRD-PARTY.md
root=${DESTDIR:-}$prefix
docs=share/doc/weir
list=$docs/installed.txt

uninstall() {
    while IFS= read -r file; do
        rm -f "$root/$file"
    done < "$root/$list"
    rm -f "$root/$list"
    rmdir "$root/$docs"
    # Python keeps compiled files beside the package.
    rm -rf "$root/$package/__pycache__"
    for folder in $package lib/weir/python lib/weir; do
        [ ! -d "$root/$folder" ] || rmdir "$root/$folder"
    done
}

# put MODE FILE DESTINATION: installs a file, and adds it to the list.
put() {
    install -D -m "$1" "$2" "$root/$3"
    echo "$3" >> "$made/installed.txt"
}

case ${1:-} in
    install)
        if [ ! -x "$weir" ] || [ ! -f "$notices" ]; then
            echo "install: there is no program yet: run 'make build' first, as yourself" >&2
            exit 1
        fi
        [ ! -f "$root/$list" ] || uninstall
        made=$(mktemp -d)
        trap 'rm -rf "$made"' EXIT
        "$weir" man "$made/man"
        for shell in bash zsh fish; do
            "$weir" completions "$shell" > "$made/$shell"
        done
        put 755 "$weir" bin/weir
        for page in "$made"/man/*.1; do
            put 644 "$page" "share/man/man1/${page##*/}"
        done
        put 644 "$made/bash" share/bash-completion/completions/weir
        put 644 "$made/zsh" share/zsh/site-functions/_weir
        put 644 "$made/fish" share/fish/vendor_completions.d/weir.fish
        for licence in LICENSE-APACHE LICENSE-MIT "$notices"; do
            put 644 "$licence" "$docs/${licence##*/}"
        done
        if [ -f "$compiled" ]; then
            # A library among the sources is what the package's tests left there, perhaps an older one.
            for file in lab/python/python/weir_rtc/*; do
                case $file in
                    *.so) ;;
                    *) [ ! -f "$file" ] || put 644 "$file" "$package/${file##*/}" ;;
                esac
            done
            put 755 "$compiled" $package/_weir.abi3.so
        fi
        install -m 644 "$made/installed.txt" "$root/$list"
        echo "$root/bin/weir"
        ;;
    uninstall)
        if [ ! -f "$root/$list" ]; then
            echo "uninstall: nothing is installed below $root: say PREFIX= as for \`make install\`" >&2
            exit 1
        fi
        uninstall
        ;;
    *)
        echo 'usage: install-program.sh install|uninstall' >&2
        exit 2
        ;;
esac
