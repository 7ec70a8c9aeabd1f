#!/usr/bin/env python3
"""Measures the parameters of the simulator's encoder source (docs/reference/video.md) from a call.

    scripts/results/measure-encoder.py call SCENARIO DIR    makes the call as root, with weir on the path
    scripts/results/measure-encoder.py read DIR...          prints the tables
    scripts/results/measure-encoder.py table RECORDS...     prints what the encoder did in each 5 s of the
                                                    calls that `weir call --out RECORDS` recorded

A call runs each browser with a log of its own and with tcpdump (apt-get install tcpdump). RTP
headers are not encrypted, and the packets of a frame have one RTP timestamp. The log contains the
target bitrates of the encoder.
"""

import bisect
import collections
import itertools
import json
import math
import os
import pathlib
import re
import stat
import struct
import subprocess
import sys
import tempfile

WRAPPER = """#!/bin/sh
case "$*" in *--version*) exec chromium "$@";; esac
host=$(ip -4 -o addr show weir0 | grep -o '10[.]45[.]0[.][0-9]*' | head -n 1)
tcpdump -i weir0 -s 100 -B 8192 --time-stamp-precision=nano -Z root -w "{folder}/$host.pcap" 2>/dev/null &
exec chromium --enable-logging=stderr --vmodule='*/webrtc/*=1' "$@" 2>"{folder}/$host.log"
"""
SENDER = "10.45.0.1"
SRTP_TAG = 10
FPS = 30
SEAM = 61  # frames of the camera's loop
MEDIAN_TO_SD = 0.6745
RTP_CLOCK = 90_000
PERIOD_S = 5  # of a row of the table of encoders
COARSEST = 105  # of the quantizer's steps up to 106 as the log counts them


def call(scenario, folder):
    os.makedirs(folder)
    with tempfile.NamedTemporaryFile("w", suffix=".sh", delete=False) as wrapper:
        wrapper.write(WRAPPER.format(folder=os.path.abspath(folder)))
    os.chmod(wrapper.name, stat.S_IRWXU)
    command = ["weir", "call", scenario, "--out", os.path.join(folder, "record")]
    subprocess.run(command, env={**os.environ, "WEIR_BROWSER": wrapper.name}, check=True)
    os.remove(wrapper.name)


def packets(path):
    """Time, source address, captured payload and payload length of each UDP packet of a capture."""
    data = pathlib.Path(path).read_bytes()
    at = 24
    while at + 16 <= len(data):
        seconds, nanos, kept, _ = struct.unpack_from("<IIII", data, at)
        ip = data[at + 16 : at + 16 + kept]
        at += 16 + kept
        if len(ip) > 40 and ip[0] >> 4 == 4 and ip[9] == 17:
            head = (ip[0] & 15) * 4
            length = struct.unpack_from(">H", ip, head + 4)[0] - 8
            yield seconds + nanos / 1e9, ".".join(map(str, ip[12:16])), ip[head + 8 :], length


def read_capture(path):
    """Payload of frames as (time, bits) by RTP timestamp, and times of the receiver's feedback."""
    frames, feedback = collections.OrderedDict(), []
    for time, source, payload, length in packets(path):
        if payload[0] >> 6 != 2:
            continue
        if 192 <= payload[1] <= 223:  # RTCP beside RTP
            if source != SENDER and payload[1] == 205:
                feedback.append(time)
        elif source == SENDER:
            _, stamp, ssrc = struct.unpack_from(">HII", payload, 2)
            head = 12 + (4 + 4 * struct.unpack_from(">H", payload, 14)[0] if payload[0] & 16 else 0)
            frame = frames.setdefault((ssrc, stamp), [time, 0, False])
            if not frame[2]:  # packets after the marker are parity
                frame[1] += 8 * (length - head - SRTP_TAG)
            frame[2] |= payload[1] & 128 != 0
    streams = collections.Counter(ssrc for ssrc, _ in frames)
    video = streams.most_common(1)[0][0]
    return {
        stamp: tuple(frame[:2]) for (ssrc, stamp), frame in frames.items() if ssrc == video
    }, feedback


