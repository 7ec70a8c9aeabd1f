"""Many runs, on the cores of this machine or, with Dask distributed, on several machines.

>>> import weir_rtc
>>> done = weir_rtc.sweep(
...     "demo/first-call", "gcc,nada", seeds=range(100), out="sweep",
...     parameters=weir_rtc.grid({"network.up.delay": ["10ms", "100ms"]}),
... )  # doctest: +SKIP

The results are Parquet files below `out`, a folder for each scenario and a file for each unit of work, with a row for
each run, flow and section. A run that is there is not computed again: its `key` is a hash of the scenario's text, the
controller, the seed and the program.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import inspect
import itertools
import json
import os
import sys
import time
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from . import _weir
from ._weir import Scenario, WeirError
from .controller import Controller
from .pool import AHEAD, DaskPool, Pool, hands_of
from .space import Range, changed, grid, latin_hypercube, sobol
from .sweep_files import (
    PROGRAM,
    SCENARIO,
    SERIES,
    TRACE_FILES,
    TRACES,
    hash_of,
    keys,
    program,
    program_name,
    programs,
    read,
    result_files,
)
from .sweep_report import write

if TYPE_CHECKING:
    import pyarrow

    from .types import ControllerLike, Progress, ScenarioLike

__all__ = ["Range", "Sweep", "Unit", "grid", "latin_hypercube", "sobol", "sweep"]

#: Runs of a sweep at most. Their list is in memory, about 1 kB for each.
RUNS_MAX = 10_000_000
#: Runs of a unit at most.
UNIT_RUNS_MAX = 1000
#: Seconds of a call that a unit simulates, until the first unit of a scenario shows its speed.
FIRST_UNIT_SIMULATED_S = 600.0
#: End of the name of a file that is being written.
UNFINISHED = ".part"
#: File of `out` that the client has locked.
LOCK = ".lock"


@dataclass(frozen=True, slots=True)
class Point:
    """One run."""

    id: str
    text: str
    traces: dict[str, str]
    controller: str | type[Controller]
    seed: int
    parameters: tuple[tuple[str, Any], ...]
    duration_s: float
    key: str
    #: The scenario before the parameters changed it.
    base: str


@dataclass(frozen=True)
class Unit:
    """Runs that one worker makes in one go."""

    points: tuple[Point, ...]
    key: str
    #: Whether the rows of each 50 ms are wanted, too.
    series: bool = False


@dataclass(frozen=True)
class Sweep:
    """What a sweep left."""

    out: Path
    #: Runs that this call simulated.
    simulated: int
    #: Runs that were there already.
    kept: int
    #: Wall-clock time, s.
    took_s: float
    #: Time that the workers spent with the runs, added up, s.
    worked_s: float = 0.0

    def table(self) -> pyarrow.Table:
        """All rows, as a PyArrow table."""
        import pyarrow

        tables = [read(file) for file in result_files(self.out)]
        whole = pyarrow.concat_tables(tables, promote_options="default")
        return whole.replace_schema_metadata(None)

    def report(self, file: str | os.PathLike[str]) -> None:
        """Writes the report of all runs in `out`: one HTML file with maps, Pareto fronts and the worst runs."""
        write(self.out, Path(file))


def _controller_bytes(controller: str | type[Controller]) -> bytes:
    if isinstance(controller, str):
        return controller.encode()
    import cloudpickle

    code: bytes = cloudpickle.dumps(controller)
    if controller.__module__ != "__main__":
        # A class of a module is pickled as its name alone, and the module may have changed.
        with contextlib.suppress(OSError, TypeError):
            code += inspect.getsource(sys.modules[controller.__module__]).encode()
    return code


def _points(
    found: Iterable[Scenario],
    kinds: Iterable[str | type[Controller]],
    seeds: Sequence[int],
    parameters: Sequence[Mapping[str, Any]],
    binary: str,
) -> Iterator[Point]:
    """Every run. A scenario whose keys change is parsed here, so that a wrong key is an error at once."""
    codes = [(controller, _controller_bytes(controller)) for controller in kinds]
    for original in found:
        text, traces = original.whole_text(), original.traces
        document = tomllib.loads(text)
        for point in parameters:
            scenario, used = original, traces
            if point:
                changed_text = _weir.toml_of_json(json.dumps(changed(document, point)))
                scenario = Scenario(changed_text, original.id, traces=traces or None)
                # A parameter may name a trace file. Points with the same ones share their contents.
                used = scenario.traces if scenario.traces != used else used
            of_traces = json.dumps(used, sort_keys=True) if used else ""
            whole = scenario.whole_text()
            base = hashlib.sha256(f"{binary}\0{scenario.id}\0{whole}\0{of_traces}".encode())
            named = tuple(point.items())
            # Without a flow under the controller every one gives the same run.
            different = codes if scenario.is_controlled else codes[:1]
            for (controller, code), seed in itertools.product(different, seeds):
                key = base.copy()
                key.update(code + f"\0{seed}".encode())
                yield Point(
                    scenario.id,
                    whole,
                    used,
                    controller,
                    seed,
                    named,
                    scenario.duration_s,
                    key.hexdigest()[:32],
                    text,
                )


def _present(out: Path, binary: str) -> set[str]:
    """Keys of the runs that the folder contains, all of this program: one report of two would mix them."""
    files = result_files(out)
    for name, file in programs(files).items():
        if name != program_name(binary):
            raise WeirError(
                f"{out} has results of another program, {name} ({file}), and this is {program_name(binary)}: "
                "sweep into another folder"
            )
    return keys(files)


class _Cutter:
    """Cuts the points into units of about the time that is asked for, by the speed of earlier units."""

    def __init__(self, points: Iterator[Point], unit_s: float, series: bool):
        self._points = points
        self._series = series
        self._unit_s = unit_s
        self._next: Point | None = next(points, None)
        #: Seconds of a call that a second simulates, by scenario.
        self.speed: dict[str, float] = {}

    def cut(self) -> Unit | None:
        first = self._next
        if first is None:
            return None
        speed = self.speed.get(first.id, FIRST_UNIT_SIMULATED_S / self._unit_s)
        budget = speed * self._unit_s
        points: list[Point] = []
        while (
            self._next is not None
            and (self._next.id, self._next.base) == (first.id, first.base)
            and self._next.traces == first.traces
            and len(points) < UNIT_RUNS_MAX
        ):
            if points and budget < self._next.duration_s:
                break
            budget -= self._next.duration_s
            points.append(self._next)
            self._next = next(self._points, None)
        key = hashlib.sha256("".join(point.key for point in points).encode()).hexdigest()[:32]
        return Unit(tuple(points), key, self._series)


#: Parquet files of the results and of the series, if they are wanted, and the time that the runs took, s.
Worked: TypeAlias = "tuple[bytes, bytes | None, float]"


def work(unit: Unit, binary: str) -> Worked:
    """Simulates a unit. Workers call it.

    Returns Parquet files of the results and of the series, if they are wanted, and the time that the runs took, s.
    """
    import pyarrow

    if program() != binary:
        raise WeirError("a worker has another weir-rtc than the client: install the same wheel")
    begin = time.perf_counter()
    results, series = [], []
    for point in unit.points:
        scenario = Scenario(point.text, point.id, traces=point.traces or None)
        runs = _weir.run([scenario], [point.controller], [point.seed], 1, None)
        results.append(_marked(pyarrow.table(runs.summaries), point))
        if unit.series:
            series.append(_marked(pyarrow.table(runs.series), point))
    took_s = time.perf_counter() - begin
    of = _metadata(unit.points[0], binary)
    return _parquet(results, of), _parquet(series, of) if unit.series else None, took_s


def _marked(table: pyarrow.Table, point: Point) -> pyarrow.Table:
    """The table with columns of the parameters and of the key."""
    import pyarrow

    for name, value in (*point.parameters, ("key", point.key)):
        table = table.append_column(name, pyarrow.array([value] * table.num_rows))
    return table


def _metadata(point: Point, binary: str) -> dict[bytes, bytes]:
    """What a file says of its program and its scenario: the text, and the names of its trace files with their hashes."""
    traces = {name: hash_of(content) for name, content in point.traces.items()}
    found = {PROGRAM: program_name(binary).encode(), SCENARIO: point.base.encode()}
    return found | {TRACES: json.dumps(traces).encode()} if traces else found


def _parquet(tables: list[pyarrow.Table], of: dict[bytes, bytes]) -> bytes:
    """The tables as one file, with these metadata."""
    import pyarrow
    import pyarrow.parquet

    whole = pyarrow.concat_tables(tables, promote_options="default")
    sink = pyarrow.BufferOutputStream()
    pyarrow.parquet.write_table(whole.replace_schema_metadata(of), sink)
    content: bytes = sink.getvalue().to_pybytes()
    return content


def _without(have: set[str], parquet: bytes) -> bytes | None:
    """The file without the runs that are there; `None` if nothing is left."""
    import pyarrow
    import pyarrow.compute
    import pyarrow.parquet

    table = pyarrow.parquet.read_table(pyarrow.BufferReader(parquet))
    known = pyarrow.compute.is_in(table.column("key"), pyarrow.array(sorted(have)))
    left = table.filter(pyarrow.compute.invert(known))
    return _parquet([left], table.schema.metadata) if left.num_rows else None


def _put(out: Path, have: set[str], unit: Unit, results: bytes, series: bytes | None) -> None:
    """Writes each file as a whole or not at all, the results last, and no result twice."""
    if have & {point.key for point in unit.points}:
        left = _without(have, results)
    else:
        left = results
    folder = out / unit.points[0].id.replace("/", "__")
    for place, content in ((folder / SERIES, series), (folder, left)):
        if content is not None:
            place.mkdir(parents=True, exist_ok=True)
            unfinished = place / f".{unit.key}{UNFINISHED}"
            unfinished.write_bytes(content)
            unfinished.rename(place / f"{unit.key}.parquet")


def sweep(
    scenario: ScenarioLike,
    controllers: ControllerLike = "library",
    seeds: Iterable[int] = (1,),
    parameters: Iterable[Mapping[str, Any]] = ({},),
    *,
    out: str | os.PathLike[str],
    scheduler: str | None = None,
    workers: int | None = None,
    unit_s: float = 1.0,
    retries: int = 5,
    series: bool = False,
    progress: Progress | None = None,
) -> Sweep:
    """Simulates every scenario with every point of the parameters, controller and seed, and keeps the results.

    `scenario`: see `weir_rtc.scenarios`. `controllers`: names, `"library"`, `"all"`, subclasses of `Controller`, or an iterable of
    these. `parameters`: points from `grid`, `sobol` or `latin_hypercube`, or any dicts of paths and values. `out`: the
    folder of the results; what is there is not computed again. `scheduler`: address of a Dask scheduler such as
    `tcp://10.0.0.1:8786`, whose workers have the same wheel; without one, `workers` processes of this machine, one for
    each core. `unit_s`: how long a unit of work should take, s. `retries`: how often a unit is tried again after an
    error. `series`: also the rows of each flow and 50 ms, in a folder `series` beside the results. `progress`: called with the numbers of finished and of all known runs.

    Raises `WeirError` for what is wrong before the first run, if another sweep writes into `out`, and if the scheduler
    or too many workers are lost; what a unit raised; Ctrl-C ends the sweep, and the next call goes on where it ended.
    """
    from . import chosen, numbers, scenarios

    begin, out, binary = time.perf_counter(), Path(out), program()
    if workers is not None and workers < 1:
        raise WeirError(f"a sweep has at least one worker, not {workers}")
    if not unit_s > 0:
        raise WeirError(f"a unit of work takes more than 0 s, not {unit_s}")
    # Made once whole: a wrong parameter is an error before anything runs. A run that is named twice is one run.
    drawn = [dict(it) for it in parameters]
    found, kinds, seeds = scenarios(scenario), chosen(controllers), numbers(seeds)
    count = len(found) * len(kinds) * len(seeds) * len(drawn)
    if count > RUNS_MAX:
        raise WeirError(f"a sweep has at most {RUNS_MAX} runs, not {count}: make several of it")
    planned = _points(found, kinds, seeds, drawn, binary)
    points = list({point.key: point for point in planned}.values())
    if not points:
        raise WeirError(
            "a sweep without runs: it needs a scenario, a controller, a seed and a point"
        )
    with _alone(out):
        have = _present(out, binary)
        present = have & keys(out.glob(f"*/{SERIES}/*.parquet")) if series else have
        missing = [point for point in points if point.key not in present]
        kept = len(points) - len(missing)
        if not missing:
            return Sweep(out, 0, kept, time.perf_counter() - begin)
        put_traces(out, missing)
        cutter = _Cutter(iter(missing), unit_s, series)
        place, counts = (out, have), (kept, len(points))
        task = functools.partial(work, binary=binary)
        with hands_of(task, scheduler, workers, retries) as hands:
            worked_s = _drive(hands, cutter, place, progress, counts)
    return Sweep(out, len(missing), kept, time.perf_counter() - begin, worked_s)


@contextlib.contextmanager
def _alone(out: Path) -> Iterator[None]:
    """Locks the folder: a second sweep would make the same runs again.

    The lock ends with the process, however that ends. Files that it did not finish are removed by the next one.
    """
    import fcntl

    out.mkdir(parents=True, exist_ok=True)
    with (out / LOCK).open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise WeirError(f"another sweep writes into {out}: wait until it has ended") from None
        for place in ("*", f"*/{SERIES}"):
            for unfinished in out.glob(f"{place}/.*{UNFINISHED}"):
                unfinished.unlink()
        yield


def put_traces(out: Path, points: Iterable[Point]) -> None:
    """Writes the trace files of the scenarios, from which their runs can be made again."""
    for traces in {id(point.traces): point.traces for point in points}.values():
        for content in traces.values():
            file = out / TRACE_FILES / hash_of(content)
            file.parent.mkdir(exist_ok=True)
            file.write_text(content)


def _drive(
    workers: DaskPool | Pool,
    cutter: _Cutter,
    place: tuple[Path, set[str]],
    progress: Progress | None,
    counts: tuple[int, int],
) -> float:
    """Keeps the workers busy, and writes each result as it arrives. Returns the time that the runs took, s."""
    (done, all_runs), worked_s, under_way = counts, 0.0, 0
    while True:
        while under_way < AHEAD * workers.threads() and (new := cutter.cut()) is not None:
            workers.submit(new, new.key)
            under_way += 1
        if under_way == 0:
            return worked_s
        unit, (results, series, took_s) = workers.next()
        under_way -= 1
        _put(*place, unit, results, series)
        simulated_s = sum(point.duration_s for point in unit.points)
        cutter.speed[unit.points[0].id] = simulated_s / max(took_s, 1e-6)
        done += len(unit.points)
        worked_s += took_s
        if progress is not None:
            progress(done, all_runs)
