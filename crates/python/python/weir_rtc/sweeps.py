"""Many runs, on the cores of this machine or on several machines (Dask distributed).

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
import hashlib
import itertools
import json
import os
import sys
import time
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from . import _weir
from ._weir import Scenario, WeirError
from .controller import Controller
from .space import Range, changed, grid, latin_hypercube, sobol
from .sweep_report import SCENARIO, write

__all__ = ["Range", "Sweep", "Unit", "grid", "latin_hypercube", "sobol", "sweep"]

#: Units of work that are with the scheduler for each worker: enough that none waits.
AHEAD = 4
#: Runs of a unit at most.
UNIT_RUNS_MAX = 1000
#: Folder of the series, beside the results of a scenario.
SERIES = "series"
#: Seconds of a call that a unit simulates, until the first unit of a scenario shows its speed.
FIRST_UNIT_SIMULATED_S = 600.0


@dataclass(frozen=True)
class Point:
    """One run."""

    id: str
    text: str
    controller: object
    seed: int
    parameters: tuple[tuple[str, object], ...]
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

    def table(self):
        """All rows, as a PyArrow table."""
        import pyarrow
        import pyarrow.parquet

        files = sorted(self.out.glob("*/*.parquet"))
        tables = [pyarrow.parquet.read_table(file) for file in files]
        whole = pyarrow.concat_tables(tables, promote_options="default")
        return whole.replace_schema_metadata(None)

    def report(self, file: str | os.PathLike) -> None:
        """Writes the report of all runs in `out`: one HTML file with maps, Pareto fronts and the worst runs."""
        write(self.out, Path(file))


def program() -> str:
    """Hash of the compiled simulator."""
    return hashlib.sha256(Path(_weir.__file__).read_bytes()).hexdigest()


def _controller_bytes(controller) -> bytes:
    if isinstance(controller, str):
        return controller.encode()
    import cloudpickle

    return cloudpickle.dumps(controller)


def _points(found, chosen, seeds, parameters, binary: str) -> Iterator[Point]:
    """Every run. A scenario whose keys change is parsed here, so that a wrong key is an error at once."""
    codes = [(controller, _controller_bytes(controller)) for controller in chosen]
    for original, point in itertools.product(found, parameters):
        scenario, text = original, original.text
        if point:
            document = changed(tomllib.loads(text), point)
            scenario = Scenario(_weir.toml_of_json(json.dumps(document)), scenario.id)
        base = hashlib.sha256(f"{binary}\0{scenario.id}\0{scenario.text}\0".encode())
        for controller, code in codes:
            for seed in seeds:
                key = base.copy()
                key.update(code + f"\0{seed}".encode())
                named = tuple(point.items())
                yield Point(
                    scenario.id,
                    scenario.text,
                    controller,
                    seed,
                    named,
                    scenario.duration_s,
                    key.hexdigest()[:32],
                    text,
                )


def _keys(files: Iterable[Path]) -> set[str]:
    """Keys of the runs that these files contain."""
    import pyarrow.parquet

    tables = (pyarrow.parquet.read_table(file, columns=["key"]) for file in files)
    return {key for table in tables for key in table.column("key").unique().to_pylist()}


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
        budget, points = speed * self._unit_s, []
        while (
            self._next is not None
            and (self._next.id, self._next.base) == (first.id, first.base)
            and len(points) < UNIT_RUNS_MAX
        ):
            if points and budget < self._next.duration_s:
                break
            budget -= self._next.duration_s
            points.append(self._next)
            self._next = next(self._points, None)
        key = hashlib.sha256("".join(point.key for point in points).encode()).hexdigest()[:32]
        return Unit(tuple(points), key, self._series)


def work(unit: Unit, binary: str) -> tuple[bytes, bytes | None, float]:
    """Simulates a unit. Workers call it.

    Returns Parquet files of the results and of the series, if they are wanted, and the time that the runs took, s.
    """
    import pyarrow

    if program() != binary:
        raise WeirError("a worker has another weir-rtc than the client: install the same wheel")
    begin = time.perf_counter()
    results, series = [], []
    for point in unit.points:
        scenario = Scenario(point.text, point.id)
        runs = _weir.run([scenario], [point.controller], [point.seed], 1, None)
        results.append(_marked(pyarrow.table(runs.summaries), point))
        if unit.series:
            series.append(_marked(pyarrow.table(runs.series), point))
    took_s = time.perf_counter() - begin
    base = unit.points[0].base
    return _parquet(results, base), _parquet(series, base) if unit.series else None, took_s


def _marked(table, point: Point):
    """The table with columns of the parameters and of the key."""
    import pyarrow

    for name, value in (*point.parameters, ("key", point.key)):
        table = table.append_column(name, pyarrow.array([value] * table.num_rows))
    return table


def _parquet(tables: list, base: str) -> bytes:
    """The tables as one file, with the text of the scenario."""
    import pyarrow
    import pyarrow.parquet

    whole = pyarrow.concat_tables(tables, promote_options="default")
    sink = pyarrow.BufferOutputStream()
    pyarrow.parquet.write_table(whole.replace_schema_metadata({SCENARIO: base.encode()}), sink)
    return sink.getvalue().to_pybytes()


def _without(have: set[str], parquet: bytes) -> bytes | None:
    """The file without the runs that are there; `None` if nothing is left."""
    import pyarrow
    import pyarrow.compute
    import pyarrow.parquet

    table = pyarrow.parquet.read_table(pyarrow.BufferReader(parquet))
    known = pyarrow.compute.is_in(table.column("key"), pyarrow.array(sorted(have)))
    left = table.filter(pyarrow.compute.invert(known))
    return _parquet([left], table.schema.metadata[SCENARIO].decode()) if left.num_rows else None


def _put(out: Path, have: set[str], unit: Unit, results: bytes, series: bytes | None) -> None:
    """Writes each file as a whole or not at all, the results last, and no result twice."""
    if have & {point.key for point in unit.points}:
        results = _without(have, results)
    folder = out / unit.points[0].id.replace("/", "__")
    for place, content in ((folder / SERIES, series), (folder, results)):
        if content is not None:
            place.mkdir(parents=True, exist_ok=True)
            unfinished = place / f".{unit.key}.{os.getpid()}"
            unfinished.write_bytes(content)
            unfinished.rename(place / f"{unit.key}.parquet")


def sweep(
    scenario,
    controllers="all",
    seeds: Iterable[int] = (1,),
    parameters: Iterable[Mapping] = ({},),
    *,
    out,
    scheduler: str | None = None,
    workers: int | None = None,
    unit_s: float = 1.0,
    retries: int = 5,
    series: bool = False,
    progress=None,
) -> Sweep:
    """Simulates every scenario with every point of the parameters, controller and seed, and keeps the results.

    `scenario`: see `weir_rtc.scenarios`. `controllers`: names, `"all"`, subclasses of `Controller`, or an iterable of
    these. `parameters`: points from `grid`, `sobol` or `latin_hypercube`, or any dicts of paths and values. `out`: the
    folder of the results; what is there is not computed again. `scheduler`: address of a Dask scheduler such as
    `tcp://10.0.0.1:8786`, whose workers have the same wheel; without one, `workers` processes of this machine, one for
    each core. `unit_s`: how long a unit of work should take, s. `retries`: how often a unit is tried again after an
    error. `series`: also the rows of each flow and 50 ms, in a folder `series` beside the results. `progress`: called with the numbers of finished and of all known runs.

    Raises `WeirError` for what is wrong before the first run; what a unit raised; Ctrl-C ends the sweep, and the next
    call goes on where it ended.
    """
    from distributed import Client, LocalCluster

    from . import scenarios

    begin, out, binary = time.perf_counter(), Path(out), program()
    chosen = _chosen(controllers)
    # Made once whole: a wrong parameter is an error before anything runs.
    points = list(
        _points(
            scenarios(scenario),
            chosen,
            [int(seed) for seed in seeds],
            [dict(it) for it in parameters],
            binary,
        )
    )
    have = _keys(out.glob("*/*.parquet"))
    present = have & _keys(out.glob(f"*/{SERIES}/*.parquet")) if series else have
    missing = [point for point in points if point.key not in present]
    kept = len(points) - len(missing)
    if not missing:
        return Sweep(out, 0, kept, time.perf_counter() - begin)
    out.mkdir(parents=True, exist_ok=True)
    cutter = _Cutter(iter(missing), unit_s, series)
    count = workers or len(os.sched_getaffinity(0))
    if scheduler is None:
        with (
            _script_is_read_once(),
            LocalCluster(
                n_workers=count, threads_per_worker=1, dashboard_address=None, silence_logs=40
            ) as cluster,
            Client(cluster) as client,
        ):
            worked_s = _drive(
                client, cutter, binary, (out, have), retries, progress, (kept, kept + len(missing))
            )
    else:
        with Client(scheduler) as client:
            worked_s = _drive(
                client, cutter, binary, (out, have), retries, progress, (kept, kept + len(missing))
            )
    return Sweep(out, len(missing), kept, time.perf_counter() - begin, worked_s)


@contextlib.contextmanager
def _script_is_read_once() -> Iterator[None]:
    """Workers that start meanwhile do not read the caller's script.

    A spawned process runs the script of its parent again, so a call of `sweep` that is not below
    `if __name__ == "__main__"` would start workers of workers (Python's documentation of `multiprocessing`, "Safe
    importing of main module"). Workers need nothing of it: classes of the script travel whole (cloudpickle).
    """
    main = vars(sys.modules["__main__"])
    hidden = {name: main.pop(name, None) for name in ("__file__", "__spec__")}
    main["__spec__"] = None
    try:
        yield
    finally:
        main.update(
            {
                name: value
                for name, value in hidden.items()
                if name == "__spec__" or value is not None
            }
        )


def _chosen(controllers) -> list:
    """Each controller by itself."""
    if isinstance(controllers, str):
        return _weir.controllers() if controllers == "all" else controllers.split(",")
    if isinstance(controllers, type) and issubclass(controllers, Controller):
        return [controllers]
    return [one for several in controllers for one in _chosen(several)]


def _drive(client, cutter: _Cutter, binary, place, retries, progress, counts) -> float:
    """Keeps the workers busy, and writes each result as it arrives. Returns the time that the runs took, s."""
    from distributed import as_completed

    (done, all_runs), worked_s = counts, 0.0
    units = {}

    def send():
        unit = cutter.cut()
        if unit is None:
            return None
        future = client.submit(work, unit, binary, key=f"weir-{unit.key}", retries=retries)
        units[future.key] = unit
        return future

    ahead = AHEAD * max(1, len(client.scheduler_info()["workers"]))
    futures = [future for future in (send() for _ in range(ahead)) if future is not None]
    waiting = as_completed(futures)
    for future in waiting:
        results, series, took_s = future.result()
        unit = units.pop(future.key)
        _put(*place, unit, results, series)
        simulated_s = sum(point.duration_s for point in unit.points)
        cutter.speed[unit.points[0].id] = simulated_s / max(took_s, 1e-6)
        done += len(unit.points)
        worked_s += took_s
        if progress is not None:
            progress(done, all_runs)
        future.release()
        following = send()
        if following is not None:
            waiting.add(following)
    return worked_s
