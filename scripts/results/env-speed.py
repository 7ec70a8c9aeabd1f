"""Prints how many steps a second the training environment makes on one core, as a Markdown table.

env-speed.py [SCENARIO...]: each scenario is stepped with a fixed bitrate for a second of processor time.
"""

import sys
import time

import numpy as np
import weir_rtc
from weir_rtc.env import Rtc

#: Processor time of a measurement, s.
SPAN_S = 1.0


def speed(scenario: str, interval_ms: int) -> tuple[float, float]:
    """Steps a second, and simulated seconds a second."""
    env = Rtc(scenario, interval_ms=interval_ms)
    action = np.array([0.7], np.float32)
    env.reset(seed=1)
    steps, begin = 0, time.process_time()
    while (took := time.process_time() - begin) < SPAN_S:
        _, _, _, truncated, _ = env.step(action)
        steps += 1
        if truncated:
            env.reset(seed=steps)
    env.close()
    return steps / took, steps / took * interval_ms / 1000


def main() -> None:
    scenarios = sys.argv[1:] or ["demo/first-call", "rfc8867/5.1", "demo/wifi-5", "demo/lte-5"]
    print("| scenario | steps of | steps a second | simulated seconds a second |")
    print("|---|---|---|---|")
    for scenario in scenarios:
        for interval_ms in (60, 200):
            steps, simulated = speed(scenario, interval_ms)
            print(f"| `{scenario}` | {interval_ms} ms | {steps:.0f} | {simulated:.0f} |")
    print(f"\nweir_rtc {weir_rtc.__version__}, CPU time of one process", file=sys.stderr)


main()
