"""`python -m weir_rtc sweep FILE.toml --out FOLDER` makes a sweep that a file describes, `sweep --replay KEY --out FOLDER`
one of its runs again, and `report FOLDER -o FILE` writes its report. `weir sweep` and `weir report` call these. A file:

scenarios = ["rfc8867/5.1", "rfc8867/5.2"]
controllers = "gcc,nada"
seeds = 20                                  # 1 to 20, or a list
series = true                               # also the rows of each 50 ms
unit_s = 10                                 # how long a unit of work should take (default: 1 s)

[grid]                                      # or [sobol] or [latin-hypercube] with points = 64, seed = 1
"network.up.delay" = ["10ms", "50ms"]       # there {low = 5, high = 200, unit = "ms", logarithmic = true}
"""

from __future__ import annotations

import argparse
import os
import sys
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

from . import WeirError
from .sweep_report import replay, write
from .sweeps import Range, grid, latin_hypercube, sobol, sweep

DRAWS = {"sobol": sobol, "latin-hypercube": latin_hypercube}
#: Seeds from 1 at most. A slip of the finger would otherwise fill the memory.
SEEDS_MAX = 1_000_000
#: Keys of the file.
KEYS = ("scenarios", "controllers", "seeds", "series", "unit_s", "grid", *DRAWS)


def read(file: Path) -> dict[str, Any]:
    """The file's document, whose keys are checked."""
    try:
        document = tomllib.loads(file.read_text())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise WeirError(f"not valid TOML: {error}") from None
    except RecursionError:
        raise WeirError("not valid TOML: nested too deep") from None
    known(document, KEYS, "a sweep")
    if "scenarios" not in document:
        raise WeirError('scenarios is missing; write scenarios = ["rfc8867/5.1"]')
    for key in ("scenarios", "controllers"):
        found = document.get(key, "")
        if not all(isinstance(it, str) for it in (found if isinstance(found, list) else [found])):
            raise WeirError(f"{key}: expected a text or a list of texts, found {found!r}")
    if type(document.get("series", False)) is not bool:
        raise WeirError(f"series: expected true or false, found {document['series']!r}")
    if type(document.get("unit_s", 1)) not in (int, float):
        raise WeirError(f"unit_s: expected a number, found {document['unit_s']!r}")
    return document


def known(table: Mapping[str, Any], keys: Iterable[str], what: str) -> None:
    """Raises `WeirError` for a key that the table cannot have."""
    for key in table:
        if key not in keys:
            raise WeirError(f"{what} has no key {key!r}; write one of {', '.join(keys)}")


def words_of(error: Exception) -> str:
    """What went wrong, without the number that Python puts before a system's error."""
    if not isinstance(error, OSError) or error.strerror is None:
        return str(error)
    return error.strerror + (f": {error.filename}" if error.filename else "")


def seeds_of(document: Mapping[str, Any]) -> list[int]:
    """The seeds that the file names: from 1 to a number, or a list."""
    found = document.get("seeds", 1)
    if type(found) is int and found > SEEDS_MAX:
        raise WeirError(f"seeds: at most {SEEDS_MAX}, found {found}; a list names single ones")
    seeds = list(range(1, found + 1)) if type(found) is int else found
    if not isinstance(seeds, list) or not seeds or any(type(seed) is not int for seed in seeds):
        raise WeirError(f"seeds: expected a number from 1 or a list of numbers, found {found!r}")
    return seeds


