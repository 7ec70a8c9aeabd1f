#!/usr/bin/env python3
"""How far `weir fleet report --what-if` is from the truth, on simulated calls whose networks are known.

    scripts/fleet-precision.py --weir target/release/weir --calls 320 --out /tmp/calls
    scripts/fleet-what-if.py /tmp/calls/scenarios /tmp/calls/dumps/*capacity_fall*/*

Each dump is simulated under each controller twice: on the network that its call met by its dump, and on the one that it
was made with: FOLDER/NAME.toml below the first argument, for a dump whose path contains FOLDER__NAME. The second one
gets the simulated browser of the first, so the difference is the network's.
"""

import argparse
import json
import statistics
import sys
import tomllib
from pathlib import Path

from weir_rtc import Scenario, WeirError
from weir_rtc._weir import choose, toml_of_json
from weir_rtc.fleet_what_if import CALLS_MAX, CONTROLLERS, Answer, of_scenario, scenario_of

#: Changes of good time below this are none, so their sign says nothing.
LEAST_CHANGE = 0.05


def browser_on(true: Path, estimated: Scenario) -> Scenario:
    """The simulated browser of the estimated scenario, on the true network."""
    document = tomllib.loads(estimated.text)
    document["network"] = tomllib.loads(true.read_text())["network"]
    return Scenario(toml_of_json(json.dumps(document)), id="true network")


def truth_of(dump: Path, truth: Path) -> Path | None:
    """The scenario that a dump was made with."""
    for file in sorted(truth.rglob("*.toml")):
        if f"{file.parent.name}__{file.stem}" in str(dump):
            return file
    return None


def show(pairs: list[tuple[Answer, Answer]]) -> None:
    """The medians of both, and how far the first is from the second."""
    first, *others = list(pairs[0][0])
    print(f"{len(pairs)} calls, medians: by the estimated network, by the true one, off by")
    print(
        f"{'controller':<12}{'rate, kbit/s':>24}{'good time, %':>24}{'change against ' + first:>28}"
    )
    for name in [first, *others]:
        by, true = [it[name] for it, _ in pairs], [it[name] for _, it in pairs]
        rates = [statistics.median(it.rate_kbps for it in side) for side in (by, true)]
        goods = [100 * statistics.fmean(it.good_ratio for it in side) for side in (by, true)]
        rate_off = statistics.median(
            abs(a.rate_kbps - b.rate_kbps) / b.rate_kbps for a, b in zip(by, true, strict=True)
        )
        good_off = statistics.median(
            100 * abs(a.good_ratio - b.good_ratio) for a, b in zip(by, true, strict=True)
        )
        line = f"{name:<12}{rates[0]:>8.0f}{rates[1]:>7.0f}{rate_off:>9.0%}"
        line += f"{goods[0]:>10.1f}{goods[1]:>7.1f}{good_off:>7.1f}"
        print(line + (signs(pairs, first, name) if name != first else ""))


def signs(pairs: list[tuple[Answer, Answer]], first: str, name: str) -> str:
    """How often a change of rate or of good time has the right sign, where there is one."""
    rates = [
        (by[name].rate_kbps > by[first].rate_kbps) == (true[name].rate_kbps > true[first].rate_kbps)
        for by, true in pairs
        if abs(true[name].rate_kbps / true[first].rate_kbps - 1) > LEAST_CHANGE
    ]
    goods = [
        (by[name].good_ratio > by[first].good_ratio)
        == (true[name].good_ratio > true[first].good_ratio)
        for by, true in pairs
        if abs(true[name].good_ratio - true[first].good_ratio) > LEAST_CHANGE
    ]
    return f"   rate {sum(rates)} of {len(rates)}, good {sum(goods)} of {len(goods)}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--controllers", default=CONTROLLERS, help="that of the calls first")
    parser.add_argument("truth", type=Path, help="folder of the scenarios")
    parser.add_argument("dumps", type=Path, nargs="+")
    given = parser.parse_args()
    if len(given.dumps) > CALLS_MAX:
        parser.error(f"at most {CALLS_MAX} dumps")
    pairs, names = [], choose(given.controllers)
    for dump in given.dumps:
        true = truth_of(dump, given.truth)
        if true is None:
            parser.error(f"{dump}: no scenario of it below {given.truth}")
        try:
            estimated = scenario_of(str(dump))
            pairs.append(
                (of_scenario(estimated, names), of_scenario(browser_on(true, estimated), names))
            )
        except WeirError as error:
            print(f"{dump}: {error}", file=sys.stderr)
    if not pairs:
        print("no call has a network", file=sys.stderr)
        return 2
    show(pairs)
    return 0


if __name__ == "__main__":
    sys.exit(main())
