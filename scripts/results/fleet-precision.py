#!/usr/bin/env python3
"""How often `weir fleet` names the cause of a simulated call that has this cause.

Makes calls of known causes with `weir run --dump`, analyzes them, and prints a confusion matrix with precision and
recall. The calls are simulated under `gcc`, so this measures the rules on our simulator, and not on browsers. With --real it
shows what is found in real dumps whose causes are known.

    scripts/results/fleet-precision.py --weir target/release/weir --calls 400 --out /tmp/precision
    scripts/results/fleet-precision.py --real lab/analyze/tests/dumps --out /tmp/real

The same command again goes on where the last one ended. --before puts words before the simulator, such as "nice -n 15".
"""

import argparse
import random
import shlex
import subprocess
import sys
from pathlib import Path

import duckdb
from weir_rtc import fleet

SECONDS = 60
#: Calls that one process simulates.
BATCH = 200
#: What each made cause should be found as. In those with `down`, the end that makes the dump receives. A path of `narrow` is so from the first second on. The rules cannot tell a path that others fill from one that fell: both are
#: capacity that is missing. After a fall of some seconds, the time until the rate is back is the controller's.
EXPECTED = {
    "good": "none",
    "capacity_fall": "uplink_capacity",
    "short_fall": "controller",
    "cross_traffic": "uplink_capacity",
    "random_loss": "uplink_loss",
    "application": "application",
    "delay": "delay",
    "down_good": "none",
    "down_fall": "downlink_capacity",
    "down_loss": "downlink_loss",
    "contention": "air_time",
    "bursts": "air_time",
    "fading": "air_time",
    "down_contention": "air_time",
    "narrow": "uplink_capacity",
    "down_narrow": "downlink_capacity",
}

#: Of these, the calls of a station in a Wi-Fi cell.
IN_A_CELL = ("contention", "bursts", "fading", "down_contention")

#: What the dumps of lab/analyze/tests/dumps are known to have, by their names: real calls, made for this.
REAL = {
    "ccfb.pcapng": "uplink_capacity",
    "contention.rtcstats": "air_time",
    "cpu.rtcstats": "processor",
    "delay.rtcstats": "delay",
    "drop.internals": "uplink_capacity",
    "drop.rtcstats": "uplink_capacity",
    "drop.shortened": "uplink_capacity",
    "far-loss.log": "far_end",
    "firefox.rtcstats": "uplink_capacity",
    "free.rtcstats": "none",
    "full.pcapng": "uplink_capacity",
    "hard.rtcstats": "encoder",
    "hidden.rtcstats": "none",
    "hidden-canvas.rtcstats": "application",
    "loss.pcapng": "downlink_loss",
    "loss.rtcstats": "uplink_loss",
    "mtu.rtcstats": "none",
    "muted.log": "application",
    "muted.rtcstats": "application",
    "muted.rtcstats-5": "application",
    "relay-tcp.rtcstats": "uplink_capacity",
    "server-layer.rtcstats": "far_end",
    "start-up.log": "controller",
}

MEDIA = """
[media]
min_bitrate = "100kbps"
start_bitrate = "300kbps"
max_bitrate = "{max}kbps"
probe_when_limited = false
source = {{ kind = "filler", fps = {fps} }}
{limit}
"""


def steps(high: int, low: int, begin: int, length: int) -> str:
    """A rate in kbit/s that is lower for a while."""
    times = [(0, high), (begin, low), (begin + length, high)]
    return "[" + ", ".join(f'["{at}s", "{kbps}kbps"]' for at, kbps in times) + "]"


def cell(cause: str, begin: int, end: int, draw: random.Random) -> str:
    """A Wi-Fi cell that lacks air for a while: others always send, send in bursts, or the signal fades."""
    rate = draw.randint(2, 7)
    load = errors = ""
    span = f'packet = "1500B", start = "{begin}s", stop = "{end}s"'
    match cause:
        case "contention" | "down_contention":
            load = f'load = [{{ kind = "saturated", {span} }}]'
        case "bursts":
            packets, period = draw.randint(40, 200), draw.randint(500, 2500)
            load = f'load = [{{ kind = "bursts", packets = {packets}, period = "{period}ms", {span} }}]'
        case "fading":
            good, bad = draw.randint(300, 3000), draw.randint(60, 400)
            errors = f'errors = {{ good = "{good}ms", bad = "{bad}ms", error_good = "1%", error_bad = "97%" }}'
    count = 1 if cause == "fading" else draw.randint(3, 12)
    return f"""[network]
kind = "wifi"
[network.access_point]
edca = "access-point"
[network.station.laptop]
rate = {rate}
{errors}
[network.station.other]
count = {count}
rate = {draw.randint(1, 7)}
{load}
"""


