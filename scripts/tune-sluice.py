#!/usr/bin/env python3
"""Tunes the constants of sluice by CMA-ES on generated scenarios.

usage: scripts/tune-sluice.py [--minutes N] [--seeds A-B] [--families LIST] [--constants LIST]
                              [--population N] [--repeats N] [--seed N] [--gate LIST] [--out FILE]

Each candidate is simulated with `weir research score` on the training seeds; the objective is the mean regret
and half of that of the worst tenth of the scenarios (docs/reference/generated-scenarios.md). The
search runs over the logarithms of the constants, from the documented values on, within half and
twice of them. With --gate, each expectation of these scenarios that fails costs 0.02: the catalogue
is not trained on, but what breaks it cannot be taken. At the end the constants are rounded to two digits, and both the documented and the
tuned ones are scored on the validation seeds. Nothing is written into the code. The last output is
JSON, and --out also takes it.

    python3 -m venv target/tune-python && target/tune-python/bin/pip install cma==4.5.0 numpy==2.4.6
    target/tune-python/bin/python scripts/tune-sluice.py --minutes 480 --repeats 3 --out tuned.json

The number of candidates depends on the machine's speed, so a time limit alone does not give the same
result again. --evaluations does: with it, the same arguments give the same candidates.
"""

import argparse
import json
import math
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import cma

ROOT = Path(__file__).resolve().parent.parent
# The constants that shape the law in every network. Those of competition and of marks are in reach
# of --constants.
CONSTANTS = (
    "q_min,k_noise,k_packet,margin,t_queue,t_level,w_level,g_start,g_climb,g_track,g_recover,"
    "t_double,t_base,pacing"
)
FACTOR = 2.0
STEP = 0.15
# What an expectation of the gate costs that fails.
COST = 0.02


def program():
    named = os.environ.get("WEIR")
    if named:
        return named
    target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    built = [target / profile / "weir" for profile in ("release", "debug")]
    built = [path for path in built if path.exists()]
    if not built:
        sys.exit("tune-sluice: no weir: `make build` first, or name the program in WEIR")
    return str(max(built, key=lambda path: path.stat().st_mtime))


def weir(*arguments):
    result = subprocess.run([program(), *arguments], capture_output=True, text=True, check=False)
    if result.returncode != 0:
        sys.exit(f"tune-sluice: {result.stderr.strip()}")
    return result.stdout


def scenarios(name, seeds, families):
    """Writes the scenarios of these seeds and returns the paths of those of the families."""
    folder = ROOT / "target/tune" / f"{name}-{seeds}"
    weir("research", "generate", seeds, "--out", str(folder))
    of = sorted(str(path) for path in folder.glob("*/*.toml"))
    return [path for path in of if not families or Path(path).parent.name in families]


def objective(paths, repeats, constants):
    settings = [f"--set=sluice.{name}={value:.6g}" for name, value in constants.items()]
    seeds = ["--seeds", str(repeats)]
    text = weir("research", "score", *paths, "--controller", "sluice", *seeds, "--json", *settings)
    [controller] = json.loads(text)["controllers"]
    return controller


def failures(gate, constants):
    """How many expectations of the gate fail."""
    if not gate:
        return 0
    settings = [f"--set=sluice.{name}={value:.6g}" for name, value in constants.items()]
    command = [program(), "check", *gate, "--controller", "sluice", *settings]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    failed = re.search(r"^\d+ expectations: .*?(\d+) failed", result.stdout, re.MULTILINE)
    if not failed:
        sys.exit(f"tune-sluice: {result.stderr.strip()}")
    return int(failed[1])


def two_digits(value):
    digits = 1 - math.floor(math.log10(value))
    return round(value, digits)


def main():
    parser = argparse.ArgumentParser(usage=__doc__.split("\n\n")[1].removeprefix("usage: "))
    parser.add_argument("--minutes", type=float, default=480)
    parser.add_argument("--evaluations", type=int, default=None)
    parser.add_argument("--seeds", default="1-200")
    parser.add_argument("--validate", default="201-300")
    parser.add_argument("--families", default="")
    parser.add_argument("--constants", default=CONSTANTS)
    parser.add_argument("--population", type=int, default=12)
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--gate", default="")
    parser.add_argument("--out", type=Path, default=None)
    options = parser.parse_args()

    known = dict(
        line.split() for line in weir("research", "score", "--list-constants").splitlines()
    )
    names = options.constants.split(",")
    unknown = [name for name in names if name not in known]
    if unknown:
        sys.exit(f"tune-sluice: sluice has no constant {', '.join(unknown)}")
    documented = {name: float(known[name]) for name in names}
    families = set(filter(None, options.families.split(",")))
    train = scenarios("train", options.seeds, families)
    end = time.monotonic() + 60 * options.minutes

    def constants(logs):
        return {name: documented[name] * math.exp(log) for name, log in zip(names, logs)}

    bound = math.log(FACTOR)
    settings = {
        "bounds": [-bound, bound],
        "popsize": options.population,
        "seed": options.seed,
        "verbose": -9,
    }
    search = cma.CMAEvolutionStrategy([0.0] * len(names), STEP, settings)
    gate = options.gate.split()
    before = objective(train, options.repeats, {})
    best, best_constants, evaluations = before["objective"], documented, 1
    print(f"documented: {best:.4f} on {len(train)} scenarios", file=sys.stderr)
    while not search.stop():
        candidates = search.ask()
        values = []
        for candidate in candidates:
            tried = constants(candidate)
            value = objective(train, options.repeats, tried)["objective"]
            value += COST * failures(gate, tried)
            evaluations += 1
            if value < best:
                best, best_constants = value, tried
                print(f"{evaluations}: {best:.4f}", file=sys.stderr)
            values.append(value)
        search.tell(candidates, values)
        if options.evaluations and evaluations >= options.evaluations:
            break
        if not options.evaluations and time.monotonic() > end:
            break

    # The centre of the search is less lucky than its best candidate. Both are tried.
    results = {
        "best": {name: two_digits(value) for name, value in best_constants.items()},
        "centre": {
            name: two_digits(value) for name, value in constants(search.result.xfavorite).items()
        },
    }
    validate = scenarios("validate", options.validate, families)
    result = {
        "evaluations": evaluations,
        "train_scenarios": len(train),
        "validate_scenarios": len(validate),
        "documented": {
            "constants": documented,
            "train": before,
            "validate": objective(validate, options.repeats, {}),
        },
    }
    for label, of in results.items():
        result[label] = {
            "constants": of,
            "train": objective(train, options.repeats, of),
            "validate": objective(validate, options.repeats, of),
            "gate_failures": failures(gate, of),
        }
    text = json.dumps(result, indent=1)
    print(text)
    if options.out:
        options.out.write_text(text + "\n")


if __name__ == "__main__":
    main()
