"""Prints how much of two workers' speed a sweep reaches, as a Markdown table.

A single process without a scheduler simulates units of a sweep; then two Dask workers of this machine make the sweep.
Both are repeated, in turn. `sweep-throughput.py [SECONDS]`: how long each part should take (default: 4).
"""

import os
import statistics
import sys
import tempfile
import time

from distributed import Client, LocalCluster
from weir_rtc import scenarios, sweep
from weir_rtc.sweeps import Unit, _chosen, _points, program, work

SCENARIO, CONTROLLERS = "rfc8867/5.1", "gcc,nada,scream"
WORKERS = 2
ROUNDS = 3


def single(span_s: float, first_seed: int) -> float:
    """Runs a second of one process, in units of 30 runs."""
    runs, seed, begin = 0, first_seed, time.perf_counter()
    while (took := time.perf_counter() - begin) < span_s:
        points = _points(
            scenarios(SCENARIO), _chosen(CONTROLLERS), range(seed, seed + 10), [{}], program()
        )
        unit = Unit(tuple(points), str(seed))
        work(unit, program())
        runs += len(unit.points)
        seed += 10
    return runs / took


def several(address: str, runs: int, first_seed: int) -> tuple[float, float]:
    """Runs a second of a sweep, and the share of the time in which its workers simulate."""
    seeds = range(first_seed, first_seed + runs // 3)
    with tempfile.TemporaryDirectory() as out:
        done = sweep(SCENARIO, CONTROLLERS, seeds, out=out, scheduler=address)
    return done.simulated / done.took_s, done.worked_s / done.took_s / WORKERS


def main() -> None:
    span_s = float(sys.argv[1]) if len(sys.argv) > 1 else 4.0
    with (
        LocalCluster(n_workers=WORKERS, threads_per_worker=1, dashboard_address=None) as cluster,
        Client(cluster),
    ):
        address = cluster.scheduler_address
        several(address, 60, 1)
        alone, together, busy = [], [], []
        for round in range(ROUNDS):
            seed = 1000 * (round + 1)
            alone.append(single(span_s, seed))
            speed, share = several(address, int(WORKERS * alone[-1] * span_s), seed)
            together.append(speed)
            busy.append(share)
    ratios = [both / one / WORKERS for both, one in zip(together, alone, strict=True)]
    print(
        "| round | one process, runs/s | two workers, runs/s | of two processes | time in which workers simulate |"
    )
    print("|---|---|---|---|---|")
    rows = zip(alone, together, ratios, busy, strict=True)
    for round, (one, both, ratio, share) in enumerate(rows, 1):
        print(f"| {round} | {one:.0f} | {both:.0f} | {ratio:.2f} | {share:.2f} |")
    print(f"| median | | | {statistics.median(ratios):.2f} | {statistics.median(busy):.2f} |")
    print(f"load of the machine at the end: {os.getloadavg()[0]:.1f}", file=sys.stderr)


if __name__ == "__main__":
    main()
