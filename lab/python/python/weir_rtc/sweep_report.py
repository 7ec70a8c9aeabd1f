"""The report of a sweep: DuckDB computes means over the Parquet files, the page is that of every report.

>>> import weir_rtc
>>> weir_rtc.report("sweep", "sweep.html")  # doctest: +SKIP
"""

from __future__ import annotations

import glob
import itertools
import json
import re
import sys
from collections import defaultdict
from pathlib import Path

from . import _weir
from ._weir import WeirError, __version__
from .sweep_files import (
    COLUMNS,
    HASH,
    KEY_BEGIN,
    SCENARIO,
    keys,
    programs,
    read,
    result_files,
    traces_of,
)

#: Metrics that the report shows, if a run has them.
METRICS = (
    "utilization",
    "queuing_delay_ms.p95",
    "loss_ratio.mean",
    "rate_mbps.mean",
    "rtt_ms.mean",
    "freeze_duration_s",
    "good_ratio",
)
#: A parameter with more values is shown in ranges of them.
VALUES_MAX = 12
#: Number of these ranges. Each has about the same number of values.
RANGES = 8
#: Runs in a list of the worst.
WORST = 10
#: What the rows of a scenario without a flow under the controller name as the controller.
NO_CONTROLLER = "none"
#: Dots of a scenario, without those of the fronts.
DOTS_MAX = 2000
#: Letters of a key in a command: enough that no two of a sweep are equal.
KEY_SHOWN = 16
#: Digits of a value in the page.
DIGITS = 6
#: Units of scenario files by the factor that orders their values.
UNITS = {
    "us": 1e-6,
    "ms": 1e-3,
    "s": 1.0,
    "min": 60.0,
    "bps": 1.0,
    "kbps": 1e3,
    "Mbps": 1e6,
    "Gbps": 1e9,
    "%": 1e-2,
}


def has_sweep(folder: Path) -> bool:
    """Whether a sweep has written into this folder."""
    return next(Path(folder).glob("*/*.parquet"), None) is not None


def write(folder: Path, file: Path, command: str | None = None) -> None:
    """Writes the report of the sweep in this folder: one HTML file that needs no network."""
    folder = Path(folder)
    made_with = command or _weir.command_line(
        "weir report", [str(folder)], paths=[("-o", str(file))]
    )
    _weir.sweep_report(json.dumps(data(folder, made_with)), Path(file))


def data(folder: Path, command: str) -> dict:
    """What the page shows, in the form of `lab/report/src/sweep.rs`. Raises `WeirError`."""
    import duckdb

    files = result_files(folder)
    if not files:
        raise WeirError("no result of a sweep is here")
    made_by = programs(files)
    if len(made_by) > 1:
        [(one, of_one), (other, of_other), *_] = made_by.items()
        raise WeirError(
            f"it has results of {len(made_by)} programs, which no mean can be taken of: of {one} ({of_one}) and of "
            f"{other} ({of_other}): move the files of all but one away"
        )
    try:
        with duckdb.connect() as db:
            return _data(db, folder, files, command)
    except duckdb.Error as error:
        [line, *_] = str(error).splitlines() or ["DuckDB"]
        raise WeirError(f"its Parquet files are no results of a sweep: {line}") from None


def _data(db, folder: Path, files: list[Path], command: str) -> dict:
    # DuckDB takes a path for a pattern.
    paths = ", ".join("'" + glob.escape(str(file)).replace("'", "''") + "'" for file in files)
    rows = f"read_parquet([{paths}], union_by_name = true, hive_partitioning = false)"
    columns = [row[0] for row in db.execute(f"describe select * from {rows}").fetchall()]
    parameters = [it for it in columns if it not in COLUMNS and _weir.metric(it) is None]
    metrics = [it for it in METRICS if it in columns]
    # A row for each run. Values of its media flows become their mean.
    values = "".join(f", avg({_name(it)}) as {_name(it)}" for it in metrics)
    at = "".join(f", any_value({_name(it)}::varchar) as {_name(it)}" for it in parameters)
    db.execute(
        "create table runs as select key, any_value(scenario) as scenario, any_value(controller) as controller, "
        f"any_value(seed) as seed{at}{values} from {rows} "
        "where section = '' and kind = 'media' group by key"
    )
    metrics = [
        it for it in metrics if db.execute(f"select count({_name(it)}) from runs").fetchall()[0][0]
    ]
    made = _Made(db, folder, parameters, metrics)
    found = db.execute("select distinct scenario from runs order by all").fetchall()
    return {
        "schema": 1,
        "kind": "sweep",
        "title": "Weir report of a sweep",
        "command": command,
        "generator": f"weir {__version__}",
        "controllers": made.controllers,
        "metrics": [_metric(it) for it in metrics],
        "runs": db.execute("select count(*) from runs").fetchall()[0][0],
        "scenarios": [made.scenario(row[0]) for row in found],
    }


