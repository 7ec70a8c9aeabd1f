"""Weir: how does a call behave on this network under this controller, and why?

>>> import weir_rtc
>>> runs = weir_rtc.run("demo/first-call", controller="gcc", seeds=range(2))
>>> len(runs)
2
"""

from __future__ import annotations

import json
import operator
import os
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from . import _weir, pool
from ._weir import (
    Observation,
    PacketReport,
    Report,
    Scenario,
    Session,
    WeirError,
    __version__,
    catalogue,
    controllers,
    metric,
    series_columns,
)
from ._weir import Runs as _Runs
from .builder import Builder
from .controller import Controller
from .space import Range, grid, latin_hypercube, sobol
from .sweeps import Sweep, sweep
from .types import ArrowTable, Buildable, ControllerLike, Judgement, ScenarioLike

__all__ = [
    "ArrowTable",
    "Builder",
    "Controller",
    "ControllerLike",
    "Judgement",
    "Observation",
    "PacketReport",
    "Range",
    "Report",
    "Runs",
    "Scenario",
    "ScenarioLike",
    "Session",
    "Sweep",
    "WeirError",
    "__version__",
    "catalogue",
    "check",
    "compare",
    "controllers",
    "grid",
    "latin_hypercube",
    "metric",
    "report",
    "run",
    "scenarios",
    "score",
    "series_columns",
    "sobol",
    "sweep",
]


class Runs:
    """The results of some runs.

    `series`, `events` and `summaries` are Arrow tables. Polars, pandas, PyArrow and DuckDB read them
    without a copy, for example `polars.DataFrame(runs.series)`.
    """

    def __init__(self, raw: _Runs, shown: list[tuple[Scenario, str | type[Controller], int]]):
        self._raw = raw
        self._shown = shown

    @property
    def series(self) -> ArrowTable:
        """A row for each run, flow and 50 ms; `series_columns()` gives units and meanings."""
        return self._raw.series

    @property
    def events(self) -> ArrowTable:
        """A row for each change of a target bitrate: time in µs, bitrates in bit/s, reason, state, signals."""
        return self._raw.events

    @property
    def summaries(self) -> ArrowTable:
        """A row for each run and flow, and for each section of the scenario; columns are metrics."""
        return self._raw.summaries

    def judgements(self) -> list[Judgement]:
        """What the scenarios expect of these controllers, and what came of it."""
        rows = self._raw.judgements()
        return [
            Judgement(scenario=it[0], controller=it[1], text=it[2], outcome=it[3], measured=it[4])
            for it in rows
        ]

    def json(self) -> list[dict[str, Any]]:
        """The summary of each run, as `weir run --json` prints it."""
        return [json.loads(text) for text in self._raw.json()]

    def report(self, file: str | os.PathLike[str]) -> None:
        """Writes the report of these runs: one HTML file that needs no network.

        The runs are simulated again, which gives the same bytes.
        """
        with tempfile.TemporaryDirectory() as folder:
            for scenario, controller, seed in self._shown:
                _weir.run([scenario], [controller], [seed], 1, Path(folder))
            _weir.report([Path(folder)], Path(file))

    def _repr_html_(self) -> str:
        from html import escape

        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "report.html"
            self.report(file)
            page = file.read_text()
        # The reader of a notebook first sees the plots of the first scenario. A fragment would scroll the notebook, too.
        first = json.dumps(self._shown[0][0].id if self._shown else "").replace("<", "\\u003c")
        to_plots = (
            f"const plots = document.getElementById({first})?.querySelector('figure');"
            "if (plots) scrollTo(0, plots.getBoundingClientRect().top - 48);"
        )
        page = escape(f"{page}<script>onload = () => {{ {to_plots} }};</script>", quote=True)
        return f'<iframe srcdoc="{page}" style="width:100%;height:640px;border:0" title="Weir report"></iframe>'

    def __len__(self) -> int:
        return len(self._raw)

    def __repr__(self) -> str:
        return f"<weir_rtc.Runs: {len(self)} runs>"


def scenarios(scenario: ScenarioLike) -> list[Scenario]:
    """The scenarios that this means.

    A `Scenario` or a `Builder`; the id of one in the catalogue; a pattern such as `"lund/*"`; the path of a `.toml`
    file; the text of such a file; a dict with its content; or an iterable of these. Raises `WeirError`.
    """
    if isinstance(scenario, Scenario):
        return [scenario]
    if isinstance(scenario, Buildable):
        return [scenario.build()]
    if isinstance(scenario, Mapping):
        return [Scenario(_weir.toml_of_json(json.dumps(scenario)))]
    if isinstance(scenario, os.PathLike):
        return _weir.find(os.fspath(scenario))
    if isinstance(scenario, str):
        return [Scenario(scenario)] if "\n" in scenario else _weir.find(scenario)
    if not isinstance(scenario, Iterable) or isinstance(scenario, bytes):
        raise TypeError(f"a scenario is no {type(scenario).__name__}: see weir_rtc.scenarios")
    return [found for one in scenario for found in scenarios(one)]


