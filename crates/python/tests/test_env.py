"""The training environment."""

import gymnasium
import numpy as np
import pyarrow
import weir_rtc.env
from gymnasium.utils.env_checker import check_env
from test_weir_rtc import LOSSY


def episode(env, seed):
    rewards = []
    observation, _ = env.reset(seed=seed)
    while True:
        action = np.array([0.5 + 0.1 * float(observation[1])], np.float32)
        observation, reward, _, truncated, _ = env.step(action)
        if truncated:
            return rewards, pyarrow.table(env.unwrapped.result().series)
        rewards.append(reward)


def test_gymnasium_accepts_it():
    check_env(gymnasium.make("weir_rtc/Rtc-v0").unwrapped)


def test_equal_seeds_and_actions_give_equal_episodes():
    env = gymnasium.make("weir_rtc/Rtc-v0", scenario=LOSSY)
    (first, table), (second, same), (other, _) = (episode(env, seed) for seed in (1, 1, 2))
    assert first == second and table.equals(same)
    assert first != other
    assert len(first) > 100 and all(np.isfinite(first))


def test_several_at_a_time():
    make = lambda: gymnasium.make("weir_rtc/Rtc-v0")
    envs = gymnasium.vector.SyncVectorEnv([make, make])
    observations, _ = envs.reset(seed=3)
    assert observations.shape == (2, 6)
    observations, rewards, *_ = envs.step(np.full((2, 1), 0.5, np.float32))
    assert rewards.shape == (2,)
    envs.close()


def test_actions_and_bitrates_are_inverse():
    for bps in (10_000.0, 300_000.0, 8_000_000.0):
        assert abs(weir_rtc.env.to_bps(weir_rtc.env.to_unit(bps)) - bps) < 1e-6 * bps
