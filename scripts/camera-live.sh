#!/bin/bash
# Runs examples/camera live in the emulated network of lund/camera and prints a Markdown table: this machine at
# each resolution, and programs for ARM in qemu at 480p. Each run takes 25 s; the capacity falls from 2000 to
# 1500 kbit/s after 20 s. How many pictures are late shows whether the machine kept up.
#
# With --whole it makes one run instead: the program for aarch64 in qemu at 480p over all 200 s of lund/rmcat-ns3,
# and a table of what it sent at each capacity.
#
# It needs root for the emulator, a built `weir`, and for ARM what scripts/missing-for-arm.sh asks for.
set -euo pipefail
. "$(dirname "$0")/usage.sh"
accept --whole "$@"
cd "$(dirname "$0")/.."

seconds=25
target=${CARGO_TARGET_DIR:-$PWD/target}
weir=${WEIR:-$target/release/weir}
[ -x "$weir" ] || { echo "camera-live: no $weir: make build, or name the program in WEIR" >&2 && exit 2; }
for reason in "$(scripts/missing-for-emulator.sh)" "$(scripts/missing-for-arm.sh)"; do
    [ -z "$reason" ] || { echo "camera-live: $reason" >&2 && exit 2; }
done

camera() { # CARGO-OPTION...
    cargo build --quiet --release --locked --manifest-path examples/camera/Cargo.toml \
        --target-dir "$target/camera" "$@"
}
camera --target aarch64-unknown-linux-gnu
cargo build --quiet --locked --manifest-path examples/udp/Cargo.toml --target-dir "$target/examples"

# live SCENARIO SECONDS RESOLUTION COMMAND...: what the camera prints, a line each second.
live() {
    local scenario=$1 time=$2 resolution=$3
    shift 3
    "$weir" link "scenarios/$scenario.toml" --peer "$target/examples/debug/receiver 10.45.0.2:5004 nada" -- \
        "$@" live 10.45.0.2:5004 "$resolution" nada "$time"
}

if [ "${1:-}" = --whole ]; then
    live lund/rmcat-ns3 200 480p qemu-aarch64 "$target/camera/aarch64-unknown-linux-gnu/release/camera" |
        awk '
            BEGIN { split("2000 1500 1000 500 1000 1500 2000 1500 1000 500", capacity, " ") }
            / target_kbps / || /^total / {
                for (i = 1 + ($1 == "total"); i < NF; i += 2) of[$i] = $(i + 1)
                if ($1 == "total") next
                # The first 5 s after each change are for the controller to follow.
                step = int((of["time_s"] - 1) / 20) + 1
                if (of["time_s"] - 20 * (step - 1) > 5) { sent[step] += of["sent_kbps"]; n[step]++ }
            }
            END {
                print "| time, s | capacity, kbit/s | kbit/s sent after 5 s | share |"
                print "|---|---:|---:|---:|"
                for (step = 1; step <= 10; step++)
                    printf "| %d to %d | %d | %.0f | %.2f |\n", 20 * (step - 1), 20 * step, capacity[step],
                        sent[step] / n[step], sent[step] / n[step] / capacity[step]
                printf "\nPictures: %d, late: %d, left out by the encoder: %d. Packets: %d.\n", of["pictures"],
                    of["late"], of["left_out"], of["packets"]
            }'
    exit
fi
camera
camera --target armv7-unknown-linux-gnueabihf

row() { # NAME RESOLUTION COMMAND...
    local name=$1 resolution=$2
    shift 2
    live lund/camera "$seconds" "$resolution" "$@" | awk -v name="$name" -v resolution="$resolution" '
            / target_kbps / || /^total / {
                for (i = 1 + ($1 == "total"); i < NF; i += 2) of[$i] = $(i + 1)
                if ($1 != "total" && of["time_s"] > 10 && of["time_s"] <= 20) { before += of["sent_kbps"]; n++ }
                if ($1 != "total" && of["time_s"] > 22) { after += of["sent_kbps"]; m++ }
            }
            END {
                printf "| %s | %s | %d | %d | %d | %d | %.0f | %.0f |\n", name, resolution, of["pictures"],
                    of["late"], of["left_out"], of["packets"], before / n, after / m
            }'
}
echo "| program for | picture | pictures in $seconds s | late | left out by the encoder | packets | kbit/s sent, of 2000 | kbit/s sent, of 1500 |"
echo '|---|---|---:|---:|---:|---:|---:|---:|'
for resolution in 480p 720p 1080p; do
    row 'this machine' "$resolution" "$target/camera/release/camera"
done
# The encoder finds its vector instructions there: see camera-instructions.sh.
mkdir -p "$target/camera/device/proc"
printf 'Features\t: half thumb fastmult vfp edsp neon vfpv3 \n' > "$target/camera/device/proc/cpuinfo"
row 'aarch64, in qemu' 480p qemu-aarch64 "$target/camera/aarch64-unknown-linux-gnu/release/camera"
row 'armv7, in qemu' 480p qemu-arm -L "$target/camera/device" \
    "$target/camera/armv7-unknown-linux-gnueabihf/release/camera"
