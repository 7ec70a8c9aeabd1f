"""The training environment."""

import gymnasium
import numpy as np
import pyarrow
import pytest
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


@pytest.mark.parametrize("mode", ["sync", "async"])
def test_several_at_a_time_are_seeded_and_equal_to_the_byte(mode):
    def played(seed):
        envs = gymnasium.make_vec(
            "weir_rtc/Rtc-v0", num_envs=2, vectorization_mode=mode, scenario=LOSSY
        )
        observations, _ = envs.reset(seed=seed)
        assert observations.shape == (2, 6)
        parts = [observations.tobytes()]
        for step in range(40):
            observations, rewards, *_ = envs.step(np.full((2, 1), 0.4 + 0.01 * step, np.float32))
            assert rewards.shape == (2,)
            parts += [observations.tobytes(), rewards.tobytes()]
        envs.close()
        return b"".join(parts)

    first = played(3)
    assert first == played(3) != played(4)


def test_an_action_may_be_a_change_of_the_bitrate_in_force():
    env = gymnasium.make("weir_rtc/Rtc-v0", scenario=LOSSY, action="change")
    check_env(gymnasium.make("weir_rtc/Rtc-v0", action="change").unwrapped)
    observation, _ = env.reset(seed=1)
    start = weir_rtc.env.to_bps(float(observation[3]))
    observation, *_ = env.step(np.array([0.5], np.float32))
    # The observation is of the interval that just ended.
    assert weir_rtc.env.to_bps(float(observation[3])) == pytest.approx(start * 2**0.5, rel=1e-3)
    with pytest.raises(ValueError, match="rate"):
        gymnasium.make("weir_rtc/Rtc-v0", action="both")


def test_actions_and_bitrates_are_inverse():
    for bps in (10_000.0, 300_000.0, 8_000_000.0):
        assert abs(weir_rtc.env.to_bps(weir_rtc.env.to_unit(bps)) - bps) < 1e-6 * bps
