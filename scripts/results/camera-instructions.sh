#!/bin/sh
# Counts the instructions of examples/camera on ARM and prints them as Markdown tables. Each run is 10 s of
# media over the simulated network of lund/camera, under nada. qemu executes the program, and a plugin counts
# the instructions of each part. An instruction count is not a time: qemu knows no processor's speed.
#
# It needs what scripts/test/missing-for-arm.sh asks for, and takes about ten minutes.
set -eu
. "$(dirname "$0")/../usage.sh"
accept '' "$@"
cd "$(dirname "$0")/../.."

seconds=${CAMERA_SECONDS:-10}
reason=$(scripts/test/missing-for-arm.sh)
if [ -n "$reason" ]; then
    echo "camera-instructions: $reason" >&2
    exit 2
fi
made=${CARGO_TARGET_DIR:-$PWD/target}/camera
mkdir -p "$made"
cc -O2 -Wall -Wextra -shared -fPIC -o "$made/count.so" scripts/test/count-instructions.c

# On armv7 the encoder looks into /proc/cpuinfo whether it may use vector instructions (NEON), which every
# recent processor has. qemu opens files below this folder first.
mkdir -p "$made/device/proc"
printf 'Features\t: half thumb fastmult vfp edsp neon vfpv3 \n' > "$made/device/proc/cpuinfo"

# One line for each run: target, resolution, then the names and numbers of both outputs.
rm -f "$made/counts"
for target in aarch64-unknown-linux-gnu armv7-unknown-linux-gnueabihf; do
    cargo build --quiet --release --locked --manifest-path examples/camera/Cargo.toml \
        --target-dir "$made" --target "$target"
    case $target in
        aarch64*) qemu=qemu-aarch64 name=aarch64 ;;
        *) qemu=qemu-arm name=armv7 ;;
    esac
    for resolution in 480p 720p 1080p; do
        "$qemu" -L "$made/device" -plugin "$made/count.so" "$made/$target/release/camera" simulated "$resolution" nada \
            "$seconds" > "$made/out" 2> "$made/parts"
        echo "target $name resolution $resolution $(grep '^total' "$made/out" | cut -d ' ' -f 2-)" \
            "$(sed 's/^part \([a-z]*\) instructions/\1/' "$made/parts" | tr '\n' ' ')" >> "$made/counts"
    done
done

awk '
    { delete of; for (i = 1; i < NF; i += 2) of[$i] = $(i + 1) }
    function a_second(part) { return sprintf("%.2f", of[part] / of["seconds"] / 1e6) }
    function a_packet(part) { return sprintf("%d", of[part] / of["packets"]) }
    {
        own = of["controller"] + of["pacer"] + of["feedback"]
        head = sprintf("| %s | %s |", of["target"], of["resolution"])
        table1 = table1 head sprintf(" %.0f | %.1f | %s | %s | %s | %s | %s | %.3f |\n",
            of["packets"] / of["seconds"], of["encoder"] / of["seconds"] / 1e6, a_second("packetizer"),
            a_second("pacer"), a_second("feedback"), a_second("controller"), sprintf("%.2f", own / of["seconds"] / 1e6),
            100 * own / of["encoder"])
        table2 = table2 head sprintf(" %s | %s | %s | %s | %.1f |\n", a_packet("controller"),
            a_packet("pacer"), a_packet("feedback"), sprintf("%d", own / of["packets"]), of["heap_peak_bytes"] / 1e6)
    }
    END {
        print "Million instructions a second of media:"
        print ""
        print "| processor | picture | packets/s | encoder | packetizer | pacer | feedback | controller | the last three | share of the encoder, % |"
        print "|---|---|---:|---:|---:|---:|---:|---:|---:|---:|"
        print table1
        print "Instructions a packet, and the peak of the heap of the whole program:"
        print ""
        print "| processor | picture | controller | pacer | feedback | together | heap, MB |"
        print "|---|---|---:|---:|---:|---:|---:|"
        printf "%s", table2
    }' "$made/counts"
