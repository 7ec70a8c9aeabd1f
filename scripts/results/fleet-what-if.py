#!/usr/bin/env python3
"""How far `weir fleet report --what-if` is from the truth, on simulated calls whose networks are known.

    scripts/results/fleet-precision.py --weir target/release/weir --calls 320 --out /tmp/calls
    scripts/results/fleet-what-if.py /tmp/calls/scenarios /tmp/calls/dumps/*capacity_fall*/*

Each dump is simulated under each controller twice: on the network that its call met by its dump, and on the one that it
was made with: FOLDER/NAME.toml below the first argument, for a dump whose path contains FOLDER__NAME. The second one
gets the simulated sender of the first, so the difference is the network's.

With --real FOLDER the same networks were called for real under other controllers, too: FOLDER/CONTROLLER/FOLDER__NAME.* is
the dump of such a call. Then the rates by the estimated network stand beside those of the calls.

    scripts/results/record-pipelines.py gcc calls/gcc && scripts/results/record-pipelines.py sluice calls/sluice
    scripts/results/fleet-what-if.py --real calls --controllers gcc,sluice lab/analyze/tests/networks calls/gcc/*
"""

import argparse
import json
import statistics
import subprocess
import sys
import tomllib
from pathlib import Path

from weir_rtc import Scenario, WeirError
from weir_rtc._weir import choose, toml_of_json
from weir_rtc.fleet_what_if import CALLS_MAX, CONTROLLERS, Answer, of_scenario, scenario_of

#: Changes of good time below this are none, so their sign says nothing.
LEAST_CHANGE = 0.05


#: What puts a flow behind a cell.
IN_A_CELL = ("station", "terminal")


def sender_on(true: Path, estimated: Scenario) -> Scenario:
    """The simulated sender of the estimated scenario, on the true network, in its cell and beside its rivals."""
    document, known = tomllib.loads(estimated.text), tomllib.loads(true.read_text())
    document["network"] = known["network"]
    for flow in document["flow"]:
        for place in known["flow"]:
            if place.get("direction") == flow["direction"]:
                flow |= {name: place[name] for name in IN_A_CELL if name in place}
    document["flow"] += [it for it in known["flow"] if it.get("kind", "media") != "media"]
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


def rate_of(weir: str, dump: Path) -> float:
    """Mean rate in kbit/s of the videos of a real call."""
    said = subprocess.run([weir, "analyze", dump, "--json"], capture_output=True, check=True)
    [call] = json.loads(said.stdout)
    return sum(1e3 * it["rate_mbps"]["mean"] for it in call["flows"] if it["rate_mbps"])


def show_real(answers: dict[str, Answer], names: list[str], real: Path, weir: str) -> None:
    """The rate of each call beside the one by the network that the call of the first controller met."""
    print(
        f"{'network':<12}"
        + "".join(f"{it + ': by the network':>28}{'call':>7}{'off by':>8}" for it in names)
    )
    offs: dict[str, list[float]] = {name: [] for name in names}
    signs = []
    for place, answer in answers.items():
        line, rates = f"{place.split('__')[-1]:<12}", {}
        for name in names:
            [dump] = (real / name).glob(f"{place}.*")
            rates[name] = rate_of(weir, dump)
            off = answer[name].rate_kbps / rates[name] - 1
            offs[name].append(abs(off))
            line += f"{answer[name].rate_kbps:>28.0f}{rates[name]:>7.0f}{off:>+8.0%}"
        print(line)
        for name in names[1:]:
            if abs(rates[name] / rates[names[0]] - 1) > LEAST_CHANGE:
                more = answer[name].rate_kbps > answer[names[0]].rate_kbps
                signs.append(more == (rates[name] > rates[names[0]]))
    middles = "".join(f"{statistics.median(offs[name]):>43.0%}" for name in names)
    print(f"{'median off':<12}{middles}")
    print(f"change of the rate rightly said: {sum(signs)} of {len(signs)}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--controllers", default=CONTROLLERS, help="that of the calls first")
    parser.add_argument("--real", type=Path, help="folder of real calls under each controller")
    parser.add_argument("--weir", default="weir", help="the program, for --real")
    parser.add_argument("truth", type=Path, help="folder of the scenarios")
    parser.add_argument("dumps", type=Path, nargs="+")
    given = parser.parse_args()
    if len(given.dumps) > CALLS_MAX:
        parser.error(f"at most {CALLS_MAX} dumps")
    pairs, names = [], choose(given.controllers)
    answers: dict[str, Answer] = {}
    for dump in given.dumps:
        true = truth_of(dump, given.truth)
        if true is None:
            parser.error(f"{dump}: no scenario of it below {given.truth}")
        try:
            estimated = scenario_of(str(dump))
            answer = of_scenario(estimated, names)
            pairs.append((answer, of_scenario(sender_on(true, estimated), names)))
            answers[dump.name.split(".")[0]] = answer
        except WeirError as error:
            print(f"{dump}: {error}", file=sys.stderr)
    if not pairs:
        print("no call has a network", file=sys.stderr)
        return 2
    show(pairs)
    if given.real:
        show_real(answers, names, given.real, given.weir)
    return 0


if __name__ == "__main__":
    sys.exit(main())
