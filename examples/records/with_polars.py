"""Records in polars: python3 with_polars.py RUNS RUNS.json, as `weir run --out` and `--json` wrote them."""

import json
import sys
from pathlib import Path

import polars as pl

runs, summaries = Path(sys.argv[1]), Path(sys.argv[2])


def read(name, reader):
    """A file of all records as one table: which run a row is of stands in its last columns."""
    tables = []
    for file in sorted(runs.glob(f"*/*/{name}")):
        run = json.loads((file.parent / "run.json").read_text())
        key = [pl.lit(run[column]).alias(column) for column in ["scenario", "controller", "seed"]]
        tables.append(reader(file).with_columns(key))
    # Columns differ between runs: only flows with video have frames.
    return pl.concat(tables, how="diagonal_relaxed")


# A row a flow and 50 ms. What nobody measured is null; columns that begin empty need all rows to be typed.
series = read("series.csv", lambda file: pl.read_csv(file, infer_schema_length=None))
received_mbps = (pl.col("received_bytes").mean() * 8 / 50_000).alias("received_mbps")
print(series.group_by("scenario", "controller", "flow", maintain_order=True).agg(received_mbps))

# Why rates fell, and how often. `signals` differ between controllers, so they are left out.
events = read("events.jsonl", lambda file: pl.read_ndjson(file).drop("signals"))
falls = events.filter(pl.col("to_bps") < pl.col("from_bps"))
print(falls.group_by("controller", "reason", maintain_order=True).len())

# The metrics: a row a flow of each run.
rows = [
    {
        "controller": run["controller"],
        "seed": run["seed"],
        "flow": flow["flow"],
        "utilization": flow["utilization"],
        "queuing_delay_p95_ms": flow["queuing_delay_ms"]["p95"],
    }
    for run in json.loads(summaries.read_text())
    for flow in run["flows"]
]
print(pl.DataFrame(rows))
