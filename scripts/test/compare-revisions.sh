#!/bin/bash
# Measures what a stranger waits for, at two revisions in turn on this machine: clones each, runs a command from nothing
# (empty target folder, empty ~/.cargo but for its settings), and prints a row of a Markdown table: minutes, minutes of
# processor time, gigabytes on disk, how often weir-rtc was compiled, how many test programs were linked, and the last line
# that the command printed. Debian packages that are there stay there. Logs are in the folder that the last line names.
#
#   compare-revisions.sh f0fe5137 HEAD                       `make test` of both
#   COMMAND='bash .ci/run' CI=true compare-revisions.sh f0fe5137 HEAD
set -euo pipefail
case ${1:---help} in
    -*) sed -n '2,${ /^#/!q; s/^# \{0,1\}//p; }' "$0" && exit ;;
esac
cd "$(dirname "$0")/../.."
command=${COMMAND:-make test}
logs=$(mktemp -d "${TMPDIR:-/tmp}/weir-compare.XXXXXX")
settings=${CARGO_HOME:-$HOME/.cargo}

cat > "$logs/wrapper" << END
#!/bin/sh
# What cargo compiles: the crate's name, and whether it is a test program.
case " \$* " in *' --crate-name weir '*) echo weir >> "\$COMPILED" ;; esac
case " \$* " in *' --test '*' --emit=dep-info,link '* | *' --emit=dep-info,link '*' --test '*) echo test >> "\$COMPILED" ;; esac
exec "\$@"
END
chmod 755 "$logs/wrapper"

echo '| revision | wall, min | processor, min | disk, GB | compilations of weir-rtc | test programs | last line |'
echo '|---|---:|---:|---:|---:|---:|---|'
for revision in "$@"; do
    clone=$logs/$revision
    git clone --quiet . "$clone"
    git -C "$clone" checkout --quiet "$(git rev-parse "$revision")"
    mkdir -p "$clone.cargo"
    for file in config.toml config credentials.toml; do
        [ ! -f "$settings/$file" ] || cp "$settings/$file" "$clone.cargo"
    done
    : > "$clone.compiled"
    begun=$(date +%s)
    # shellcheck disable=SC2086 # a command with its words
    (cd "$clone" && CARGO_HOME=$clone.cargo PATH="$clone.cargo/bin:$PATH" RUSTC_WRAPPER=$logs/wrapper COMPILED=$clone.compiled \
        bash -c 'TIMEFORMAT="%U %S"; time '"$command") < /dev/null > "$clone.log" 2> "$clone.errors" || true
    ended=$(date +%s)
    read -r user system < <(tail -n 1 "$clone.errors")
    # shellcheck disable=SC2016 # a code span
    printf '| `%s` | %s | %s | %s | %d | %d | %s |\n' "$revision" \
        "$(awk "BEGIN { printf \"%.1f\", ($ended - $begun) / 60 }")" \
        "$(awk "BEGIN { printf \"%.1f\", ($user + $system) / 60 }")" \
        "$(du -s --block-size=1M "$clone" | awk '{ printf "%.1f", $1 / 1024 }')" \
        "$(grep -c '^weir$' "$clone.compiled" || true)" "$(grep -c '^test$' "$clone.compiled" || true)" \
        "$(tail -n 1 "$clone.log" | tr '|' ' ')"
    rm -rf "$clone" "$clone.cargo"
done
echo "logs: $logs" >&2
