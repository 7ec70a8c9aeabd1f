"""Prints the trained policy beside controllers of Weir, in scenarios: evaluate.py weights.txt SCENARIO...

The policy runs in the environment, the others as `weir run` has them. Each value is the mean over the seeds 1 to 3, of
the first media flow; the other media flows beside the policy have `gcc`.
"""

import sys

import numpy as np
import pyarrow
import weir_rtc
from train import act
from weir_rtc.env import to_bps, to_unit

SEEDS = (1, 2, 3)
OTHERS = ("gcc", "nada", "scream", "sluice")
METRICS = {
    "used": "utilization",
    "queuing delay, 95th percentile, ms": "queuing_delay_ms.p95",
    "loss ratio": "loss_ratio.mean",
}


def observed(seen) -> np.ndarray:
    values = (
        to_unit(seen.received_bps),
        min(max(seen.queuing_delay_us, 0) / 1e6, 1.0),
        seen.loss_ratio,
        to_unit(seen.target_bps),
        min(max(seen.rtt_us, 0) / 1e6, 1.0),
        to_unit(seen.sent_bps),
    )
    return np.array(values, np.float32).astype(np.float64)


def played(scenario, weights, seed: int):
    session = weir_rtc.Session(scenario, seed, 60, "gcc")
    seen = session.step()
    while seen is not None:
        seen = session.step(to_bps(act(weights, observed(seen))))
    return session.result()


def main() -> None:
    weights = np.loadtxt(sys.argv[1])
    print(f"| scenario | controller | {' | '.join(METRICS)} |")
    print(f"|---|---|{'---|' * len(METRICS)}")
    for scenario in weir_rtc.scenarios(sys.argv[2:]):
        for name in ("policy", *OTHERS):
            rows = []
            for seed in SEEDS:
                if name == "policy":
                    runs = played(scenario, weights, seed)
                else:
                    runs = weir_rtc.run(scenario, name, [seed])
                table = pyarrow.table(runs.summaries).to_pylist()
                rows.append(next(it for it in table if it["kind"] == "media" and not it["section"]))
            means = [np.mean([row[metric] for row in rows]) for metric in METRICS.values()]
            print(f"| {scenario.id} | {name} | {means[0]:.2f} | {means[1]:.0f} | {means[2]:.4f} |")


if __name__ == "__main__":
    main()