def scenario(cause: str, draw: random.Random) -> str:
    """A call of this cause, with a network that is drawn."""
    capacity, queue = draw.randint(4000, 8000), draw.randint(150, 400)
    loss = limit = more = ""
    most = draw.choice([1500, 2000, 2500])
    begin, length = draw.randint(15, 25), draw.randint(15, 30)
    capacity_text = f'"{capacity}kbps"'
    if cause == "short_fall":
        length = draw.randint(2, 4)
    if cause in ("capacity_fall", "short_fall", "down_fall"):
        capacity_text = steps(capacity, draw.randint(300, 900), begin, length)
    elif cause in ("narrow", "down_narrow"):
        capacity_text = f'"{draw.randint(300, 900)}kbps"'
    elif cause in ("random_loss", "down_loss"):
        loss = f'loss = "{draw.uniform(3.5, 12):.1f}%"'
    elif cause == "cross_traffic":
        capacity_text, queue = f'"{draw.randint(1500, 4000)}kbps"', draw.randint(300, 800)
        more = f'[[flow]]\nkind = "tcp"\nstart = "{begin}s"\nstop = "{begin + length}s"\n'
    elif cause == "application":
        limit = "source_limit = " + steps(most, draw.randint(50, most // 4), begin, length)
    delay = draw.randint(5, 80)
    media = MEDIA.format(max=most, fps=draw.choice([15, 25, 30]), limit=limit)
    if cause == "delay":
        delay = draw.randint(170, 350)
    way, back = ("down", "up") if cause.startswith("down") else ("up", "down")
    wireless = station = ""
    if cause in IN_A_CELL:
        wireless, station = cell(cause, begin, begin + length, draw), 'station = "laptop"\n'
        capacity_text, delay = '"50Mbps"', draw.randint(5, 40)
    return f"""title = "{cause}"
source = "scripts/results/fleet-precision.py"
description = "A simulated call with a known cause."
duration = "{SECONDS}s"
{wireless}[network.{way}]
capacity = {capacity_text}
queue = "{queue}ms"
delay = "{delay}ms"
{loss}
[network.{back}]
delay = "{delay}ms"
{media}
[[flow]]
direction = "{way}"
{station}{more}"""


def make(command: list[str], out: Path, calls: int) -> None:
    """Writes scenarios and their dumps, but for those that are there."""
    draw = random.Random(1)
    for cause in EXPECTED:
        folder = out / "scenarios" / cause
        folder.mkdir(parents=True, exist_ok=True)
        for number in range(calls // len(EXPECTED)):
            (folder / f"{number:05}.toml").write_text(scenario(cause, draw))
        files = sorted(str(it.relative_to(out)) for it in folder.glob("*.toml"))
        files = [it for it in files if not is_made(out / "dumps" / it.replace("/", "__"))]
        for first in range(0, len(files), BATCH):
            run = [*command, "run", *files[first : first + BATCH], "--controller", "gcc"]
            subprocess.run([*run, "--dump", "dumps"], cwd=out, check=True)


def is_made(folder: Path) -> bool:
    """Whether a scenario's folder has its dump."""
    return any(folder.glob("*.rtcstats"))


def show(lake: Path) -> None:
    """Prints the matrix, and precision and recall."""
    found = duckdb.sql(
        "select regexp_extract(source, 'scenarios__([a-z_]+)__', 1) as made, main_cause as found, count(*) as calls "
        f"from '{lake}/calls/*.parquet' where status = 'analyzed' group by 1, 2"
    ).fetchall()
    counts = {(made, name): calls for made, name, calls in found}
    names = sorted({name for _, name in counts}, key=lambda it: (it not in EXPECTED.values(), it))
    width = max(len(it) for it in names) + 2
    print(f"{'made as':<16}" + "".join(f"{it:>{width}}" for it in names) + f"{'recall':>9}")
    for made, expected in EXPECTED.items():
        whole = sum(counts.get((made, it), 0) for it in names)
        cells = "".join(f"{counts.get((made, it), 0):>{width}}" for it in names)
        recall = counts.get((made, expected), 0) / whole if whole else 0.0
        print(f"{made:<16}{cells}{recall:>8.1%}")
    wires = [made for made in EXPECTED if made not in IN_A_CELL]
    for title, rows in (("precision", list(EXPECTED)), ("without cells", wires)):
        cells = "".join(f"{precision(counts, rows, it):>{width}}" for it in names)
        print(f"{title:<16}{cells}")


def precision(counts: dict[tuple[str, str], int], rows: list[str], name: str) -> str:
    """The share of the calls with this name that were made so, of calls of these causes."""
    whole = sum(counts.get((made, name), 0) for made in rows)
    right = sum(counts.get((made, name), 0) for made in rows if EXPECTED[made] == name)
    return f"{right / whole:.1%}" if whole else "-"


def show_real(dumps: Path, lake: Path) -> None:
    """Prints what is found in each dump of a known cause, and how often it is right."""
    print(fleet.analyze([dumps], lake).words())
    found = duckdb.sql(
        "select parse_filename(source), main_cause "
        f"from '{lake}/calls/*.parquet' where status in ('analyzed', 'duplicate')"
    ).fetchall()
    causes = {name.removesuffix(".gz"): cause for name, cause in found}
    right = 0
    print(f"{'dump':<24}{'made as':<18}found")
    for name, made in REAL.items():
        cause = causes.get(name, "not read")
        right += cause == made
        print(f"{name:<24}{made:<18}{cause}{'' if cause == made else '  (!)'}")
    print(f"{right} of {len(REAL)} right")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--weir", default="weir", help="the program")
    parser.add_argument("--calls", type=int, default=400, help="calls of all causes together")
    parser.add_argument(
        "--out", type=Path, required=True, help="folder of scenarios, dumps and lake"
    )
    parser.add_argument("--real", type=Path, help="dumps of known causes, in place of made calls")
    parser.add_argument("--before", default="", help="words to put before the simulator")
    given = parser.parse_args()
    if given.real:
        show_real(given.real, given.out / "lake")
        return 0
    weir = str(Path(given.weir).resolve()) if "/" in given.weir else given.weir
    make([*shlex.split(given.before), weir], given.out, given.calls)
    print(fleet.analyze([given.out / "dumps"], given.out / "lake").words())
    show(given.out / "lake")
    return 0


if __name__ == "__main__":
    sys.exit(main())
