"""First tokens wait where the cache of another chip holds fewer requests, and the model says so."""

from __future__ import annotations

import numpy as np

from benchmarks.servers.memory import moved
from rightpool.prediction.columns import Floats


def test_late_first_tokens_of_a_smaller_chip_are_predicted_by_what_its_cache_holds() -> None:
    """An engine that is simulated token by token, of which the model knows no length."""
    draw = np.random.default_rng(5)
    prompts: Floats = np.round(draw.lognormal(6.8, 0.6, 5000))
    answers: Floats = np.round(draw.lognormal(5.0, 0.7, 5000)) + 1.0
    (found,) = moved((prompts, answers), (0.95,), slots=40)
    assert found.late > 0.1
    assert abs(found.known - found.late) < 0.5 * found.late
    assert found.unknown < 0.01