def parameters(document: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The points that the file describes; one without changes if it describes none."""
    named = [name for name in ("grid", *DRAWS) if name in document]
    if not named:
        return [{}]
    if len(named) > 1:
        raise WeirError(
            f"a sweep has one of grid, sobol, latin-hypercube, not {' and '.join(named)}"
        )
    [name] = named
    if not isinstance(document[name], dict):
        raise WeirError(f"{name}: expected a table, found {document[name]!r}")
    table = dict(document[name])
    if name == "grid":
        return grid(table)
    numbers = {"points": table.pop("points", None), "seed": table.pop("seed", 1)}
    for key, value in numbers.items():
        if type(value) is not int or value < 0:
            raise WeirError(f"{name}.{key}: expected a number, found {value!r}")
    ranges = {path: range_of(path, value) for path, value in table.items()}
    return DRAWS[name](ranges, **numbers)


def range_of(path: str, value: Any) -> Range:
    """The range that the file describes for a parameter."""
    if not isinstance(value, dict) or not {"low", "high"} <= set(value):
        raise WeirError(f'{path}: write {{ low = 5, high = 200, unit = "ms" }}, not {value!r}')
    known(value, [it.name for it in fields(Range)], path)
    try:
        return Range(**value)
    except (WeirError, TypeError) as error:
        raise WeirError(f"{path}: {error}") from None


def add_fleet(parser: argparse.ArgumentParser) -> None:
    """The words of `fleet`."""
    whats = parser.add_subparsers(dest="what", required=True)
    make = whats.add_parser("analyze", help="analyze dumps into a folder of tables")
    make.add_argument("files", nargs="+", help="dumps, folders, patterns and archives")
    make.add_argument("--out", type=Path, required=True, help="folder of the tables")
    make.add_argument("--workers", type=int, help="threads")
    make.add_argument("--scheduler", help="address of a Dask scheduler, tcp://HOST:PORT")
    make.add_argument("--seconds", action="store_true", help="also a row for each second")
    page = whats.add_parser("report", help="write the page of a folder of tables")
    page.add_argument("lake", type=Path)
    page.add_argument("-o", "--output", type=Path, default=Path("fleet.html"))
    page.add_argument("--metadata", type=Path, help="CSV with a column `file` or `call_id`")
    page.add_argument("--by", help="column by which the calls are split")
    page.add_argument("--before", help="value of that column that is compared")
    page.add_argument("--after", help="value that it is compared with")
    page.add_argument("--user", help="column that names the user")
    page.add_argument("--over", help="column with the time of each call")
    page.add_argument(
        "--what-if", type=int, help="calls that are simulated under other controllers"
    )
    page.add_argument("--controllers", help="these controllers, that of the calls first")
    page.add_argument("--calls", type=Path, help="folder for the reports of the calls it shows")


def main() -> int:
    given = arguments()
    if given.verb == "fleet":
        return fleet(given)
    about = given.folder if given.verb == "report" else given.file or given.out
    try:
        if given.verb == "report":
            write(given.folder, given.output)
            print(given.output)
        elif given.replay is not None:
            print(replay(given.out, given.replay)["out"])
        else:
            sweep_of_file(given)
    except (WeirError, OSError) as error:
        print(f"weir_rtc: {about}: {words_of(error)}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return stopped()
    return 0


def fleet(given: argparse.Namespace) -> int:
    """Analyzes many dumps, or writes the report of them."""
    from . import fleet as many
    from . import fleet_report

    def show(counts: many.Counts) -> None:
        if sys.stderr.isatty():
            print(f"\r{counts.words()}", end="", file=sys.stderr)

    def show_calls(done: int, of: int) -> None:
        if sys.stderr.isatty():
            end = "\n" if done == of else ""
            print(f"\r{done} of {of} calls simulated", end=end, file=sys.stderr)

    try:
        if given.what == "report":
            asked = {
                it.name: getattr(given, it.name)
                for it in fields(fleet_report.Asked)
                if it.name != "progress"
            }
            fleet_report.write(fleet_report.Asked(**asked, progress=show_calls))
            print(given.output)
            return 0
        counts = many.analyze(
            given.files,
            given.out,
            workers=given.workers,
            scheduler=given.scheduler,
            seconds=given.seconds,
            progress=show,
        )
    except (WeirError, OSError) as error:
        print(f"weir_rtc: {words_of(error)}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return stopped()
    if sys.stderr.isatty():
        print(file=sys.stderr)
    print(counts.words())
    if not counts.is_stopped:
        return 0
    code = stopped()
    if counts.is_given_up:
        sys.stdout.flush()
        sys.stderr.flush()
        # Python's own end may wait for what the thread that was left behind waits for.
        os._exit(code)
    return code


def stopped() -> int:
    """Says that a signal came, and returns the exit code of that."""
    print("weir_rtc: stopped; the same command goes on", file=sys.stderr)
    return 130


def arguments() -> argparse.Namespace:
    """The words of the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m weir_rtc",
        description="Makes sweeps and their reports, like the program `weir`.",
    )
    verbs = parser.add_subparsers(dest="verb", required=True)
    make = verbs.add_parser("sweep", help="make the runs of a sweep, or one of them again")
    what = make.add_mutually_exclusive_group(required=True)
    what.add_argument("file", type=Path, nargs="?", help="what is swept")
    what.add_argument("--replay", metavar="KEY", help="this run again: its key, or its beginning")
    make.add_argument("--out", type=Path, required=True, help="folder of the results")
    make.add_argument("--scheduler", help="address of a Dask scheduler, tcp://HOST:PORT")
    make.add_argument("--workers", type=int, help="processes, without a scheduler")
    add_fleet(verbs.add_parser("fleet", help="analyze the dumps of many calls"))
    page = verbs.add_parser("report", help="write the page of a sweep")
    page.add_argument("folder", type=Path, help="folder of the results")
    page.add_argument("-o", "--output", type=Path, default=Path("report.html"))
    return parser.parse_args()


def sweep_of_file(given: argparse.Namespace) -> None:
    """Makes the sweep that the file describes."""
    document = read(given.file)
    # A log gets no line that is written again and again.
    shown = sys.stderr.isatty()

    def progress(runs: int, of: int) -> None:
        if shown:
            print(f"\r{runs} of {of} runs", end="", file=sys.stderr)

    try:
        done = sweep(
            document["scenarios"],
            document.get("controllers", "library"),
            seeds_of(document),
            parameters(document),
            out=given.out,
            scheduler=given.scheduler,
            workers=given.workers,
            unit_s=document.get("unit_s", 1.0),
            series=document.get("series", False),
            progress=progress,
        )
    finally:
        if shown:
            print(file=sys.stderr)
    print(
        f"{done.simulated} runs simulated in {done.took_s:.1f} s, {done.kept} were there: {done.out}"
    )


if __name__ == "__main__":
    sys.exit(main())
