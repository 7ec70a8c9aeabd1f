"""Runs the policy in Python as its runs in Rust were run, and compares what was sent: compare.py weights.txt RUNS.

RUNS is the folder that `cargo run -- SCENARIO... --out RUNS` wrote. Only scenarios with one media flow are compared,
because the other flows of the environment have another controller. The rows of every 50 ms must be equal: they are if
environment and policy count what feedback says in the same way and compute the same network.
"""

import csv
import json
import sys
from pathlib import Path

import numpy as np
import pyarrow
import weir_rtc
from weir_rtc.env import CHANGE_MAX as DOUBLE
from weir_rtc.env import Rtc

INPUTS, HIDDEN, CHANGE_MAX = 6, 8, 0.2
COLUMNS = ("target_bps", "sent_bytes", "received_bytes")


def softsign(x):
    return x / (1.0 + np.abs(x))


def act(weights: np.ndarray, seen: np.ndarray) -> float:
    """The change of the bitrate, in doublings, as `src/policy.rs` computes it."""
    first = weights[: HIDDEN * (INPUTS + 1)].reshape(HIDDEN, INPUTS + 1)
    last = weights[HIDDEN * (INPUTS + 1) :]
    hidden = softsign(first[:, :INPUTS] @ seen + first[:, INPUTS])
    return CHANGE_MAX * min(max(float(last[:HIDDEN] @ hidden + last[HIDDEN]), -1.0), 1.0)


def run(weights: np.ndarray, scenario, seed: int) -> pyarrow.Table:
    """The series of a run under the policy, step by step from Python."""
    session = weir_rtc.Session(scenario, seed, 60, "gcc")
    seen = session.step()
    while seen is not None:
        change = act(weights, Rtc.observe(seen).astype(np.float64))
        seen = session.step(seen.target_bps * DOUBLE**change)
    return pyarrow.table(session.result().series)


def main() -> int:
    weights = np.array([float(line) for line in Path(sys.argv[1]).read_text().split()])
    equal = True
    for file in sorted(Path(sys.argv[2]).rglob("policy-sim-seed*/run.json")):
        about = json.loads(file.read_text())
        scenario = weir_rtc.Scenario(about["scenario_text"], about["scenario"])
        with open(file.with_name("series.csv")) as rows:
            rust = list(csv.DictReader(rows))
        python = run(weights, scenario, int(about["seed"]))
        name = f"{about['scenario']}, seed {about['seed']}"
        if len(set(python.column("flow").to_pylist())) > 1:
            print(f"{name}: has several flows")
            continue
        differing = [
            column
            for column in COLUMNS
            if [str(it) for it in python.column(column).to_pylist()]
            != [row[column] for row in rust]
        ]
        print(f"{name}: {len(rust)} rows, " + (f"other {differing}" if differing else "equal"))
        equal = equal and not differing
    return 0 if equal else 1


if __name__ == "__main__":
    sys.exit(main())
