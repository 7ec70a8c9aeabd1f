#!/usr/bin/env python3
"""Plays the vectors against the controllers of libweir, through its C interface.

    vectors/run.py [--library FILE] [--folder FOLDER] [--tolerance]

Ends with 1 at the first difference, after it has printed case, time and difference. It needs
nothing but Python 3.10 and the shared library, which `make c` builds. It is also an example: to
test a port, replace the class `Controller` by one that calls yours, and add `--tolerance`.

Beside that it decodes the bytes of each feedback packet with a few lines of its own, and compares
them with the decoded packets of the file: two sources for one thing.
"""

import argparse
import ctypes
import glob
import json
import pathlib
import sys

FORMAT = 2
HERE = pathlib.Path(__file__).resolve().parent
NO_TIME = -(2**63)
NO_VALUE = 2**64 - 1
ECN_MODES = {"off": 0, "classic": 1, "l4s": 2}
U8, U32, U64, I64 = ctypes.c_uint8, ctypes.c_uint32, ctypes.c_uint64, ctypes.c_int64
SIZE, F64, CHARS = ctypes.c_size_t, ctypes.c_double, ctypes.c_char * 32


def struct(title, /, **fields):
    """A struct of weir.h."""
    return type(title, (ctypes.Structure,), {"_fields_": list(fields.items())})


Settings = struct(
    "Settings",
    struct_size=SIZE,
    min_bps=U64,
    start_bps=U64,
    max_bps=U64,
    priority=F64,
    ecn=U32,
    tolerate_random_loss=U8,
    compete_with_tcp=U8,
    probe_when_limited=U8,
    reserved=U8,
)
SentPacket = struct(
    "SentPacket",
    struct_size=SIZE,
    sequence_number=I64,
    size_bytes=U64,
    queued_bytes=U64,
    probe_id=U64,
    is_padding=U8,
    reserved=U8 * 7,
)
PacketReport = struct(
    "PacketReport",
    sequence_number=I64,
    size_bytes=U64,
    send_time_ns=I64,
    arrival_time_ns=I64,
    probe_id=U64,
    ecn=U8,
    is_recovered=U8,
    reserved=U8 * 6,
)
Feedback = struct(
    "Feedback",
    struct_size=SIZE,
    packets=ctypes.POINTER(PacketReport),
    packet_count=SIZE,
    missing_feedback=U32,
    arrival_times=U32,
    is_new_clock=U8,
    reserved=U8 * 7,
)
Target = struct(
    "Target",
    struct_size=SIZE,
    bitrate_bps=U64,
    source_bitrate_bps=U64,
    pacing_rate_bps=U64,
    burst_time_ns=I64,
    congestion_window_bytes=U64,
    available_bytes=U64,
    padding_rate_bps=U64,
    probe_id=U64,
    probe_rate_bps=U64,
    probe_size_bytes=U64,
    probe_packets=U32,
    burst=U32,
)
Signal = struct("Signal", name=CHARS, value=F64)
Metrics = struct(
    "Metrics",
    struct_size=SIZE,
    rtt_ns=I64,
    queuing_delay_ns=I64,
    acknowledged_bitrate_bps=U64,
    loss_ratio=F64,
    reason=U32,
    signal_count=U32,
    reason_text=CHARS,
    state=CHARS,
    signals=Signal * 16,
)


