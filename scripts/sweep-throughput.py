"""Prints how much of two workers' speed a sweep reaches, as a Markdown table.

A process without a scheduler simulates units of a sweep; then two such processes at the same time; then two Dask workers
of this machine make a sweep. `sweep-throughput.py [SECONDS]`: how long each part should take (default: 10). The
processor time of a run is also right on a machine with other work.
"""

import multiprocessing
import os
import sys
import tempfile
import time

from distributed import Client, LocalCluster
from weir_rtc import chosen, scenarios, sweep
from weir_rtc.sweeps import Unit, _points, program, work

SCENARIO, CONTROLLERS = "rfc8867/5.1", "gcc,nada,scream"
WORKERS = 2
ROUNDS = 3
#: Seeds of a unit that is made without a scheduler.
SEEDS = 30


def alone(task: tuple[float, int]) -> tuple[float, float]:
    """Runs a second of one process, and processor time of a run, ms."""
    span_s, seed = task
    runs, begin, cpu = 0, time.perf_counter(), time.process_time()
    while (took := time.perf_counter() - begin) < span_s:
        seeds = range(seed, seed + SEEDS)
        points = _points(scenarios(SCENARIO), chosen(CONTROLLERS), seeds, [{}], program())
        unit = Unit(tuple(points), str(seed))
        work(unit, program())
        runs += len(unit.points)
        seed += SEEDS
    return runs / took, (time.process_time() - cpu) / runs * 1e3


def of_a_sweep(client: Client, address: str, runs: int, seed: int) -> tuple[float, float, float]:
    """Runs a second of a sweep; processor time of a run, ms: of the workers, of client and scheduler."""

    def used() -> float:
        return sum(client.run(time.process_time).values())

    workers, own = used(), time.process_time()
    with tempfile.TemporaryDirectory() as out:
        seeds = range(seed, seed + runs // 3)
        done = sweep(SCENARIO, CONTROLLERS, seeds, out=out, scheduler=address)
    workers, own = used() - workers, time.process_time() - own
    made = done.simulated
    return made / done.took_s, workers / made * 1e3, own / made * 1e3


def main() -> None:
    span_s = float(sys.argv[1]) if len(sys.argv) > 1 else 10.0
    spawn = multiprocessing.get_context("spawn")
    with (
        LocalCluster(n_workers=WORKERS, threads_per_worker=1, dashboard_address=None) as cluster,
        Client(cluster) as client,
        spawn.Pool(WORKERS) as pool,
    ):
        address = cluster.scheduler_address
        of_a_sweep(client, address, 60, 1)
        pool.map(alone, [(0.1, 1)] * WORKERS, chunksize=1)
        print(
            "| runs/s: one process | two processes | two workers "
            "| processor time of a run, ms: one process | a worker | client and scheduler |"
        )
        print("|---|---|---|---|---|---|")
        for round in range(1, ROUNDS + 1):
            seed = 10_000 * round
            [(one, one_cpu)] = pool.map(alone, [(span_s, seed)], chunksize=1)
            both = sum(it[0] for it in pool.map(alone, [(span_s, seed)] * WORKERS, chunksize=1))
            runs = int(WORKERS * one * span_s)
            made, worker_cpu, own_cpu = of_a_sweep(client, address, runs, seed)
            print(
                f"| {one:.0f} | {both:.0f} | {made:.0f} | {one_cpu:.2f} | {worker_cpu:.2f} | {own_cpu:.2f} |"
            )
    print(f"load of the machine at the end: {os.getloadavg()[0]:.1f}", file=sys.stderr)


if __name__ == "__main__":
    main()
