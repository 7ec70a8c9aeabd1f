#!/usr/bin/env python3
"""Would another controller have helped? Replays the networks of some calls under several.

    scripts/fleet-what-if.py --weir target/release/weir call-1.gz call-2.gz
    scripts/fleet-what-if.py --weir target/release/weir --truth scenarios/ dumps/*

Each dump becomes a scenario with the network that its call met (`weir analyze --scenario`), and the
scenario runs under each controller in virtual time. The table has medians over the calls. With
--truth, a folder of the scenarios from which the calls were simulated (FOLDER/NAME.toml for a dump
whose name contains FOLDER__NAME), it also says how far the answer by the estimate is from the
answer by the true network.
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

CONTROLLERS = "gcc,nada,scream-v2,sluice"
#: What is compared: name, path in a flow's summary, factor to the unit.
MEASURES = [
    ("rate, kbit/s", ("rate_mbps", "mean"), 1e3),
    ("queuing delay p95, ms", ("queuing_delay_ms", "p95"), 1.0),
    ("loss, %", ("loss_ratio", "mean"), 100.0),
]
CALLS_MAX = 1000

#: Of each controller, its measures.
Outcome = dict[str, list[float]]


def replayed(weir: str, scenario: Path, controllers: str) -> Outcome:
    """What the first flow of a scenario got under each controller."""
    command = [weir, "run", str(scenario), "--controller", controllers, "--seed", "1", "--json"]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    outcome: Outcome = {}
    for run in json.loads(done.stdout):
        flow = run["flows"][0]
        values = []
        for _, (name, part), factor in MEASURES:
            value = flow[name]
            values.append(factor * (value[part] if isinstance(value, dict) else value))
        outcome[run["controller"]] = values
    return outcome


def estimated(weir: str, dump: Path, folder: Path) -> Path | None:
    """The scenario of a dump; `None` with a line if it has none."""
    scenario = folder / "estimated.toml"
    command = [weir, "analyze", str(dump), "--scenario", str(scenario)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0 or not scenario.exists():
        print(f"{dump}: {done.stderr.strip() or 'no scenario'}", file=sys.stderr)
        return None
    return scenario


def truth_of(dump: Path, truth: Path) -> Path | None:
    found = [it for it in truth.rglob("*.toml") if it.parent.name + "__" + it.stem in dump.name]
    return found[0] if found else None


def show(outcomes: list[Outcome], title: str) -> None:
    names = list(outcomes[0])
    print(f"{title}, {len(outcomes)} calls (medians):")
    print(f"  {'controller':<12}" + "".join(f"{name:>24}" for name, *_ in MEASURES))
    for name in names:
        cells = ""
        for place in range(len(MEASURES)):
            value = statistics.median(it[name][place] for it in outcomes)
            cells += f"{value:>24.1f}"
        print(f"  {name:<12}{cells}")


def show_error(pairs: list[tuple[Outcome, Outcome]]) -> None:
    """How far the estimate's answer is from the truth's."""
    first, *others = list(pairs[0][0])
    print(f"The answer by the estimated network beside that by the true one, {len(pairs)} calls:")
    print(
        f"  {'controller':<12}{'rate off by':>14}{'same sign of the change against ' + first:>46}"
    )
    for name in [first, *others]:
        off = [
            abs(by[name][0] - true[name][0]) / true[name][0]
            for by, true in pairs
            if true[name][0] > 0
        ]
        cells = f"{statistics.median(off):>14.1%}"
        if name != first:
            same = [
                (by[name][0] > by[first][0]) == (true[name][0] > true[first][0])
                for by, true in pairs
            ]
            cells += f"{sum(same) / len(same):>46.0%}"
        print(f"  {name:<12}{cells}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--weir", default="weir", help="the program")
    parser.add_argument(
        "--controllers", default=CONTROLLERS, help="the first one is that of the calls"
    )
    parser.add_argument(
        "--truth", type=Path, help="folder of the scenarios that the calls were made from"
    )
    parser.add_argument("dumps", type=Path, nargs="+")
    given = parser.parse_args()
    if len(given.dumps) > CALLS_MAX:
        parser.error(f"at most {CALLS_MAX} dumps")
    outcomes, pairs = [], []
    with tempfile.TemporaryDirectory() as folder:
        for dump in given.dumps:
            scenario = estimated(given.weir, dump, Path(folder))
            if scenario is None:
                continue
            outcomes.append(replayed(given.weir, scenario, given.controllers))
            true = truth_of(dump, given.truth) if given.truth else None
            if true is not None:
                pairs.append((outcomes[-1], replayed(given.weir, true, given.controllers)))
    if not outcomes:
        print("no call has a network", file=sys.stderr)
        return 2
    show(outcomes, "By the estimated networks")
    if pairs:
        show([true for _, true in pairs], "By the true networks")
        show_error(pairs)
    return 0


if __name__ == "__main__":
    sys.exit(main())