def chosen(controller: ControllerLike) -> list[str | type[Controller]]:
    """The controllers that this means, each a name or a class; `"gcc,nada"`, `"library"` and `"all"` stand for several names."""
    if isinstance(controller, str):
        return [*_weir.choose(controller)]
    if isinstance(controller, type) and issubclass(controller, Controller):
        return [controller]
    if isinstance(controller, type) or not isinstance(controller, Iterable):
        raise TypeError(f"a controller is a name or a subclass of Controller, not {controller!r}")
    return [one for several in controller for one in chosen(several)]


def numbers(seeds: Iterable[int]) -> list[int]:
    """The seeds, checked."""
    if not isinstance(seeds, Iterable):
        raise TypeError(f"seeds are several numbers, such as range({seeds}), not {seeds!r}")
    found = [operator.index(seed) for seed in seeds]
    wrong = next((seed for seed in found if not 0 <= seed < 2**64), None)
    if wrong is not None:
        raise WeirError(f"a seed is a number from 0 to 2^64 - 1, not {wrong}")
    return found


def run(
    scenario: ScenarioLike,
    controller: ControllerLike = "gcc",
    seeds: Iterable[int] = (1,),
    *,
    jobs: int = 0,
    out: str | os.PathLike[str] | None = None,
) -> Runs:
    """Simulates every scenario under every controller with every seed.

    A scenario without a flow that is under the controller runs once with each seed, under `none`.
    `scenario`: see `scenarios`. `controller`: a name, a list such as `"gcc,nada"`, `"library"`, `"all"`, a subclass
    of `Controller`, or an iterable of these. `jobs`: runs at a time; 0 means one for each core. Several runs of
    controllers in Python are made in processes; with `jobs=1`, all in this one.
    `out`: a folder that gets the records, as with `weir run --out`. Raises `WeirError`, or what a
    controller raised; Ctrl-C stops the runs.
    """
    if jobs < 0:
        raise WeirError(f"jobs is a number of runs at a time, or 0, not {jobs}")
    found, kinds, drawn = scenarios(scenario), chosen(controller), numbers(seeds)
    planned = planned_runs(found, kinds, drawn)
    if apart(kinds, len(planned), jobs):
        return Runs(_in_processes(planned, jobs, out), planned)
    # The interpreter's lock lets one thread at a time into Python: more would only wait for it.
    jobs = jobs if all(isinstance(kind, str) for kind in kinds) else 1
    raw = _weir.run(found, kinds, drawn, jobs, None if out is None else Path(out))
    return Runs(raw, planned)


def planned_runs(
    found: Iterable[Scenario],
    kinds: list[str | type[Controller]],
    seeds: Iterable[int],
) -> list[tuple[Scenario, str | type[Controller], int]]:
    """Every run, in the order of results. A scenario without a flow under the controller needs one controller."""
    seeds = list(seeds)
    planned: list[tuple[Scenario, str | type[Controller], int]] = []
    for one in found:
        for kind in kinds if one.is_controlled else kinds[:1]:
            planned.extend((one, kind, seed) for seed in seeds)
    return planned


def apart(kinds: list[str | type[Controller]], runs: int, jobs: int) -> bool:
    """Whether the runs are made in processes of their own: several runs with controllers in Python."""
    are_in_python = any(not isinstance(kind, str) for kind in kinds)
    names = [kind if isinstance(kind, str) else kind.name for kind in kinds]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise WeirError(f"two controllers are called {twice}")
    count = min(jobs or pool.cores(), runs)
    return are_in_python and count > 1 and all(map(pool.travels, kinds))


def _in_processes(
    planned: list[tuple[Scenario, str | type[Controller], int]],
    jobs: int,
    out: str | os.PathLike[str] | None,
) -> _Runs:
    """The runs, made by processes, which leave their results as records."""
    with tempfile.TemporaryDirectory(prefix="weir-rtc-") as folder:
        tasks = []
        for index, one in enumerate(planned):
            place = Path(folder, str(index)) if out is None else Path(out)
            tasks.append((index, *one, place))
        places: dict[int, Path] = dict(pool.in_processes(recorded, tasks, jobs or pool.cores()))
        return _weir.read_runs([places[index] for index in range(len(planned))])


def recorded(
    task: tuple[int, Scenario, str | type[Controller], int, Path],
) -> tuple[int, Path]:
    """Makes a run and its record. Returns the folder of the record. A process calls it."""
    index, scenario, controller, seed, place = task
    made = _weir.run([scenario], [controller], [seed], 1, place)
    return index, place / made.folders()[0]