class Controller:
    """A controller of libweir. Times are in microseconds, as in the files."""

    def __init__(self, library, header):
        self.library = library
        settings = Settings()
        library.weir_settings_init(ctypes.byref(settings), SIZE(ctypes.sizeof(settings)))
        for name in ("min_bps", "start_bps", "max_bps"):
            setattr(settings, name, header["settings"][name])
        settings.ecn = ECN_MODES[header["settings"]["ecn"]]
        self.handle = ctypes.c_void_p()
        name = header["controller"].encode()
        self.check(
            library.weir_controller_new(name, ctypes.byref(settings), ctypes.byref(self.handle))
        )
        self.sent = {}

    def close(self):
        self.library.weir_controller_free(self.handle)

    def check(self, status):
        if status < 0:
            raise RuntimeError(f"libweir returned {status}")

    def call(self, name, us, *arguments):
        function = getattr(self.library, f"weir_controller_{name}")
        self.check(function(self.handle, I64(us * 1_000), *arguments))

    def on_sent(self, us, number, size, queued, probe=0, padding=0):
        self.sent[number] = (size, us, probe)
        packet = SentPacket(ctypes.sizeof(SentPacket), number, size, queued, probe, padding)
        self.call("on_packet_sent", us, ctypes.byref(packet))

    def on_feedback(self, us, packets, missing, is_new_clock):
        rows = (PacketReport * len(packets))()
        for row, (number, arrival, *rest) in zip(rows, packets, strict=True):
            size, sent, probe = self.sent[number]
            ecn, recovered = (*rest, 0, 0)[:2]
            arrival = NO_TIME if arrival is None else arrival * 1_000
            fields = (number, size, sent * 1_000, arrival, probe, ecn, recovered)
            for (name, _), value in zip(PacketReport._fields_, fields, strict=False):
                setattr(row, name, value)
        feedback = Feedback(ctypes.sizeof(Feedback), rows, len(packets), missing, 0, is_new_clock)
        self.call("on_feedback", us, ctypes.byref(feedback))

    def event(self, kind, us, *values):
        """Passes on one row. A number that does not exist is None."""
        numbers = [
            U64(NO_VALUE if value is None else value)
            for value in values
            if not isinstance(value, (str, list))
        ]
        match kind:
            case "sent":
                self.on_sent(us, *values)
            case "feedback":
                self.on_feedback(us, *values[1:])
            case "queued":
                self.call("on_media_queued", us, *numbers)
            case "rtt":
                self.call("on_round_trip_time", us, I64(values[0] * 1_000))
            case "receiver-limit":
                self.call("on_receiver_limit", us, *numbers)
            case "limits":
                self.call("set_limits", us, *numbers)
            case "desired":
                self.call("set_desired_bitrate", us, *numbers)
            case "route":
                self.call("on_route_change", us)
            case "timeout":
                self.call("on_timeout", us)
            case "no-news":
                pass
            case _:
                raise ValueError(f"an unknown row: {kind}")

    def target(self):
        """The row of a target."""
        target, metrics = Target(ctypes.sizeof(Target)), Metrics(ctypes.sizeof(Metrics))
        self.check(self.library.weir_controller_target(self.handle, ctypes.byref(target)))
        self.check(self.library.weir_controller_metrics(self.handle, ctypes.byref(metrics)))
        window = target.congestion_window_bytes
        probe = [
            target.probe_id,
            target.probe_rate_bps,
            target.probe_size_bytes,
            target.probe_packets,
        ]
        return [
            "target",
            target.bitrate_bps,
            target.pacing_rate_bps,
            target.padding_rate_bps,
            None if window == NO_VALUE else window,
            probe if target.probe_id else None,
            metrics.state.decode(),
            metrics.reason_text.decode(),
        ]


def number_of(data, signed=False):
    return int.from_bytes(data, "big", signed=signed)


def statuses_of_twcc(chunk):
    """What a chunk of TWCC says of its packets: 0 not received, 1 small delta, 2 large delta."""
    if not chunk >> 15:
        return [chunk >> 13 & 3] * (chunk & 0x1FFF)
    if not chunk >> 14 & 1:
        return [chunk >> shift & 1 for shift in range(13, -1, -1)]
    return [chunk >> shift & 3 for shift in range(12, -1, -2)]


def decode_twcc(data):
    """Arrivals in microseconds by 16-bit number; None for a packet that has not arrived."""
    base, count = number_of(data[12:14]), number_of(data[14:16])
    time = number_of(data[16:19]) * 64_000
    at, statuses = 20, []
    while len(statuses) < count:
        statuses += statuses_of_twcc(number_of(data[at : at + 2]))
        at += 2
    arrivals = {}
    for index, status in enumerate(statuses[:count]):
        if status:
            time += number_of(data[at : at + status], signed=status == 2) * 250
            at += status
        arrivals[(base + index) % 2**16] = time if status else None
    return arrivals


def decode_ccfb(data):
    """The same of RFC 8888, with the ECN bits. Times have 32 bits of NTP and steps of 1/1024 s."""
    report = number_of(data[-4:])
    begin, count = number_of(data[12:14]), number_of(data[14:16])
    arrivals = {}
    for index in range(count):
        entry = number_of(data[16 + 2 * index : 18 + 2 * index])
        time = report * 1_000_000 / 65_536 - (entry & 0x1FFF) * 1_000_000 / 1_024
        arrivals[(begin + index) % 2**16] = (time, entry >> 13 & 3) if entry >> 15 else None
    return arrivals


