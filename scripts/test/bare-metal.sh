#!/bin/sh
# Builds examples/bare-metal for a Cortex-M4 and prints a Markdown table: code, memory and instructions of each
# controller. qemu executes the programs; scripts/test/count-instructions.c counts.
#
# It needs the target thumbv7em-none-eabihf, qemu-system-arm, binutils and a C compiler. With --missing it only
# prints what this machine lacks, or nothing.
set -eu
. "$(dirname "$0")/../usage.sh"
accept --missing "$@"
cd "$(dirname "$0")/../.."

target=thumbv7em-none-eabihf
missing=
if ! rustup target list --installed 2> /dev/null | grep -qx "$target"; then
    missing="no $target: rustup target add $target"
elif ! command -v qemu-system-arm > /dev/null; then
    missing='no qemu-system-arm: apt-get install qemu-system-arm'
fi
if [ "${1:-}" = --missing ]; then
    [ -z "$missing" ] || echo "$missing"
    exit
elif [ -n "$missing" ]; then
    echo "bare-metal: $missing" >&2
    exit 2
fi

made=${CARGO_TARGET_DIR:-$PWD/target}/bare-metal
mkdir -p "$made"
cargo build --quiet --release --locked --manifest-path examples/bare-metal/Cargo.toml \
    --target-dir "$made" --target "$target"
programs=$made/$target/release
cc -O2 -Wall -Wextra -shared -fPIC -o "$made/count.so" scripts/test/count-instructions.c

# code PROGRAM: bytes of instructions and constants.
code() {
    size "$programs/$1" | awk 'NR == 2 { print $1 }'
}
none=$(code none)
fixed=$(code fixed_rate)

# of PROGRAM AWK CODE: runs it, and then the awk program on its names and numbers and the counted instructions.
of() {
    qemu-system-arm -machine mps2-an386 -nographic -semihosting -plugin "$made/count.so" \
        -kernel "$programs/$1" < /dev/null > "$made/out" 2> "$made/parts"
    { cat "$made/out" && sed 's/^part \([a-z]*\) instructions/instructions_\1/' "$made/parts"; } | tr '\n' ' ' |
        awk -v code="$3" "{ for (i = 1; i < NF; i += 2) of[\$i] = \$(i + 1) } END { $2 }"
}

echo '| controller | code, kB | state, bytes | peak of its heap, bytes | instructions a packet | largest stack of the program, bytes |'
echo '|---|---:|---:|---:|---:|---:|'
for program in gcc nada scream scream_v2 sluice; do
    # shellcheck disable=SC2016 # a program for awk
    of "$program" 'printf "| `%s` | %.1f | %d | %d | %d | %d |\n", of["controller"], code / 1e3,
        of["controller_bytes"], of["controller_heap"], of["instructions_controller"] / of["packets"],
        of["stack"]' $(($(code "$program") - fixed))
done
# shellcheck disable=SC2016
of nada 'printf "| the sender around it | %.1f | %d | %d | %d | |\n", code / 1e3, of["sender_bytes"],
    of["sender_heap"], of["instructions_sender"] / of["packets"]' $((fixed - none))

# Each controller in a piece of memory of its own, in which it runs to the end or not at all.
echo
echo '| controller | its fixed memory, bytes | packets sent |'
echo '|---|---:|---:|'
while read -r program memory; do
    WEIR_CONTROLLER_MEMORY=$memory cargo build --quiet --release --locked \
        --manifest-path examples/bare-metal/Cargo.toml --target-dir "$made" --target "$target" \
        --features fixed-memory --bin "$program"
    # shellcheck disable=SC2016
    of "$program" 'printf "| `%s` | %d | %d |\n", of["controller"], code, of["packets"]' "$memory"
done << 'END'
gcc 32768
nada 8192
scream 2048
scream_v2 4096
sluice 256
END
