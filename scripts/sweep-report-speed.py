"""Prints how long a table and the report of a sweep take, as a Markdown table: sweep-report-speed.py FOLDER."""

import os
import sys
import tempfile
import time
from pathlib import Path

import duckdb
from weir_rtc.sweep_report import write


def timed(what: str, action) -> None:
    begin, cpu = time.perf_counter(), time.process_time()
    action()
    took, used = time.perf_counter() - begin, time.process_time() - cpu
    print(f"| {what} | {took:.2f} | {used:.2f} |")


def main() -> None:
    folder = Path(sys.argv[1])
    rows = f"read_parquet('{folder}/*/*.parquet', union_by_name = true)"
    runs, count = duckdb.execute(f"select count(distinct key), count(*) from {rows}").fetchall()[0]
    files = list(folder.glob("*/*.parquet"))
    size = sum(file.stat().st_size for file in files)
    print(f"{runs} runs, {count} rows, {len(files)} files, {size / 1e6:.0f} MB:\n")
    print("| what | seconds | seconds of processor time |")
    print("|---|---|---|")
    table = (
        'select scenario, controller, count(distinct key), avg(utilization), avg("queuing_delay_ms.p95"), '
        f"avg(\"loss_ratio.mean\") from {rows} where section = '' and kind = 'media' group by all"
    )
    timed("table: means of each controller", lambda: duckdb.execute(table).fetchall())
    with tempfile.TemporaryDirectory() as out:
        file = Path(out) / "sweep.html"
        timed("report: maps, fronts, worst runs", lambda: write(folder, file))
        print(f"\nThe page has {file.stat().st_size / 1e6:.1f} MB.")
    print(f"load of the machine: {os.getloadavg()[0]:.1f}", file=sys.stderr)


if __name__ == "__main__":
    main()
