"""A message is a sentence that is read at once: each text of a reason fits a condition as a whole, its remedy included.

tests/unit/reporting/conftest.py and others measure the conditions and Events that stories make.
"""

from __future__ import annotations

import types
from collections.abc import Iterator
from dataclasses import fields, is_dataclass, replace
from enum import Enum
from itertools import product
from typing import Any, Final, Literal, Union, get_args, get_origin, get_type_hints

import pytest

from rightpool.api.conditions import ConditionType, Reason
from rightpool.api.placement import Placement
from rightpool.api.wording import MESSAGE, brief, sentence
from rightpool.hardware.node import Taint
from rightpool.hardware.node_needs import Expression
from rightpool.hardware.vendors.nvidia import NVIDIA
from rightpool.hardware.vendors.vendor import Vendor
from rightpool.planning.jobs.contradiction import Contradiction
from rightpool.planning.jobs.revision_state import RevisionState
from rightpool.planning.moves.setback import Setback
from rightpool.planning.moves.trace_setback import TraceSetback
from rightpool.planning.moves.transitions import FAILED
from rightpool.planning.offers import evidence, pool_rejection
from rightpool.planning.offers.evidence import Limit
from rightpool.planning.offers.rejection import Gap, RuledOut
from rightpool.planning.offers.servers import refusal
from rightpool.planning.offers.targets import registry
from rightpool.profiles import idle_findings, work_findings
from rightpool.profiles.findings import Finding
from rightpool.profiles.idle_findings import WaitsForHost
from rightpool.profiles.sample import Field
from rightpool.reporting.diagnosis_texts import RecordedFinding, diagnosis_text
from rightpool.workloads.notes import NOTE_MESSAGES
from tests.unit.planning.jobs import changed, running
from tests.unit.reporting.test_conditions import CRASH, condition_of
from tests.unit.reporting.test_decision_texts import leaves

# Where all kinds of reasons are, so that each is found below its base.
KINDS: Final = (evidence, idle_findings, pool_rejection, refusal, registry, work_findings)
# Behind "no pool can take the job: ".
OF_POOL: Final = MESSAGE - 26
NOW: Final = 1_800_000_000.0
# What a name of these fields is like.
NAMES: Final = {
    "chip": "A100-SXM4-80GB",
    "here": "A100-SXM4-80GB",
    "there": "H100-SXM5-80GB",
    "resource": "memory",
    "key": "cloud.example.com/zone",
    "precision": "bf16",
    "error": "KeyError: 'dev'",
    "cause": "Insufficient nvidia.com/gpu",
    "why": "no step within 60 min after the move",
    "refusal": "spec.template: Invalid value: x",
    "failure": "container trainer exited with 1 (Error)",
    "target": "targets.maxCostPerMillionSamples",
}
NUMBERS: Final = {
    int: 1024,
    float: 1234.5678,
}
# Fields whose number is of a certain kind.
AMOUNTS: Final = {"size": 80 * 2**30, "needed": 67.3 * 2**30, "worst": 123.4 * 2**30, "asked": 2**40, "most": 2**39}
SHARE: Final = 0.678
WATTS: Final = {"watts": 412.0, "limit": 400.0, "data_sheet": 700.0, "degrees": 88.0, "times": 123.0}


def values(hint: Any, name: str, kind: type[Any]) -> Iterator[Any]:
    """Realistic values of a field, one for each way in which the text may differ."""
    origin = get_origin(hint)
    if origin in (Union, types.UnionType):
        for each in get_args(hint):
            yield from values(each, name, kind)
    elif hint is type(None):
        yield None
    elif hint is bool:
        yield from (False, True)
    elif hint is str:
        yield NAMES.get(name, "a100-sxm4-80gb")
    elif hint in NUMBERS:
        if issubclass(kind, Finding):
            yield hint(WATTS.get(name, SHARE if hint is float else 1024))
        else:
            yield hint(AMOUNTS.get(name, NUMBERS[hint]))
    elif hint is Placement:
        yield Placement("a100-sxm4-80gb", 64, 8)
    elif hint is Taint:
        yield Taint("nvidia.com/gpu", "NoSchedule", "present")
    elif hint is Vendor:
        yield NVIDIA
    elif hint is Expression:
        yield Expression("cloud.example.com/zone", "In", ("west4-a",))
    elif hint is Field:
        yield Field.FP32_ACTIVE
    elif hint is Gap:
        yield Gap(Reason.STARTING, blocked="0/5 nodes are available: 5 Insufficient nvidia.com/gpu")
        yield Gap(Reason.SHARED_CHIP)
    elif origin is tuple:
        of = [each for each in get_args(hint) if each is not Ellipsis]
        yield tuple(next(values(each, name, kind)) for each in of)
    elif origin is Literal:
        yield get_args(hint)[0]
    elif isinstance(hint, type) and issubclass(hint, Enum):
        yield max(hint, key=lambda one: len(str(one.value)))
    elif hint is Finding:  # what another one is about
        yield WaitsForHost(1024, SHARE, SHARE, SHARE, SHARE)
    elif is_dataclass(hint):
        yield from (made for leaf in leaves(hint) for made in examples(leaf))
    else:
        raise NotImplementedError(f"{kind.__name__}.{name}: {hint}")