def read_log(path):
    """Values in the log, by time of day: estimate with push-back, bitrate, utilization, quality."""
    forms = {
        "estimate": r"pushback_target_bps=(\d+) estimate_bps=(\d+)",
        "asked": r"OnBitrateUpdated, bitrate (\d+)",
        "use": r"total utilization factor = ([\d.]+)",
        "quality": r"AugmentEncodedImage .* qp (\d+)",
    }
    told = {name: [] for name in forms}
    for line in pathlib.Path(path).read_text(errors="replace").splitlines():
        stamp = re.match(r"\[\d+:\d+:\d{4}/(\d\d)(\d\d)(\d\d\.\d+):", line)
        for name, form in forms.items():
            match = stamp and re.search(form, line)
            if match:
                hours, minutes, seconds = stamp.groups()
                time = int(hours) * 3600 + int(minutes) * 60 + float(seconds)
                told[name].append((time, *map(float, match.groups())))
    return told


def at(series, time):
    return series[max(bisect.bisect_right(series, (time, math.inf)) - 1, 0)][1:]


def read(folder):
    """Per frame: asked rate, relative size, and whether it is free of push-back and repair."""
    frames, feedback = read_capture(os.path.join(folder, SENDER + ".pcap"))
    told = read_log(os.path.join(folder, SENDER + ".log"))
    clean, shares = [], []
    for time, bits in frames.values():
        time %= 86400
        left, estimate = at(told["estimate"], time)
        (asked,), (use,) = at(told["asked"], time), at(told["use"], time)
        clean.append(
            (asked / use, bits * FPS * use / asked, left == estimate and asked > 0.93 * estimate)
        )
        if left == estimate:
            shares.append(1 - asked / estimate)
    return clean, shares, [b - a for a, b in itertools.pairwise(feedback)]


def coarsest(folder):
    """Logarithms of the bytes of frames at the coarsest quality, each with the next one's or None."""
    frames, _ = read_capture(os.path.join(folder, SENDER + ".pcap"))
    qualities = read_log(os.path.join(folder, SENDER + ".log"))["quality"]
    first_stamp, (first_time, _) = next(iter(frames.items()))
    logs = []
    for stamp, (_, bits) in frames.items():
        # Frames may wait before they leave, so the time of a picture follows from its RTP
        # timestamp.
        time = (first_time + ((stamp - first_stamp) % 2**32) / RTP_CLOCK) % 86400
        place = bisect.bisect_left(qualities, (time,))
        near = min(
            qualities[max(place - 2, 0) : place + 3], key=lambda quality: abs(quality[0] - time)
        )
        logs.append(math.log(bits / 8) if near[1] >= COARSEST else None)
    return [(log, after) for log, after in itertools.pairwise(logs) if log]


