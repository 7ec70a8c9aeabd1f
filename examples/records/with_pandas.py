"""Records in pandas: python3 with_pandas.py RUNS RUNS.json, as `weir run --out` and `--json` wrote them."""

import json
import sys
from pathlib import Path

import pandas as pd

runs, summaries = Path(sys.argv[1]), Path(sys.argv[2])


def read(name, reader):
    """A file of all records as one table: which run a row is of stands in its last columns."""
    tables = []
    for file in sorted(runs.glob(f"*/*/{name}")):
        run = json.loads((file.parent / "run.json").read_text())
        key = {column: run[column] for column in ["scenario", "controller", "seed"]}
        tables.append(reader(file).assign(**key))
    return pd.concat(tables, ignore_index=True)


# A row a flow and 50 ms. What nobody measured is NaN.
series = read("series.csv", pd.read_csv)
series["received_mbps"] = series["received_bytes"] * 8 / 50_000
print(series.groupby(["scenario", "controller", "flow"])["received_mbps"].mean())

# Why rates fell, and how often.
events = read("events.jsonl", lambda file: pd.read_json(file, lines=True))
falls = events[events["to_bps"] < events["from_bps"]]
print(falls.groupby(["controller", "reason"]).size())

# The metrics: a row a flow of each run. Nested keys become columns such as queuing_delay_ms.p95.
metrics = pd.json_normalize(
    json.loads(summaries.read_text()),
    record_path="flows",
    meta=["scenario", "controller", "engine", "seed"],
)
print(metrics[["controller", "seed", "flow", "utilization", "queuing_delay_ms.p95"]])
