"""Prints what a unit of a sweep costs the client and the scheduler, and where the scheduler becomes the limit.

Empty units go through two workers of this machine. Scheduler and client are in this process, so its CPU time is theirs.
"""

import time

from distributed import Client, LocalCluster, as_completed

UNITS = 1000
#: Units with the scheduler at a time, as in `weir_rtc.sweep` with many workers.
AHEAD = 64


def empty(_number: int) -> bytes:
    return b""


def main() -> None:
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
        Client(cluster) as client,
    ):
        client.gather(client.map(empty, range(100)))
        begin, cpu = time.perf_counter(), time.process_time()
        waiting = as_completed([client.submit(empty, n, key=f"unit-{n}") for n in range(AHEAD)])
        following = iter(range(AHEAD, UNITS))
        for future in waiting:
            future.result()
            future.release()
            number = next(following, None)
            if number is not None:
                waiting.add(client.submit(empty, number, key=f"unit-{number}"))
        took, used = time.perf_counter() - begin, time.process_time() - cpu
    print(
        "| units | client and scheduler, CPU ms a unit | wall-clock ms a unit | workers at units of 1 s |"
    )
    print("|---|---|---|---|")
    each = used / UNITS
    print(f"| {UNITS} | {each * 1e3:.2f} | {took / UNITS * 1e3:.2f} | {1 / each:.0f} |")


if __name__ == "__main__":
    main()