def _name(column: str) -> str:
    """A column's name in SQL."""
    return '"' + column.replace('"', '""') + '"'


def _metric(path: str) -> dict:
    unit, better, meaning = _weir.metric(path)
    return {"name": path, "unit": unit, "better": better, "meaning": meaning}


def _rounded(value: float | None) -> float | None:
    return None if value is None else float(f"{value:.{DIGITS}g}")


def _order(text: str) -> tuple:
    """Sorts values of a parameter: numbers by their size, with their unit, then texts."""
    number = re.fullmatch(r"(-?[0-9]+(?:\.[0-9]*)?(?:e[-+]?[0-9]+)?)\s*([A-Za-z%]*)", text)
    if number is None or number[2] not in {"", *UNITS}:
        return (1, 0.0, text)
    return (0, float(number[1]) * UNITS.get(number[2], 1.0), text)


class _Made:
    """Makes the parts of the page of one scenario after the other."""

    def __init__(self, db, folder: Path, parameters: list[str], metrics: list[str]):
        self.db = db
        self.folder = folder
        self.parameters = parameters
        self.metrics = metrics
        names = [row[0] for row in db.execute("select distinct controller from runs").fetchall()]
        library = _weir.controllers()
        rank = lambda name: library.index(name) if name in library else len(library)
        self.controllers = sorted(names, key=lambda name: (rank(name), name))
        self.number = {name: index for index, name in enumerate(self.controllers)}

    def scenario(self, scenario: str) -> dict:
        quoted = scenario.replace("'", "''")
        self.db.execute(
            f"create or replace temp view own as select * from runs where scenario = '{quoted}'"
        )
        runs, seeds = self.db.execute("select count(*), count(distinct seed) from own").fetchall()[
            0
        ]
        counts = ", ".join(f"count(distinct {_name(it)})" for it in self.parameters)
        several = self.db.execute(f"select {counts} from own").fetchall()[0] if counts else ()
        varied = [it for it, count in zip(self.parameters, several, strict=True) if count > 1]
        parameters = [self._parameter(it) for it in varied]
        dots, fronts, points = self._dots(varied)
        return {
            "id": scenario,
            "runs": runs,
            "seeds": seeds,
            "points": points,
            "parameters": parameters,
            "maps": self._maps(varied),
            "dots": dots,
            "fronts": fronts,
            "worst": self._worst(varied),
        }

    def _parameter(self, name: str) -> dict:
        """Names of the bins. Makes the table `bin_NAME` of each value's bin."""
        import pyarrow

        column = _name(name)
        rows = self.db.execute(
            f"select distinct {column} from own where {column} is not null"
        ).fetchall()
        values = sorted((row[0] for row in rows), key=_order)
        if len(values) <= VALUES_MAX or _order(values[-1])[0] == 1:
            bins, index = values, range(len(values))
        else:
            cuts = [len(values) * it // RANGES for it in range(RANGES + 1)]
            bins = [
                f"{values[low]} to {values[high - 1]}" for low, high in itertools.pairwise(cuts)
            ]
            index = [it for it in range(RANGES) for _ in range(cuts[it], cuts[it + 1])]
        table = pyarrow.table(
            {"value": pyarrow.array(values, pyarrow.string()), "bin": list(index)}
        )
        self.db.register("found", table)
        self.db.execute(
            f"create or replace temp table {_name('bin_' + name)} as select * from found"
        )
        self.db.unregister("found")
        return {"name": name, "bins": bins}

    def _maps(self, varied: list[str]) -> list[dict]:
        if len(varied) == 1:
            return [self._map(varied, 0, None)]
        pairs = [(x, y) for x in range(len(varied)) for y in range(x + 1, len(varied))]
        return [self._map(varied, x, y) for x, y in pairs]

    def _map(self, varied: list[str], x: int, y: int | None) -> dict:
        means = "".join(f", avg({_name(it)})" for it in self.metrics)
        join = f"join {_name('bin_' + varied[x])} as x on own.{_name(varied[x])} = x.value"
        if y is not None:
            join += f" join {_name('bin_' + varied[y])} as y on own.{_name(varied[y])} = y.value"
        row = "0" if y is None else "y.bin"
        rows = self.db.execute(
            f"select controller, x.bin, {row}, count(*){means} from own {join} group by 1, 2, 3 order by 1, 2, 3"
        ).fetchall()
        cells = [
            {
                "controller": self.number[controller],
                "x": bin_x,
                "y": bin_y,
                "runs": runs,
                "values": [_rounded(value) for value in values],
            }
            for controller, bin_x, bin_y, runs, *values in rows
        ]
        return {"x": x, "y": y, "cells": sorted(cells, key=lambda it: it["controller"])}

    def _dots(self, varied: list[str]) -> tuple[list[dict], list[dict], int]:
        """The dots, the row of each controller, and the number of combinations of the parameters."""
        if not {"utilization", "queuing_delay_ms.p95"} <= set(self.metrics):
            return [], [], 0
        at = "".join(f", {_name(it)}" for it in varied)
        rows = self.db.execute(
            f'select controller{at}, avg("queuing_delay_ms.p95") as delay, avg(utilization) as used, count(*) '
            f"from own group by controller{at} having delay is not null and used is not null order by all"
        ).fetchall()
        dots, together = defaultdict(list), defaultdict(list)
        for controller, *where, delay, used, runs in rows:
            dot = {
                "controller": self.number[controller],
                "at": ["" if it is None else it for it in where],
                "p95_queuing_delay_ms": _rounded(delay),
                "utilization": _rounded(used),
                "runs": runs,
                "on_own_front": False,
            }
            dots[controller].append(dot)
            together[tuple(where)].append(dot)
        counts = {name: [0, 0, 0] for name in dots}
        for at_one in together.values():
            front = _front(at_one)
            for dot in at_one:
                count = counts[self.controllers[dot["controller"]]]
                count[0] += 1
                on_front = any(it is dot for it in front)
                count[1] += on_front
                count[2] += on_front and len(front) == 1 and len(at_one) > 1
        for of_one in dots.values():
            for dot in _front(of_one):
                dot["on_own_front"] = True
        every = [dot for name in self.controllers for dot in dots.get(name, [])]
        step = max(1, -(-len(every) // DOTS_MAX))
        shown = [dot for i, dot in enumerate(every) if dot["on_own_front"] or i % step == 0]
        fronts = [
            {"controller": self.number[name], "points": it[0], "on_front": it[1], "alone": it[2]}
            for name, it in sorted(counts.items(), key=lambda it: self.number[it[0]])
        ]
        return shown, fronts, len(together)

    def _worst(self, varied: list[str]) -> list[dict]:
        at = "".join(f", {_name(it)}" for it in varied)
        values = "".join(f", {_name(it)}" for it in self.metrics)
        found = []
        for index, metric in enumerate(self.metrics):
            better = _weir.metric(metric)[1]
            if better == "":
                continue
            order = f"{_name(metric)} {'asc' if better == 'higher' else 'desc'} nulls last, key"
            rows = self.db.execute(
                f"select controller, key, seed{at}{values} from own where {_name(metric)} is not null "
                f"qualify row_number() over (partition by controller order by {order}) <= {WORST} "
                f"order by {order}"
            ).fetchall()
            by_controller = defaultdict(list)
            for controller, key, seed, *others in rows:
                where, measured = others[: len(varied)], others[len(varied) :]
                run = {
                    "seed": str(seed),
                    "at": ["" if it is None else it for it in where],
                    "values": [_rounded(value) for value in measured],
                    "command": _weir.command_line(
                        "weir sweep",
                        [],
                        options=[("--replay", key[:KEY_SHOWN])],
                        paths=[("--out", str(self.folder))],
                    ),
                }
                by_controller[controller].append(run)
            for controller in self.controllers:
                if controller in by_controller:
                    runs = by_controller[controller]
                    found.append(
                        {"controller": self.number[controller], "metric": index, "runs": runs}
                    )
        return found


def _front(dots: list[dict]) -> list[dict]:
    """The dots that no other beats: none has at least the utilization and at most the delay, and one of them better."""
    ordered = sorted(dots, key=lambda it: (it["p95_queuing_delay_ms"], -it["utilization"]))
    front: list[dict] = []
    for dot in ordered:
        last = front[-1] if front else None
        equal = last is not None and (
            last["p95_queuing_delay_ms"] == dot["p95_queuing_delay_ms"]
            and last["utilization"] == dot["utilization"]
        )
        if last is None or dot["utilization"] > last["utilization"] or equal:
            front.append(dot)
    return front


def replay(folder: Path, key: str) -> dict:
    """Makes one run of a sweep again, with its record in `FOLDER/replays`. Returns its row, new and old.

    `key`: the run's key or its beginning. Raises `WeirError`. What the files of the folder say leads to no path outside
    it.
    """
    import pyarrow

    from . import Scenario, run
    from .space import changed

    folder = Path(folder)
    if not KEY_BEGIN.fullmatch(key):
        raise WeirError(f"a key has at most 32 of the letters 0-9 and a-f, not {key!r}")
    for file in result_files(folder):
        if any(it.startswith(key) for it in keys([file])):
            break
    else:
        raise WeirError(f"no run has the key {key}")
    table = read(file)
    own = [it for it in table.to_pylist() if (it["key"] or "").startswith(key)]
    old = next((it for it in own if it["section"] == ""), None)
    if old is None or None in [old[name] for name in COLUMNS]:
        raise WeirError(f"{file} has no whole row of the run {key}")
    if not HASH.fullmatch(old["key"]):
        raise WeirError(f"{file} has a key that no sweep writes: {old['key']!r}")
    controller = old["controller"]
    if controller == NO_CONTROLLER:
        # No flow is under it, so any gives this run.
        controller = "library"
    elif controller not in _weir.controllers():
        raise WeirError(f"{old['controller']} is no controller of the library: run it from Python")
    metadata = table.schema.metadata or {}
    of_scenario = metadata.get(SCENARIO)
    if of_scenario is None:
        raise WeirError(f"{file} does not contain its scenario")
    try:
        text = of_scenario.decode()
    except UnicodeDecodeError:
        raise WeirError(f"{file} contains a scenario that is no text") from None
    # Also an empty table: the scenario reads no file of this machine.
    traces = traces_of(folder, metadata)
    names = [it for it in table.column_names if it not in COLUMNS and _weir.metric(it) is None]
    point = {it: old[it] for it in names if old[it] is not None}
    import tomllib

    scenario = Scenario(text, old["scenario"], traces=traces)
    if point:
        document = changed(tomllib.loads(text), point)
        changed_text = _weir.toml_of_json(json.dumps(document))
        scenario = Scenario(changed_text, old["scenario"], traces=traces)
    out = folder / "replays" / old["key"]
    if not out.resolve().is_relative_to(folder.resolve()):
        raise WeirError(f"{out} leads out of the folder")
    made = run(scenario, controller, [old["seed"]], out=out)
    new = next(it for it in pyarrow.table(made.summaries).to_pylist() if not it["section"])
    same = all(old.get(name) == value for name, value in new.items())
    if not same:
        print("weir_rtc: the values differ: this is another program", file=sys.stderr)
    return {"out": out, "same": same, "row": new, "was": old}