def examples(kind: type[Any]) -> Iterator[Any]:
    """Instances of a type, for every way in which its fields may be there or not."""
    hints = get_type_hints(kind)
    for made in product(*(tuple(values(hints[field.name], field.name, kind)) for field in fields(kind))):
        yield kind(*made)


def fit(kind: type[Any], texts: Iterator[str], most: int) -> None:
    long = {text: len(text) for text in texts if len(text) > most or "…" in text}
    assert not long, f"{kind.__name__}: {max(long, key=len)}"


@pytest.mark.parametrize("kind", list(leaves(RuledOut)), ids=lambda kind: kind.__name__)
def test_what_rules_a_placement_out_fits_behind_what_it_is_about(kind: type[RuledOut]) -> None:
    fit(kind, (made.text() for made in examples(kind)), OF_POOL)


@pytest.mark.parametrize("kind", list(leaves(Limit)), ids=lambda kind: kind.__name__)
def test_what_holds_a_move_back_fits(kind: type[Limit]) -> None:
    fit(kind, (made.text(now) for made in examples(kind) for now in (0.0, NOW)), MESSAGE)


@pytest.mark.parametrize(
    "kind", [kind for kind in leaves(Finding) if kind is not RecordedFinding], ids=lambda kind: kind.__name__
)
def test_a_finding_fits_with_what_helps(kind: type[Finding]) -> None:
    fit(kind, map(diagnosis_text, examples(kind)), MESSAGE)


@pytest.mark.parametrize("kind", [*leaves(Setback), *leaves(TraceSetback)], ids=lambda kind: kind.__name__)
def test_a_setback_fits(kind: type[Setback | TraceSetback]) -> None:
    fit(kind, (made.text() for made in examples(kind)), MESSAGE)


@pytest.mark.parametrize("kind", list(leaves(Contradiction)), ids=lambda kind: kind.__name__)
def test_what_a_status_contradicts_fits(kind: type[Contradiction]) -> None:
    fit(kind, (made.text("Job train-r{}".format) for made in examples(kind)), MESSAGE)


def test_why_steps_are_not_measured_fits() -> None:
    fit(type(NOTE_MESSAGES), iter(NOTE_MESSAGES.values()), MESSAGE)


def test_a_sentence_leaves_out_what_comes_last_and_keeps_the_remedy() -> None:
    text = sentence("what", "by how much", "why " * 50, remedy="what to do")
    assert text == "what; by how much: what to do"
    assert sentence(text) == text, "what fits is not changed"


def test_the_words_of_others_are_cut_where_they_are_too_long() -> None:
    text = sentence("pods wait\n " * 50, remedy="free chips")
    assert len(text) == MESSAGE and text.startswith("pods wait pods") and text.endswith("…: free chips")
    assert brief("a b", 3) == "a b" and brief("a bc", 3) == "a…"


def test_what_a_long_line_of_output_is_about_is_not_cut_off() -> None:
    failed = (
        "failed to create containerd task: OCI runtime create failed: exec: python: executable file not found in $PATH"
    )
    crash = replace(CRASH, count=5, exit_code=128, reason="StartError", output=failed)
    job = changed(running(), revisions={1: RevisionState(1, exists=True, active=1, crash=crash)})
    assert "executable file not found in $PATH" in sentence(condition_of(ConditionType.PLACED, job).message)


def test_a_failure_says_why_the_child_failed_beside_what_its_container_did() -> None:
    by_policy = "PodFailurePolicy: Container trainer for pod research/bert-r1-0-abcde failed with exit code 3 matching "
    failure = f"container trainer exited with 3 (Error): {'x' * 200}; {by_policy}FailJob rule at index 0"
    ended = changed(
        running(), finished=FAILED, revisions={1: RevisionState(1, exists=True, failed=True, failure=failure)}
    )
    message = sentence(condition_of(ConditionType.FAILED, ended).message)
    assert "exited with" in message and "PodFailurePolicy" in message and message.endswith("rule at index 0")
