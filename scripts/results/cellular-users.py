#!/usr/bin/env python3
"""Writes the scenarios of RFC 8869, section 2 (cellular): scenarios/rfc8869/cellular-2.{1,2}.

usage: scripts/results/cellular-users.py [FOLDER [CASE DIRECTION INTENSITY]...]

Without arguments it writes the files of the catalogue; with CASE (2.1 or 2.2), DIRECTION (up or
down) and INTENSITY it writes other points below FOLDER.

Geometry: 7 sites with 3 sectors each (3GPP TR 36.814 case 1 with 500 m between sites, case 3 with
1732 m). Loss 128.1 + 37.6 log10(km) + 20 dB indoors, shadowing of 8 dB (correlation 0.5 between
sites), sector antennas with 14 dBi, 70 degrees and 20 dB front to back. A position is drawn
uniformly in the hexagon around the site in the middle, and counts if sector 0 of this site is the
strongest one there. Down: 46 dBm in 10 MHz; all other sectors send at full power, noise figure
9 dB. Up: open-loop power control with P0 = -76 dBm and alpha = 0.8 for each resource block, at
most 24 dBm over 10 of 50 blocks; the other cells add 6 dB to the noise, noise figure 5 dB. SINR is
kept within -3 and 30 dB: a weaker terminal would be out of coverage.
"""

import math
import random
import sys
from pathlib import Path

CASES = {
    "2.1": {"site_m": 500.0, "speeds": (3, 30), "web": {"down": 4, "up": 2}},
    "2.2": {"site_m": 1732.0, "speeds": (3,), "web": {"down": 2, "up": 1}},
}
CATALOGUE = [
    ("2.1", "down", 0.7),
    ("2.1", "down", 3.5),
    ("2.1", "down", 10.5),
    ("2.1", "up", 0.7),
    ("2.1", "up", 3.5),
    ("2.1", "up", 7.0),
    ("2.2", "down", 0.7),
    ("2.2", "down", 3.5),
    ("2.2", "down", 7.0),
    ("2.2", "up", 0.7),
    ("2.2", "up", 3.5),
    ("2.2", "up", 7.0),
]
CELLS = 21
DURATION_S = 91
STAY_S = 30
SINR_DB = (-3.0, 30.0)
INDOOR_DB, SHADOWING_DB = 20.0, 8.0
GAIN_DBI = 14.0
NOISE_PRB_DBM = -174 + 10 * math.log10(180e3)


def sites(distance_m):
    """The site in the middle and the six around it."""
    ring = [math.radians(60 * i + 30) for i in range(6)]
    return [(0.0, 0.0)] + [(distance_m * math.cos(a), distance_m * math.sin(a)) for a in ring]


def pattern_db(angle):
    """Gain of a sector's antenna at an angle from its axis, in degrees."""
    angle = (angle + 180) % 360 - 180
    return GAIN_DBI - min(12 * (angle / 70) ** 2, 20)


def user(rng, distance_m):
    """SINR of a user of sector 0, down and up."""
    radius = distance_m / math.sqrt(3)
    while True:
        x, y = rng.uniform(-radius, radius), rng.uniform(-radius, radius)
        common = rng.gauss(0, SHADOWING_DB)
        gains = []
        for sx, sy in sites(distance_m):
            own = rng.gauss(0, SHADOWING_DB)
            metres = max(math.hypot(x - sx, y - sy), 35)
            shadow = math.sqrt(0.5) * (common + own)
            loss = 128.1 + 37.6 * math.log10(metres / 1000) + INDOOR_DB + shadow
            bearing = math.degrees(math.atan2(y - sy, x - sx))
            gains += [pattern_db(bearing - 120 * sector) - loss for sector in range(3)]
        if max(gains) > gains[0]:
            continue
        linear = [10 ** ((46 - 17 + gain) / 10) for gain in gains]
        noise = 10 ** ((NOISE_PRB_DBM + 9) / 10)
        down = 10 * math.log10(linear[0] / (sum(linear[1:]) + noise))
        power = min(-76 - 0.8 * gains[0], 24 - 10)
        up = power + gains[0] - (NOISE_PRB_DBM + 5 + 6)
        return tuple(round(min(max(db, SINR_DB[0]), SINR_DB[1]), 1) for db in (up, down))


def terminal(name, signal, speed):
    up, down = signal
    return (
        f"terminal.{name} = {{ sinr = {{ up = {up:g}, down = {down:g} }}, "
        f'fading = {{ profile = "EPA", speed = {speed} }} }}\n'
    )


def arrivals(rng, intensity):
    """Poisson arrivals in one of the cells. A user that would stay for less than 1 s is left out."""
    now, times = 0.0, []
    while True:
        now += rng.expovariate(intensity / CELLS)
        if now > DURATION_S - 1:
            return times
        times.append(round(now, 1))


HEAD = """title = "{title}"
source = "RFC 8869, section {section}"
description = \"\"\"
{count} users come as a Poisson process, each for 30 s of video and audio {way}; 30 to 60 s count. {web} terminals fetch files over TCP, with {web} Mbit/s
together at most. Written by scripts/results/cellular-users.py, which draws the SINR of each user from 21 cells. Choices, where the
RFC leaves them open. Intensity {intensity:g}: new users a second in the 21 cells, so {mean:g} at a time in each cell. LTE, one layer: the other cells are noise, not
simulated. Fading EPA at {speeds} km/h. The wired side has {delay}, since the cell adds about 20 ms to both. AQM: CoDel with a target of 20 ms at both
ends, since the wait for a grant alone takes longer than 5 ms. Files of 250 to 750 kB.
\"\"\"
duration = "{duration}s"
"""

