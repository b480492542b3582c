"""Every finding has words, and says what helps. tests/unit/profiles compares the sentences, beside the rules."""

from __future__ import annotations

import pytest

from rightpool.profiles import findings, idle_findings, work_findings
from rightpool.profiles.closeness import Arithmetic, Roofs
from rightpool.profiles.findings import Finding
from rightpool.profiles.sample import Field
from rightpool.reporting.diagnosis_texts import RecordedFinding, diagnosis_text
from tests.unit.reporting.words import words_of

KINDS = [
    kind
    for module in (findings, idle_findings, work_findings)
    for kind in vars(module).values()
    if isinstance(kind, type) and issubclass(kind, Finding) and kind is not Finding
]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_every_finding_has_words_and_a_lever(kind: type[Finding]) -> None:
    assert words_of(kind.text, kind) and words_of(kind.lever, kind)


def test_findings_are_found() -> None:
    assert len(KINDS) > 25


def test_what_is_recorded_is_said_as_it_is() -> None:
    text = "the chip is hot: cool it"
    assert diagnosis_text(RecordedFinding(text)) == text


def test_a_pipe_that_does_the_arithmetic_is_named() -> None:
    roofs = Roofs(matrix=0.1, bandwidth=0.2, pipe=(1.25, Field.FP64_ACTIVE))
    near = work_findings.ArithmeticNear("V100", roofs, Arithmetic("fp64", 200.0, 300.0))
    assert diagnosis_text(near) == (
        "while V100 works, memory bandwidth 20%, FP64 units 100%, matrix units 10% of attainable: "
        "lower precision (bf16, TF32) for the matrix units, or more FLOP/s"
    )


@pytest.mark.parametrize(
    ("roofs", "missing"),
    [(Roofs(None, 0.2, None), "the matrix units"), (Roofs(0.2, None, None), "memory bandwidth")],
)
def test_the_counter_that_is_missing_is_named(roofs: Roofs, missing: str) -> None:
    assert diagnosis_text(work_findings.OneRoofCounted(roofs)).endswith(
        f": give the profiler a counter of {missing} (NVIDIA: DCGM or GPM)"
    )


def test_a_program_that_computes_in_bf16_is_not_advised_to() -> None:
    """Recorded: ResNet-50 by autocast on a quarter of an H100."""
    roofs = Roofs(matrix=0.21, bandwidth=0.26, pipe=(0.42, Field.FP32_ACTIVE))
    near = work_findings.ArithmeticNear("H100-quarter", roofs, Arithmetic("bf16", None, None))
    assert diagnosis_text(near).endswith(": fused kernels beside matrix products, or more FLOP/s")
