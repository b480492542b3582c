"""What an untrusted program may say of its model, and how it stands in a status."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rightpool.api.status import ProfileStatus
from rightpool.api.traits import UNKNOWN_TRAITS, ModelTraits, Parallelism, traits_of
from rightpool.contract import MODEL_PRECISIONS

BERT = ModelTraits("bf16", "fp32", 110_000_000, 440_000_000, 500_000_000, 256, None, Parallelism(8, 1, 1, 1))


def test_what_was_said_is_known() -> None:
    words = {"precision": "bf16", "parameter_dtype": "fp32"}
    numbers = {"parameters": 1.1e8, "parameter_bytes": 4.4e8, "model_bytes": 5e8, "batch": 256.0}
    assert traits_of(words, {**numbers, "data": 8, "sharded": 1, "tensor": 1, "pipeline": 1}) == BERT


@pytest.mark.parametrize("number", [0.0, -1.0, 1e30])
def test_what_can_not_be_is_unknown(number: float) -> None:
    names = ("parameters", "parameter_bytes", "model_bytes", "batch", "data", "tensor")
    assert traits_of({"precision": "quantum"}, dict.fromkeys(names, number)) == UNKNOWN_TRAITS


@given(
    st.dictionaries(st.sampled_from(["precision", "parameter_dtype"]), st.sampled_from([*MODEL_PRECISIONS, "", "x"])),
    st.dictionaries(st.sampled_from(["parameters", "batch", "data"]), st.floats()),
)
def test_anything_may_be_said(words: dict[str, str], numbers: dict[str, float]) -> None:
    found = traits_of(words, numbers)
    assert found.batch is None or found.batch >= 1
    assert found.precision in (None, *MODEL_PRECISIONS)
    assert found.over(UNKNOWN_TRAITS) == found == UNKNOWN_TRAITS.over(found)


def test_a_status_has_the_degrees_beside_the_other_traits() -> None:
    body = {
        "precision": "bf16",
        "parameterDtype": "fp32",
        "parameters": 110_000_000,
        "parameterBytes": 440_000_000,
        "modelBytes": 500_000_000,
        "batch": 256,
        "stepFlops": "172000000000000",
        "dataParallel": 8,
        "sharded": 1,
        "tensorParallel": 1,
        "pipelineParallel": 1,
    }
    traits = replace(BERT, step_flops=1.72e14)
    assert ProfileStatus(model=traits).to_dict() == {"model": body}
    assert ProfileStatus.from_dict({"model": body}).model == traits
    assert ModelTraits.from_dict(ModelTraits(precision="bf16").to_dict()) == ModelTraits(precision="bf16")
