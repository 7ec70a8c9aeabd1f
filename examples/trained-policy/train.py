"""Trains a small policy in `weir_rtc/Rtc-v0`, and writes its weights: train.py weights.txt [GENERATIONS].

The policy sees the six observations of the environment and changes the bitrate by at most a few per cent every 60 ms.
It is a network with one hidden layer of eight units. An evolution strategy trains it: each generation tries noise
around the weights, in mirrored pairs [OpenAI-ES], and moves along the ranks of the returns. Equal seeds give equal
weights.

[OpenAI-ES]: Salimans et al., Evolution Strategies as a Scalable Alternative to Reinforcement Learning, 2017.
"""

import sys
import time

import numpy as np
import weir_rtc
from weir_rtc.env import Rtc

INPUTS, HIDDEN = 6, 8
SIZE = HIDDEN * (INPUTS + 1) + HIDDEN + 1
#: Largest change of the action in an interval: about 14 % of the bitrate.
STEP = 0.02
PAIRS, NOISE, RATE = 8, 0.3, 0.3

#: Networks that no scenario of the catalogue has: steps of the capacity, short and long queues, loss.
TRAINING = [
    {
        "title": "training",
        "source": "examples/trained-policy",
        "description": "A capacity in steps.",
        "duration": "24s",
        "network": {
            "up": {"capacity": capacity, "delay": delay, "queue": queue, "loss": loss},
            "down": {"delay": delay},
        },
        "flow": [{"max_bitrate": "4Mbps"}],
    }
    for capacity, delay, queue, loss in (
        ([["0s", "1200kbps"], ["8s", "3Mbps"], ["16s", "900kbps"]], "20ms", "250ms", "0%"),
        ([["0s", "2500kbps"], ["9s", "600kbps"], ["17s", "1800kbps"]], "60ms", "400ms", "0%"),
        ([["0s", "800kbps"], ["12s", "1500kbps"]], "35ms", "120ms", "1%"),
    )
]


def reward(received: float, delay: float, loss: float) -> float:
    """Received rate, minus queuing delay (300 ms cost as much as the whole scale of the rate), minus loss."""
    return received - 3.0 * delay - 1.0 * loss


def softsign(x):
    return x / (1.0 + np.abs(x))


def act(weights: np.ndarray, seen: np.ndarray) -> float:
    """The next action. `src/policy.rs` computes the same."""
    first = weights[: HIDDEN * (INPUTS + 1)].reshape(HIDDEN, INPUTS + 1)
    last = weights[HIDDEN * (INPUTS + 1) :]
    hidden = softsign(first[:, :INPUTS] @ seen + first[:, INPUTS])
    return float(seen[3] + STEP * softsign(last[:HIDDEN] @ hidden + last[HIDDEN]))


def episode(env: Rtc, weights: np.ndarray, seed: int) -> float:
    seen, _ = env.reset(seed=seed)
    total, steps = 0.0, 0
    while True:
        seen, value, _, truncated, _ = env.step([act(weights, seen.astype(np.float64))])
        if truncated:
            return total / max(steps, 1)
        total += value
        steps += 1


def train(generations: int, seed: int = 1) -> np.ndarray:
    random = np.random.default_rng(seed)
    envs = [Rtc(one, interval_ms=60, reward=reward) for one in TRAINING]
    weights = np.zeros(SIZE)
    # Without a bias towards growth, the first policies stay where they start.
    weights[-1] = 0.1
    best, best_value = weights, -np.inf
    begin = time.perf_counter()
    for generation in range(generations):
        noise = random.standard_normal((PAIRS, SIZE))
        run_seed = int(random.integers(2**31))
        tried = [weights + sign * NOISE * one for one in noise for sign in (1, -1)]
        values = np.array(
            [np.mean([episode(env, each, run_seed) for env in envs]) for each in tried]
        )
        ranks = values.argsort().argsort() / (len(values) - 1) - 0.5
        slope = ((ranks[0::2] - ranks[1::2])[:, None] * noise).mean(axis=0)
        weights = weights + RATE * slope / NOISE
        value = float(np.mean([episode(env, weights, 1) for env in envs]))
        if value > best_value:
            best, best_value = weights, value
        took = time.perf_counter() - begin
        print(
            f"generation {generation + 1}: return {value:.4f}, best {best_value:.4f}, {took:.0f} s"
        )
    return best


if __name__ == "__main__":
    path = sys.argv[1]
    trained = train(int(sys.argv[2]) if len(sys.argv) > 2 else 60)
    with open(path, "w") as file:
        file.writelines(f"{weight!r}\n" for weight in trained.tolist())
    print(f"{len(trained)} weights in {path}, weir_rtc {weir_rtc.__version__}")
