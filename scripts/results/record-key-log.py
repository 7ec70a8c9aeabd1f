#!/usr/bin/env python3
"""Records a call of Firefox with its key log: a capture whose SRTP `weir analyze --keys` can open.

usage: scripts/results/record-key-log.py SCENARIO.toml CAPTURE.pcap.gz KEYS.keys

Firefox must be the side `a` of the scenario. dumpcap captures on its host, before the first packet of the call.
Of each RTP packet, 32 bytes are kept; everything else stays whole. Needs the rights of `weir call`, and `weir` and
dumpcap on the PATH.
"""

import contextlib
import gzip
import os
import shutil
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path

# `weir call` starts this instead of Firefox: it waits until somebody listens in its namespace.
FIREFOX = """#!/bin/sh
case "$*" in *--headless*) ;; *) exec "{firefox}" "$@" ;; esac
touch "{place}/waits"
until [ -e "{place}/listens" ]; do sleep 0.1; done
SSLKEYLOGFILE="{place}/keys" exec "{firefox}" "$@"
"""
ETHERNET, RAW_IP = 1, 101
RTP_KEPT = 32
IP_AND_UDP = 28


def await_file(path: Path, process: subprocess.Popen) -> None:
    """Waits until a file exists, as long as the process lives."""
    while not path.exists():
        if process.poll() is not None:
            sys.exit(f"{process.args[0]} ended early")
        time.sleep(0.05)


def namespace_of(program: Path) -> str:
    """The network of the process that runs a script, whose own process ids count in another namespace."""
    ours = os.readlink("/proc/self/ns/net")
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            words = (process / "cmdline").read_bytes().split(b"\0")
            if os.fsencode(program) in words and os.readlink(process / "ns/net") != ours:
                return str(process / "ns/net")
    sys.exit("the browser's namespace was not found")


def record(scenario: str, place: Path) -> tuple[bytes, str]:
    """The capture of a call, and the key log."""
    place.chmod(0o1777)
    wrapper = place / "firefox"
    firefox = (
        os.environ.get("WEIR_FIREFOX") or shutil.which("firefox-esr") or shutil.which("firefox")
    )
    wrapper.write_text(FIREFOX.format(firefox=firefox, place=place))
    wrapper.chmod(0o755)
    environment = os.environ | {"WEIR_FIREFOX": str(wrapper)}
    call = subprocess.Popen(["weir", "call", scenario, "--out", place / "records"], env=environment)
    await_file(place / "waits", call)
    capture = place / "call.pcap"
    listen = ["nsenter", f"--net={namespace_of(wrapper)}"]
    listen += ["dumpcap", "-q", "-P", "-i", "weir0", "-f", "udp", "-w", str(capture)]
    listener = subprocess.Popen(listen)
    await_file(capture, listener)
    (place / "listens").touch()
    if call.wait() != 0:
        sys.exit("the call failed")
    listener.terminate()
    listener.wait()
    return capture.read_bytes(), (place / "keys").read_text()


def shortened(capture: bytes) -> bytes:
    """The same packets, without the media."""
    link = struct.unpack_from("<I", capture, 20)[0]
    start = {ETHERNET: 14, RAW_IP: 0}[link] + IP_AND_UDP
    kept, at = bytearray(capture[:24]), 24
    while at < len(capture):
        seconds, fraction, size, length = struct.unpack_from("<4I", capture, at)
        packet = capture[at + 16 : at + 16 + size]
        at += 16 + size
        first = packet[start : start + 2]
        # On a port that both share, these second bytes are RTCP.
        if len(first) == 2 and 128 <= first[0] <= 191 and not 192 <= first[1] <= 223:
            packet = packet[: start + RTP_KEPT]
        kept += struct.pack("<4I", seconds, fraction, len(packet), length) + packet
    return bytes(kept)


def main() -> None:
    """Writes both files."""
    if len(sys.argv) != 4:
        sys.exit((__doc__ or "").strip())
    scenario, capture_file, keys_file = sys.argv[1:]
    with tempfile.TemporaryDirectory() as place:
        capture, keys = record(scenario, Path(place))
    Path(capture_file).write_bytes(gzip.compress(shortened(capture), mtime=0))
    Path(keys_file).write_text(keys)


main()
