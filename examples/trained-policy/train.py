"""Trains a small policy in `weir_rtc/Rtc-v0` by PPO of stable-baselines3, and writes its weights:

    train.py weights.txt [STEPS]

The policy sees the six observations of the environment and changes the bitrate by at most `CHANGE_MAX` every 60 ms. It is
a network with one hidden layer of eight units. PPO adds noise to the actions while it trains; the exported policy takes
the middle of the distribution. Equal seeds give equal weights with the same versions of PyTorch and stable-baselines3.
"""

import sys
import time

import gymnasium
import numpy as np
import stable_baselines3
import torch
import weir_rtc
from stable_baselines3 import PPO
from stable_baselines3.common.vec_env import DummyVecEnv
from weir_rtc.env import Rtc

INPUTS, HIDDEN = 6, 8
#: Largest change of the bitrate in an interval, as an action of the environment: 2^0.2 is 15 %. `src/policy.rs` has it,
#: too.
CHANGE_MAX = 0.2
STEPS = 160_000
#: Calls that are stepped together.
CALLS = 8


def network(capacity, delay: str, queue: str, loss: str) -> dict:
    """A scenario of 24 s with one flow."""
    return {
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


#: Networks that no scenario of the catalogue has: steps of the capacity, short and long queues, loss.
TRAINING = [
    network(steps, delay, queue, loss)
    for steps, delay, queue, loss in (
        ([["0s", "1200kbps"], ["8s", "3Mbps"], ["16s", "900kbps"]], "20ms", "250ms", "0%"),
        ([["0s", "2500kbps"], ["9s", "600kbps"], ["17s", "1800kbps"]], "60ms", "400ms", "0%"),
        ([["0s", "800kbps"], ["12s", "1500kbps"]], "35ms", "120ms", "1%"),
        ([["0s", "3500kbps"], ["6s", "2Mbps"], ["14s", "700kbps"]], "10ms", "600ms", "0%"),
        ([["0s", "500kbps"], ["10s", "2200kbps"]], "80ms", "200ms", "0.5%"),
    )
]


def reward(received: float, delay: float, loss: float) -> float:
    """Received rate, minus queuing delay (300 ms cost as much as the whole scale of the rate), minus loss."""
    return received - 3.0 * delay - loss


class Bounded(gymnasium.ActionWrapper):
    """Actions of -1 to 1 are changes of at most `CHANGE_MAX`."""

    def action(self, action):
        return CHANGE_MAX * np.asarray(action)


def train(steps: int, seed: int = 1) -> PPO:
    """The trained model. It takes minutes."""
    torch.set_num_threads(1)
    calls = DummyVecEnv(
        [
            lambda: Bounded(Rtc(TRAINING, interval_ms=60, reward=reward, action="change"))
            for _ in range(CALLS)
        ]
    )
    # Softsign has no function of the C library, so that Rust computes the same.
    shape = {"net_arch": {"pi": [HIDDEN], "vf": [64]}, "activation_fn": torch.nn.Softsign}
    model = PPO(
        "MlpPolicy",
        calls,
        n_steps=400,
        batch_size=400,
        learning_rate=1e-3,
        gamma=0.97,
        policy_kwargs={**shape, "log_std_init": -1.0},
        seed=seed,
        device="cpu",
        verbose=1,
    )
    return model.learn(steps)


def weights(model: PPO) -> list[float]:
    """First layer, a row of inputs and a bias for each unit; then the last layer with its bias."""
    first, last = model.policy.mlp_extractor.policy_net[0], model.policy.action_net
    rows = torch.cat([first.weight, first.bias[:, None]], dim=1)
    return torch.cat([rows.flatten(), last.weight.flatten(), last.bias]).tolist()


def main() -> None:
    path = sys.argv[1]
    begin = time.perf_counter()
    model = train(int(sys.argv[2]) if len(sys.argv) > 2 else STEPS)
    trained = weights(model)
    with open(path, "w") as file:
        file.writelines(f"{weight!r}\n" for weight in trained)
    versions = f"stable-baselines3 {stable_baselines3.__version__}, torch {torch.__version__}"
    print(f"{len(trained)} weights in {path}, {time.perf_counter() - begin:.0f} s, {versions}")
    print(f"weir_rtc {weir_rtc.__version__}")


if __name__ == "__main__":
    main()