def report(
    folders: Sweep | str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    file: str | os.PathLike[str],
) -> None:
    """Writes a report: one HTML file that needs no network.

    `folders`: a folder of records, as `out` of `run` has them, or several; or the folder of a sweep, or a `Sweep`. The
    report of a sweep has maps over its parameters, Pareto fronts and the worst runs. Raises `WeirError`.
    """
    from .sweep_report import has_sweep, write

    if isinstance(folders, Sweep):
        folders = folders.out
    if isinstance(folders, str | os.PathLike):
        folders = [folders]
    paths = [Path(folder) for folder in folders]
    if not paths:
        raise WeirError("a report needs a folder of records")
    if len(paths) == 1 and has_sweep(paths[0]):
        write(paths[0], Path(file))
    else:
        _weir.report(paths, Path(file))


def compare(
    before: Runs | str | os.PathLike[str],
    after: Runs | str | os.PathLike[str] | None = None,
    *,
    by: str = "folder",
    controllers: str | Iterable[str] | None = None,
) -> list[dict[str, Any]]:
    """Compares two sets of runs as `weir compare` does: each is a `Runs` or a folder of records.

    Each row has scenario, controller, engine, flow, metric, the means `before` and `after` with their 95 % confidence
    intervals, `change`, `change_percent`, `verdict` (better, worse, other, chance, equal, too few), `p` and `test`.
    `has_chance` is false for simulations in which nothing is random: every seed gives the same values, and no test
    applies.

    `by="folder"`: runs of the same scenario, controller and engine. `by="controller"`: runs of the same scenario and
    engine under two controllers, seed by seed. `controllers` names the two, such as `"gcc,mine"`. Without it, each side
    has one; or there is only one side, which has two. Then `before` is the value under the first, which the row has as
    `against`, and `after` that under the second, `controller`.

    Raises `WeirError`, also if there is nothing to compare.
    """
    given = [it for it in (before, after) if it is not None]
    sides = [it._raw if isinstance(it, Runs) else Path(it) for it in given]
    if by == "folder":
        if len(sides) < 2 or controllers is not None:
            raise WeirError('compare needs two sides, or by="controller"')
        return [json.loads(row) for row in _weir.compare(*sides, None)]
    if by != "controller":
        raise WeirError(f'by is "folder" or "controller", not {by!r}')
    if controllers is None:
        found = [_weir.controllers_of(side) for side in sides]
        names = found[0] if len(found) == 1 else [name for one in found for name in one]
        if len(names) != 2 or any(len(one) != 1 for one in found if len(found) == 2):
            listed = "; ".join(", ".join(one) for one in found)
            raise WeirError(f'name two controllers, such as controllers="gcc,mine", of: {listed}')
    else:
        names = controllers.split(",") if isinstance(controllers, str) else list(controllers)
        names = [name.strip() for name in names]
    if len(names) != 2 or names[0] == names[1]:
        raise WeirError(f"two different controllers are compared, not {', '.join(names)}")
    rows = _weir.compare(sides[0], sides[-1], (names[0], names[1]))
    return [json.loads(row) for row in rows]


def check(
    scenario: ScenarioLike,
    controller: ControllerLike = "library",
    seeds: Iterable[int] = (1,),
    *,
    jobs: int = 0,
) -> list[Judgement]:
    """Holds runs against what their scenarios expect, as `weir check` does.

    Each row has scenario, controller, text, outcome and measured value (`None` if there is none).
    """
    return run(scenario, controller, seeds, jobs=jobs).judgements()


def score(
    scenario: ScenarioLike,
    controller: ControllerLike = "library",
    seeds: Iterable[int] = (1,),
    *,
    own: str | None = None,
    jobs: int = 0,
) -> dict[str, list[dict[str, Any]]]:
    """Compares what controllers reach with what is possible, as `weir research score --json` does.

    `own`: the name of the controller that is compared with each other one; by default the first. The dict has
    `controllers` (mean regret of each, worst tenth, objective), `contests` (won, tied and lost scenarios, families with
    p values) and `runs` (the terms of each run's regret). Runs are made in processes, one for each core, unless
    `jobs` is 1. Raises `WeirError`, or what a controller raised.
    """
    found, kinds, drawn = scenarios(scenario), chosen(controller), numbers(seeds)
    names = [kind if isinstance(kind, str) else kind.name for kind in kinds]
    own = names[0] if own is None else own
    if own not in names:
        raise WeirError(f"own is one of the controllers, {', '.join(names)}, not {own!r}")
    tasks = planned_runs(found, kinds, drawn)
    count = jobs or pool.cores()
    numbered = list(enumerate(tasks))
    if count > 1 and all(map(pool.travels, kinds)):
        scores = dict(pool.in_processes(scored, numbered, count))
    else:
        scores = dict(map(scored, numbered))
    texts = [text for index in range(len(tasks)) if (text := scores[index]) is not None]
    if not texts:
        raise WeirError("no flow of these scenarios is under the controller")
    whole: dict[str, list[dict[str, Any]]] = json.loads(_weir.contests(names, own, texts))
    return whole


def scored(
    task: tuple[int, tuple[Scenario, str | type[Controller], int]],
) -> tuple[int, str | None]:
    """Makes a run and scores it. A process calls it."""
    index, (scenario, controller, seed) = task
    return index, _weir.score(scenario, controller, seed)
