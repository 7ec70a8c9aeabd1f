"""`python -m weir_rtc FILE.toml --out FOLDER`: a sweep that a file describes. `report FOLDER --output FILE` writes its
report, `replay FOLDER KEY` makes one of its runs again. `weir sweep` and `weir report` call these.

scenarios = ["rfc8867/5.1", "rfc8867/5.2"]
controllers = "gcc,nada"
seeds = 20                                  # 1 to 20, or a list
series = true                               # also the rows of each 50 ms

[grid]                                      # or [sobol] or [latin-hypercube] with points = 64, seed = 1
"network.up.delay" = ["10ms", "50ms"]       # there {low = 5, high = 200, unit = "ms", logarithmic = true}
"""

from __future__ import annotations

import argparse
import sys
import tomllib
from pathlib import Path

from . import WeirError
from .sweep_report import replay, write
from .sweeps import Range, grid, latin_hypercube, sobol, sweep

DRAWS = {"sobol": sobol, "latin-hypercube": latin_hypercube}


def parameters(document: dict) -> list[dict]:
    """The points that the file describes; one without changes if it describes none."""
    named = [name for name in ("grid", *DRAWS) if name in document]
    if not named:
        return [{}]
    if len(named) > 1:
        raise WeirError(
            f"a sweep has one of grid, sobol, latin-hypercube, not {' and '.join(named)}"
        )
    table = dict(document[named[0]])
    if named == ["grid"]:
        return grid(table)
    points, seed = table.pop("points"), table.pop("seed", 1)
    return DRAWS[named[0]]({name: Range(**value) for name, value in table.items()}, points, seed)


def main() -> int:
    if sys.argv[1:2] in (["report"], ["replay"]):
        return of_sweep(sys.argv[1], sys.argv[2:])
    parser = argparse.ArgumentParser(
        prog="python -m weir_rtc", description="Makes the runs of a sweep."
    )
    parser.add_argument("file", type=Path, help="what is swept")
    parser.add_argument("--out", type=Path, required=True, help="folder of the results")
    parser.add_argument("--scheduler", help="address of a Dask scheduler, tcp://HOST:PORT")
    parser.add_argument("--workers", type=int, help="processes, without a scheduler")
    given = parser.parse_args()
    try:
        document = tomllib.loads(given.file.read_text())
        seeds = document.get("seeds", 1)
        done = sweep(
            document["scenarios"],
            document.get("controllers", "all"),
            range(1, seeds + 1) if isinstance(seeds, int) else seeds,
            parameters(document),
            out=given.out,
            scheduler=given.scheduler,
            workers=given.workers,
            series=document.get("series", False),
            progress=lambda runs, of: print(f"\r{runs} of {of} runs", end="", file=sys.stderr),
        )
    except (WeirError, OSError, tomllib.TOMLDecodeError, TypeError) as error:
        print(f"weir_rtc: {given.file}: {error}", file=sys.stderr)
        return 2
    except KeyError as error:
        print(f"weir_rtc: {given.file}: no {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130
    print(
        f"\r{done.simulated} runs simulated in {done.took_s:.1f} s, {done.kept} were there: {done.out}"
    )
    return 0


def of_sweep(verb: str, words: list[str]) -> int:
    """Something about a sweep that is there."""
    parser = argparse.ArgumentParser(prog=f"python -m weir_rtc {verb}")
    parser.add_argument("folder", type=Path, help="folder of the results")
    if verb == "report":
        parser.add_argument("--output", type=Path, default=Path("report.html"))
    else:
        parser.add_argument("key", help="key of the run, or its beginning")
    given = parser.parse_args(words)
    try:
        if verb == "report":
            write(given.folder, given.output)
            print(given.output)
        else:
            print(replay(given.folder, given.key)["out"])
    except (WeirError, OSError) as error:
        print(f"weir_rtc: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
