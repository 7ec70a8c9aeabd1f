#!/usr/bin/env python3
"""Says which feedback a capture has, and how its packets of media were marked.

    scripts/results/feedback-kinds.py FILE.pcapng...

The captures are those of `weir call --capture` (pcapng, raw IP). SRTCP leaves the first eight bytes of a packet in the
clear (RFC 3711, section 3.4), so its type and format are known without keys: 205/15 is transport-wide feedback, 205/11 that
of RFC 8888, 206/15 REMB. Only the first packet of a compound one is seen. The two low bits of IPv4's second byte are ECN (RFC 3168).
"""

import collections
import pathlib
import struct
import sys

ENHANCED_PACKET = 6
IPV4, UDP = 4, 17
KINDS = {(205, 1): "nack", (205, 11): "ccfb", (205, 15): "twcc", (206, 1): "pli", (206, 15): "remb"}
REPORTS = {200: "sender report", 201: "receiver report", 202: "source description"}
MARKS = ("not ECT", "ECT(1)", "ECT(0)", "CE")


def packets(data):
    """The packets of a pcapng file in little endian, as they were captured."""
    at = 0
    while at + 12 <= len(data):
        kind, length = struct.unpack_from("<II", data, at)
        if length < 12:
            raise ValueError(f"a block of {length} bytes at {at}")
        if kind == ENHANCED_PACKET:
            (captured,) = struct.unpack_from("<I", data, at + 20)
            yield data[at + 28 : at + 28 + captured]
        at += length


def counted(data):
    """How many packets of each kind of RTCP there are, and how many of RTP with each mark."""
    kinds, marks = collections.Counter(), collections.Counter()
    for packet in packets(data):
        if len(packet) < 20 or packet[0] >> 4 != IPV4 or packet[9] != UDP:
            continue
        payload = packet[(packet[0] & 15) * 4 + 8 :]
        if len(payload) < 8 or payload[0] >> 6 != 2:
            continue
        if 192 <= payload[1] <= 223:
            kind = payload[1]
            name = (
                KINDS.get((kind, payload[0] & 31))
                or REPORTS.get(kind)
                or f"{kind}/{payload[0] & 31}"
            )
            kinds[name] += 1
        else:
            marks[MARKS[packet[1] & 3]] += 1
    return kinds, marks


def main():
    if len(sys.argv) < 2 or sys.argv[1] in ("-h", "--help"):
        print(__doc__.strip())
        return
    for path in sys.argv[1:]:
        kinds, marks = counted(pathlib.Path(path).read_bytes())
        for what, counts in (("RTCP", kinds), ("RTP", marks)):
            text = ", ".join(f"{count} {name}" for name, count in counts.most_common())
            print(f"{path}: {what}: {text or 'none'}")


if __name__ == "__main__":
    main()