def median(values):
    return sorted(values)[len(values) // 2]


def print_tables(folders):
    deviations, seams = collections.defaultdict(list), []
    for folder in folders:
        frames, shares, intervals = read(folder)
        overhead, interval = 100 * median(shares), 1e3 * median(intervals)
        print(
            f"{folder}: {len(frames)} frames, headers {overhead:.1f} %, feedback each {interval:.1f} ms"
        )
        for index in range(6, len(frames) - 6):
            around = frames[index - 6 : index + 7]
            if not all(clean for _, _, clean in around):
                continue
            rate, ratio, _ = frames[index]
            middle = median([math.log(max(near, 1e-3)) for _, near, _ in around])
            deviations[int(rate / 250e3)].append(abs(math.log(max(ratio, 1e-3)) - middle))
            if rate > 1.4e6 and ratio < 0.45:
                seams.append([near for _, near, _ in frames[index : index + 4]])
    print("\nrate from, kbit/s   frames   deviation of ln(size)")
    for step, values in sorted(deviations.items()):
        print(f"{250 * step:17}   {len(values):6}   {median(values) / MEDIAN_TO_SD:.3f}")
    pairs = [pair for folder in folders for pair in coarsest(folder)]
    if pairs:
        middle = median([log for log, _ in pairs])
        off = [log - middle for log, _ in pairs]
        follow = [(log - middle) * (after - middle) for log, after in pairs if after]
        variance = sum(value * value for value in off) / len(off)
        print(
            f"\ncoarsest quality: {len(pairs)} frames, {math.exp(middle):.0f} B in the middle,",
            end=" ",
        )
        print(f"deviation of ln(size) {math.sqrt(variance):.2f},", end=" ")
        print(f"correlation with the next {sum(follow) / len(follow) / variance:.2f}")
    if seams:
        print(f"\nseam of the camera's loop of {SEAM} frames, {len(seams)} times:", end=" ")
        print(", ".join(f"{median(column):.2f}" for column in zip(*seams)))


def mean(values):
    return sum(values) / len(values) if values else math.nan


def layer_of(interval, index):
    """The interval of one layer of simulcast, in the words of a whole stream."""
    layer = interval["layers"][index] if len(interval.get("layers", [])) > index else {}
    words = {
        "target_bps": "target_bps",
        "sent_media_bps": "media_bps",
        "sent_frame_size": "frame_size",
        "sent_frame_rate": "frame_rate",
        "sent_qp": "qp",
    }
    kept = {name: interval.get(name) for name in ("time_s", "estimated_bps")}
    return kept | {name: layer.get(word) for name, word in words.items()}


def streams(path):
    """The name and the intervals of what a recorded call sent: its video, or each of its layers."""
    call = json.loads(path.read_text())
    peer = next(peer for peer in call["peers"] if "sent_media_bps" in peer["intervals"][-1])
    intervals = peer["intervals"]
    layers = intervals[-1].get("layers", [])
    for index in range(len(layers)):
        yield f", layer {index + 1}", [layer_of(interval, index) for interval in intervals]
    if not layers:
        yield "", intervals


def encoder_rows(intervals):
    """What an encoder did, for each 5 s: a list of cells."""
    periods = collections.defaultdict(list)
    for interval in intervals:
        periods[int(interval["time_s"] // PERIOD_S)].append(interval)
    for period, chosen in sorted(periods.items()):
        if len(chosen) < PERIOD_S:
            continue
        frames = [interval.get("sent_frame_rate") or 0 for interval in chosen]
        quality = [
            (interval["sent_qp"], number)
            for interval, number in zip(chosen, frames)
            if interval.get("sent_qp") is not None
        ]
        bits = mean([interval.get("sent_media_bps") or 0 for interval in chosen])
        sizes = [tuple(i["sent_frame_size"]) for i in chosen if i.get("sent_frame_size")]
        counted = sum(number for _, number in quality)
        qp = sum(value * number for value, number in quality) / counted if counted else math.nan
        yield [
            f"{PERIOD_S * period}-{PERIOD_S * (period + 1)}",
            f"{mean([i.get('estimated_bps') or 0 for i in chosen]) / 1e3:.0f}",
            f"{mean([i.get('target_bps') or 0 for i in chosen]) / 1e3:.0f}",
            f"{bits / 1e3:.0f}",
            "x".join(map(str, sizes[-1])) if sizes else "-",
            f"{mean(frames):.1f}",
            f"{qp:.0f}" if counted else "-",
            f"{bits / 8 / mean(frames):.0f}" if mean(frames) else "-",
        ]


def print_encoder(folders):
    columns = ["call", "seconds", "estimate kbit/s", "target kbit/s", "media kbit/s"]
    print(*columns, "size", "frames/s", "quantizer", "B a frame", sep="\t")
    for folder in folders:
        for path in sorted(pathlib.Path(folder).rglob("call.json")):
            run = json.loads(path.with_name("run.json").read_text())
            name = run["scenario"] + ("" if run["seed"] == "1" else f", seed {run['seed']}")
            for layer, intervals in streams(path):
                for cells in encoder_rows(intervals):
                    print(name + layer, *cells, sep="\t")


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["call", scenario, folder]:
            call(scenario, folder)
            print_tables([folder])
        case ["read", *folders] if folders:
            print_tables(folders)
        case ["table", *folders] if folders:
            print_encoder(folders)
        case _:
            sys.exit(__doc__)