class Reader:
    """Reads the bytes of feedback, and says what the decoded packets of a file have differently."""

    def __init__(self, header):
        self.is_twcc = header["feedback"] == "twcc"
        # The number on the wire is this much ahead. No file has 2^16 packets.
        self.ahead = 0 if self.is_twcc else header["first_rtp"]
        self.arrived, self.lost = set(), set()
        self.next, self.first = 0, 0
        self.count, self.missing = None, 0

    def on_sent(self, number):
        self.next = number + 1

    def on_route(self):
        """What was sent before another route says nothing about it."""
        self.first, self.count, self.missing = self.next, None, 0

    def differs(self, data, packets, missing=None):
        """The first difference, or None. `missing` is None for a packet without news."""
        found = decode_twcc(data) if self.is_twcc else decode_ccfb(data)
        news = {}
        for wire, arrival in found.items():
            number = (wire - self.ahead) % 2**16
            is_known = number in self.arrived or (arrival is None and number in self.lost)
            if self.first <= number < self.next and not is_known:
                news[number] = arrival
        if sorted(news) != [packet[0] for packet in packets]:
            return f"news of {sorted(news)} in the bytes, of {[it[0] for it in packets]} decoded"
        for number, arrival, *rest in packets:
            ecn, recovered = (*rest, 0, 0)[:2]
            if not self.is_same(news[number], arrival, ecn) or recovered != (number in self.lost):
                return f"packet {number}: {news[number]} in the bytes, {[arrival, *rest]} decoded"
            (self.lost if arrival is None else self.arrived).add(number)
            if arrival is not None:
                self.lost.discard(number)
        return self.count_differs(data[19], missing) if self.is_twcc else None

    def is_same(self, found, arrival, ecn):
        if found is None or arrival is None:
            return found is arrival
        if self.is_twcc:
            return found == arrival
        # Both terms of the time are rounded down to a microsecond.
        return abs(found[0] - arrival) < 2 and found[1] == ecn

    def count_differs(self, count, missing):
        """Transport-wide feedback has a counter of its packets."""
        if self.count is not None:
            self.missing = (count - self.count - 1) % 256
        self.count = count
        if missing is None or missing == self.missing:
            return None
        return f"{self.missing} feedback packets are missing by the bytes, {missing} decoded"


def read(reader, row):
    """What a row says of its feedback that the bytes do not say; None if they agree."""
    match row:
        case ["sent", _, number, *_]:
            reader.on_sent(number)
        case ["route", _]:
            reader.on_route()
        case ["feedback", _, data, packets, missing, _]:
            return reader.differs(bytes.fromhex(data), packets, missing)
        case ["no-news", _, data]:
            return reader.differs(bytes.fromhex(data), [])
    return None


def is_near(one, other, tolerance):
    if one is None or other is None:
        return one is other
    allowed = max(tolerance["bitrate_bps"], one * tolerance["bitrate_ratio"])
    return abs(one - other) <= allowed


def differs(want, have, tolerance):
    """Whether two targets differ. Our own controllers have no tolerance. With one, rates and sizes
    are near each other, numbers are equal, and a port without states or reasons leaves them empty."""
    if tolerance is None:
        return want != have
    if any(not is_near(one, other, tolerance) for one, other in zip(want[1:5], have[1:5])):
        return True
    probe, other = want[5], have[5]
    if probe is None or other is None:
        if probe is not other:
            return True
    elif (probe[0], probe[3]) != (other[0], other[3]) or any(
        not is_near(probe[index], other[index], tolerance) for index in (1, 2)
    ):
        return True
    return any(text and text != wanted for wanted, text in zip(want[6:], have[6:]))


def play(path, library, is_tolerant):
    """Plays one file. Returns the number of targets compared, and the first difference or None."""
    with open(path, encoding="utf-8") as file:
        lines = [json.loads(line) for line in file]
    if not lines or lines[0].get("format") != FORMAT:
        return 0, f"{path} is no vector of format {FORMAT}"
    header, rows = lines[0], lines[1:]
    tolerance = header["tolerance"] if is_tolerant else None
    controller, reader = Controller(library, header), Reader(header)
    want, compared, us = None, 0, 0
    try:
        for index, row in enumerate(rows):
            if row[0] == "target":
                want = row
            else:
                us = row[1]
                if wrong := read(reader, row):
                    return compared, f"{path}, line {index + 2}, at {us / 1e6:.6f} s: {wrong}"
                controller.event(*row)
                # The target after this event may follow in the next row.
                if index + 1 < len(rows) and rows[index + 1][0] == "target":
                    continue
            have = controller.target()
            compared += 1
            if differs(want, have, tolerance):
                where = f"{path}, line {index + 2}, at {us / 1e6:.6f} s"
                return compared, f"{where}:\n  want {json.dumps(want)}\n  have {json.dumps(have)}"
    finally:
        controller.close()
    return compared, None if compared else f"{path}: no target is compared: the file is cut"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument(
        "--library", default="libweir.so.0", help="the shared library (default: the installed one)"
    )
    parser.add_argument(
        "--folder", default=HERE, help="the folder of the vectors (default: this one)"
    )
    parser.add_argument(
        "--tolerance",
        action="store_true",
        help="for a port: allow what the headers allow (default: all numbers are equal)",
    )
    arguments = parser.parse_args()
    library = ctypes.CDLL(str(arguments.library))
    library.weir_controller_free.argtypes = [ctypes.c_void_p]
    files = sorted(glob.glob(f"{arguments.folder}/*/*.jsonl"))
    if not files:
        sys.exit(f"no vectors in {arguments.folder}")
    total = 0
    for path in files:
        compared, difference = play(path, library, arguments.tolerance)
        total += compared
        if difference:
            print(difference)
            sys.exit(1)
    how = "within the tolerance" if arguments.tolerance else "equal"
    print(f"{len(files)} vectors, {total} targets {how}")


if __name__ == "__main__":
    main()
