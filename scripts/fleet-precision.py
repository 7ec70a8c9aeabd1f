#!/usr/bin/env python3
"""How often `weir fleet` names the cause of a simulated call that has this cause.

Makes calls of known causes with `weir run --dump`, analyzes them, and prints a confusion matrix with precision and
recall. The calls are simulated under `gcc`, so this measures the rules on our simulator, and not on browsers.

    scripts/fleet-precision.py --weir target/release/weir --calls 400 --out /tmp/precision
"""

import argparse
import random
import subprocess
import sys
from pathlib import Path

import duckdb
from weir_rtc import fleet

SECONDS = 60
#: What each made cause should be found as. The rules cannot tell a path that others fill from one that fell: both are
#: capacity that is missing. After a fall of some seconds, the time until the rate is back is the controller's.
EXPECTED = {
    "good": "none",
    "capacity_fall": "uplink_capacity",
    "short_fall": "controller",
    "cross_traffic": "uplink_capacity",
    "random_loss": "uplink_loss",
    "application": "application",
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


def scenario(cause: str, draw: random.Random) -> str:
    """A call of this cause, with a network that is drawn."""
    capacity, queue, loss, limit, more = (
        draw.randint(4000, 8000),
        draw.randint(150, 400),
        "",
        "",
        "",
    )
    most = draw.choice([1500, 2000, 2500])
    begin, length = draw.randint(15, 25), draw.randint(15, 30)
    capacity_text = f'"{capacity}kbps"'
    if cause == "short_fall":
        length = draw.randint(2, 4)
    if cause in ("capacity_fall", "short_fall"):
        low = draw.randint(300, 900)
        steps = [(0, capacity), (begin, low), (begin + length, capacity)]
        capacity_text = "[" + ", ".join(f'["{at}s", "{kbps}kbps"]' for at, kbps in steps) + "]"
    elif cause == "random_loss":
        loss = f'loss = "{draw.uniform(3.5, 12):.1f}%"'
    elif cause == "cross_traffic":
        capacity_text, queue = f'"{draw.randint(1500, 4000)}kbps"', draw.randint(300, 800)
        more = f'[[flow]]\nkind = "tcp"\nstart = "{begin}s"\nstop = "{begin + length}s"\n'
    elif cause == "application":
        low = draw.randint(50, most // 4)
        steps = [(0, most), (begin, low), (begin + length, most)]
        limit = (
            "source_limit = [" + ", ".join(f'["{at}s", "{kbps}kbps"]' for at, kbps in steps) + "]"
        )
    delay = draw.randint(5, 80)
    media = MEDIA.format(max=most, fps=draw.choice([15, 25, 30]), limit=limit)
    return f"""title = "{cause}"
source = "scripts/fleet-precision.py"
description = "A simulated call with a known cause."
duration = "{SECONDS}s"
[network.up]
capacity = {capacity_text}
queue = "{queue}ms"
delay = "{delay}ms"
{loss}
[network.down]
delay = "{delay}ms"
{media}
[[flow]]
{more}"""


def make(weir: str, out: Path, calls: int) -> None:
    """Writes scenarios and their dumps."""
    draw = random.Random(1)
    for cause in EXPECTED:
        folder = out / "scenarios" / cause
        folder.mkdir(parents=True, exist_ok=True)
        for number in range(calls // len(EXPECTED)):
            (folder / f"{number:05}.toml").write_text(scenario(cause, draw))
        files = sorted(str(it.relative_to(out)) for it in folder.glob("*.toml"))
        for first in range(0, len(files), 200):
            some = files[first : first + 200]
            command = [weir, "run", *some, "--controller", "gcc", "--dump", "dumps"]
            subprocess.run(command, cwd=out, check=True)


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
    line = f"{'precision':<16}"
    for name in names:
        whole = sum(counts.get((made, name), 0) for made in EXPECTED)
        right = sum(counts.get((made, name), 0) for made, it in EXPECTED.items() if it == name)
        line += f"{right / whole if whole else 0.0:>{width}.1%}"
    print(line)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--weir", default="weir", help="the program")
    parser.add_argument("--calls", type=int, default=400, help="calls of all causes together")
    parser.add_argument(
        "--out", type=Path, required=True, help="folder of scenarios, dumps and lake"
    )
    given = parser.parse_args()
    make(
        str(Path(given.weir).resolve()) if "/" in given.weir else given.weir, given.out, given.calls
    )
    print(fleet.analyze([given.out / "dumps"], given.out / "lake").words())
    show(given.out / "lake")
    return 0


if __name__ == "__main__":
    sys.exit(main())
