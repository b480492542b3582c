"""What an untrusted program may say of its model, and how the words of two sources are joined."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rightpool.profiles.profile import build_profile
from rightpool.profiles.sample import Field, Sample
from rightpool.profiles.traits import PRECISIONS, UNKNOWN_TRAITS, ModelTraits, Parallelism, traits_of
from rightpool.profiles.window import Window
from tests.unit.profiles.windows import KEY

BERT = ModelTraits("bf16", "fp32", 110_000_000, 440_000_000, 500_000_000, 256, Parallelism(8, 1, 1, 1))


def test_what_was_said_is_known() -> None:
    words = {"precision": "bf16", "parameter_dtype": "fp32"}
    numbers = {"parameters": 1.1e8, "parameter_bytes": 4.4e8, "model_bytes": 5e8, "batch": 256.0}
    assert traits_of(words, {**numbers, "data": 8, "sharded": 1, "tensor": 1, "pipeline": 1}) == BERT


@pytest.mark.parametrize("number", [0.0, -1.0, 1e30])
def test_what_can_not_be_is_unknown(number: float) -> None:
    names = ("parameters", "parameter_bytes", "model_bytes", "batch", "data", "tensor")
    assert traits_of({"precision": "quantum"}, dict.fromkeys(names, number)) == UNKNOWN_TRAITS


@given(
    st.dictionaries(st.sampled_from(["precision", "parameter_dtype"]), st.sampled_from([*PRECISIONS, "", "x"])),
    st.dictionaries(st.sampled_from(["parameters", "batch", "data"]), st.floats()),
)
def test_anything_may_be_said(words: dict[str, str], numbers: dict[str, float]) -> None:
    found = traits_of(words, numbers)
    assert found.batch is None or found.batch >= 1
    assert found.precision in (None, *PRECISIONS)
    assert found.over(UNKNOWN_TRAITS) == found == UNKNOWN_TRAITS.over(found)


def test_the_profile_has_what_was_said_last_and_a_restart_forgets_it() -> None:
    window = Window()
    for number in range(31):
        traits = BERT if number == 3 else None
        window.append(Sample(1000.0 + 10 * number, {Field.STEPS: 100.0 + number}, traits=traits))
    built = build_profile(KEY, 8, window, window=300.0, interval=10.0, expected_pods=1, now=1300.0)
    assert built.traits == BERT
    window.append(Sample(1310.0, {Field.STEPS: 1.0}))
    assert window.traits == UNKNOWN_TRAITS