NETWORK = """
[network]
kind = "cellular"
bandwidth = "10MHz"
"""

TAIL = """up = { delay = "10ms" }
down = { delay = "10ms" }

[media]
min_bitrate = "150kbps"
start_bitrate = "150kbps"
max_bitrate = "1.5Mbps"
source = { kind = "rfc8593", fps = 30, reaction = "100ms" }
"""

AQM = """{{ limit = "{limit}", aqm = {{ kind = "codel", target = "20ms" }} }}"""


def flow(keys):
    return "  { " + ", ".join(f"{key} = {value}" for key, value in keys.items()) + " },\n"


def users_flows(times, direction):
    text = ""
    for kind in ("media", "audio"):
        for number, start in enumerate(times, 1):
            stop = min(start + STAY_S, DURATION_S)
            keys = {"kind": '"audio"'} if kind == "audio" else {}
            keys["terminal"] = f'"u{number}"'
            if direction == "down":
                keys["direction"] = '"down"'
            keys |= {"start": f'"{start:g}s"', "stop": f'"{stop:.1f}s"'}
            text += flow(keys)
    return text


def kept(old, name):
    """A list of the old text behind an empty line, or nothing."""
    begin = old.find(f"\n{name} = [\n")
    return old[begin : old.find("\n]\n", begin) + 3] if begin >= 0 else ""


def variant(name, title, keys, old):
    """A variant has the expectations of its scenario, and its own known misses, which the old text keeps."""
    _, _, own = old.partition(f"\n[variant.{name}]\n")
    misses = kept(own.partition("\n[variant.")[0], "known_miss")
    lines = "" if misses else "known_miss = []\n"
    lines += "".join(f"{key} = {value}\n" for key, value in keys)
    return f'\n[variant.{name}]\ntitle = "{title}"\n{lines}{misses}'


def scenario(case, direction, intensity, old):
    """The text of a scenario. Expectations and known misses of the old text are kept."""
    # The draws of a case and direction are the same for each run of the script.
    rng = random.Random(f"{case} {direction} {intensity:g}")
    setting = CASES[case]
    web = setting["web"][direction]
    times = arrivals(rng, intensity)
    what = "varying load" if case == "2.1" else "bad coverage"
    title = f"Cellular, {what}: {intensity / 0.7:g} users at a time, {direction}"
    names = [f"u{number}" for number in range(1, len(times) + 1)]
    names += [f"web{number}" for number in range(1, web + 1)]
    text = HEAD.format(
        title=title,
        section="2.1, varying load" if case == "2.1" else "2.2, bad coverage",
        count=len(times),
        way=direction,
        web=web,
        intensity=intensity,
        mean=intensity / CELLS * STAY_S,
        speeds=" or ".join(map(str, setting["speeds"])),
        delay="10 ms each way for the round trip of 40 ms and 65 ms for that of 150 ms",
        duration=DURATION_S,
    )
    text += "\nflow = [\n" + users_flows(times, direction)
    for number in range(1, web + 1):
        keys = {"kind": '"tcp"', "terminal": f'"web{number}"'}
        if direction == "down":
            keys["direction"] = '"down"'
        keys["short"] = '{ size = ["250KB", "750KB"], idle = "4s", starts = "idle" }'
        text += flow(keys)
    text += ']\nsection = [{ name = "evaluation", from = "30s", to = "60s" }]\n'
    head = old.partition("\n[network]")[0]
    text += kept(head, "expect") + kept(head, "known_miss") + NETWORK
    for name in names:
        text += terminal(name, user(rng, setting["site_m"]), rng.choice(setting["speeds"]))
    text += TAIL
    far = [("network.up.delay", '"65ms"'), ("network.down.delay", '"65ms"')]
    limits = {"up": "2500kB", "down": "4MB"}
    queue = ", ".join(f"{way} = {AQM.format(limit=limit)}" for way, limit in limits.items())
    aqm = [(f"network.terminal.{name}.queue", f"{{ {queue} }}") for name in names]
    text += variant("rtt150", f"{title}, round trip of 150 ms", far, old)
    text += variant("aqm", f"{title}, AQM", aqm, old)
    return text


def main():
    if "--help" in sys.argv or "-h" in sys.argv:
        print(__doc__.strip())
        return
    default = Path(__file__).parents[2] / "scenarios" / "rfc8869"
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else default
    rest = sys.argv[2:]
    points = [(rest[i], rest[i + 1], float(rest[i + 2])) for i in range(0, len(rest), 3)]
    for case, direction, intensity in points or CATALOGUE:
        file = folder / f"cellular-{case}" / f"{direction}-{intensity:g}.toml"
        file.parent.mkdir(parents=True, exist_ok=True)
        old = file.read_text() if file.exists() else ""
        file.write_text(scenario(case, direction, intensity, old))


if __name__ == "__main__":
    main()
