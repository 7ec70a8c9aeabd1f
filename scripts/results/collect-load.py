#!/usr/bin/env python3
"""How many calls `weir collect` takes: plays one dump as many calls, over the loopback device.

    scripts/results/collect-load.py --weir target/release/weir --dump call.rtcstats --calls 2000

All clients come at once, as after a restart, and each call sends a report a second. Starts the collector on one core (--collector-core) with a folder
of its own, and prints its processor time, memory, and the slowest answer of /metrics. The dump is
an rtcstats dump as text. Nothing leaves this machine.
"""

import argparse
import asyncio
import base64
import json
import os
import struct
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

CALLS_MAX, SECONDS_MAX = 4000, 600


def frame(text: bytes) -> bytes:
    """A WebSocket message of a client. Its mask is zero: a test needs no secret."""
    size = len(text)
    head = bytes([0x81])
    if size < 126:
        head += bytes([0x80 | size])
    elif size < 1 << 16:
        head += bytes([0xFE]) + struct.pack(">H", size)
    else:
        head += bytes([0xFF]) + struct.pack(">Q", size)
    return head + bytes(4) + text


def messages(dump: Path, seconds: int) -> list[list[bytes]]:
    """The reports of a dump, without their times, a list for each second, over and over."""
    lines = [json.loads(it) for it in dump.read_text().splitlines() if it.startswith("[")]
    reports = [it for it in lines if str(it[0]).lower() in ("getstats", "g", "1")]
    if not reports:
        raise SystemExit(f"{dump}: no getStats event")
    connection = reports[0][1]
    own = [it for it in reports if it[1] == connection][:seconds]
    return [json.dumps(it[:3])[:-1].encode() for it in own]


async def call(
    host: str,
    port: int,
    path: str,
    reports: list[bytes],
    begin: float,
    seconds: int,
    late: list[float],
) -> int:
    reader, writer = await asyncio.open_connection(host, port)
    key = base64.b64encode(os.urandom(16)).decode()
    head = f"GET {path} HTTP/1.1\r\nHost: {host}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    head += f"Sec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\n\r\n"
    writer.write(head.encode())
    answer = await reader.readuntil(b"\r\n\r\n")
    if b" 101 " not in answer.split(b"\r\n")[0]:
        raise SystemExit(answer.decode(errors="replace"))
    zero = int(time.time() * 1000)
    for second in range(min(seconds, len(reports))):
        at = begin + second
        await asyncio.sleep(max(0.0, at - time.monotonic()))
        late.append(time.monotonic() - at)
        writer.write(frame(reports[second] + f", {zero + second * 1000}]".encode()))
        await writer.drain()
    return writer.close() or min(seconds, len(reports))


def used(pid: int) -> tuple[float, float]:
    """Processor time in s and resident memory in MB."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    ticks = os.sysconf("SC_CLK_TCK")
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return (int(fields[11]) + int(fields[12])) / ticks, pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def fetched(url: str) -> str:
    with urllib.request.urlopen(url, timeout=30) as answer:
        return answer.read().decode()


async def watch(pid: int, url: str, state: dict) -> None:
    while True:
        await asyncio.sleep(2)
        state["memory_mb"] = max(state["memory_mb"], used(pid)[1])
        began = time.monotonic()
        await asyncio.to_thread(fetched, url)
        state["metrics_s"] = max(state["metrics_s"], time.monotonic() - began)


async def load(given: argparse.Namespace, host: str, port: int, token: str, pid: int) -> None:
    reports = messages(given.dump, given.seconds)
    size = sum(map(len, reports)) / len(reports)
    state = {"memory_mb": 0.0, "metrics_s": 0.0}
    watching = asyncio.create_task(watch(pid, f"http://{host}:{port}/metrics", state))
    begin, late = time.monotonic() + 3 + given.calls / 500, []
    tasks = []
    for number in range(given.calls):
        path = f"/c/load/{number}/a?token={token}"
        at = begin + number / given.calls
        tasks.append(asyncio.create_task(call(host, port, path, reports, at, given.seconds, late)))
    await asyncio.sleep(max(0.0, begin - time.monotonic()))
    before = used(pid)[0]
    sent = sum(await asyncio.gather(*tasks))
    took = time.monotonic() - begin
    await asyncio.sleep(1.5)
    spent = used(pid)[0] - before
    watching.cancel()
    text = await asyncio.to_thread(fetched, f"http://{host}:{port}/metrics")
    values = dict(it.rsplit(" ", 1) for it in text.splitlines() if not it.startswith("#"))
    late.sort()
    print(
        f"{given.calls} calls, {sent} reports of {size / 1e3:.1f} kB in {took:.1f} s: {sent / took:.0f} reports/s"
    )
    print(f"taken: {values['weir_collect_events_total']} events")
    print(
        f"processor: {spent:.1f} s, {spent / took:.0%} of one core; memory: {state['memory_mb']:.0f} MB"
    )
    print(
        f"slowest /metrics: {state['metrics_s']:.2f} s; this sender was late by {late[len(late) * 99 // 100]:.2f} s (p99)"
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--weir", default="weir", help="the program")
    parser.add_argument("--dump", type=Path, required=True, help="an rtcstats dump, as text")
    parser.add_argument("--calls", type=int, default=2000)
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--collector-core", default="0", help="core of the collector")
    given = parser.parse_args()
    if given.calls > CALLS_MAX or given.seconds > SECONDS_MAX:
        parser.error(f"at most {CALLS_MAX} calls and {SECONDS_MAX} seconds")
    with tempfile.TemporaryDirectory() as lake:
        command = [given.weir, "collect", "--out", lake]
        token = subprocess.run(
            [*command, "--token-for", "load"], check=True, capture_output=True, text=True
        )
        pinned = ["taskset", "-c", given.collector_core, *command]
        collector = subprocess.Popen(pinned, stderr=subprocess.PIPE, text=True)
        try:
            place = collector.stderr.readline().split("http://")[1].split("/")[0]
            host, port = place.rsplit(":", 1)
            asyncio.run(load(given, host, int(port), token.stdout.strip(), collector.pid))
        finally:
            collector.terminate()
            collector.wait()
    return 0


if __name__ == "__main__":
    sys.exit(main())
