"""What is said of an adopted object whose pods have no profiler."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Final

import pytest

from rightpool.api.account import Account
from rightpool.api.adopted_object import AdoptedObject, Undone
from rightpool.api.altered import altered
from rightpool.api.conditions import ConditionType
from rightpool.planning.jobs.job import Job
from rightpool.profiles.bottleneck import Bottleneck
from rightpool.profiles.diagnosis import diagnose
from rightpool.profiles.profile import Reading
from rightpool.profiles.sample import Field, Quality
from rightpool.reporting.status import draft_status
from rightpool.reporting.stored_job import StoredJob, packed
from tests.unit.planning.jobs import NOW, changed, running
from tests.unit.planning.test_only_watched import seen_running
from tests.unit.prediction.fixtures import A100_CHIP
from tests.unit.reporting.test_conditions import ALONE, condition_of, context

DEEP: Final = "/spec/replicatedJobs/0/template/spec/template/spec/nodeSelector"
CHIPS = {Field.CHIP_BUSY: 0.98, Field.COMPUTE_ACTIVE: 0.8, Field.MATRIX_ACTIVE: 0.1, Field.MEMORY_BANDWIDTH: 0.85}


def by_exporters(job: Job) -> Job:
    """What DCGM says of chips; of steps nothing is known."""
    assert job.observed.profile is not None
    readings = {field: Reading(value, value, value, Quality.MEASURED) for field, value in CHIPS.items()}
    made = replace(job.observed.profile, readings=readings)
    account = Account(spent=1.0, since=NOW, cost_per_hour=20.0)
    return changed(job, profile=made, diagnosis=diagnose(made, A100_CHIP), account=account)


def test_what_limits_it_is_shown_and_that_steps_are_not_seen() -> None:
    job = by_exporters(seen_running())
    found = condition_of(ConditionType.PROFILED, job, ALONE)
    assert (found.status, found.reason) == ("False", "ExportersAlone")
    stored = StoredJob(job=job, status_packed=packed({}), observed_generation=1, resource_version="1")
    status = draft_status(stored, job, context(job, ALONE)).body
    assert status["summary"]["bottleneck"] == Bottleneck.MEMORY_BANDWIDTH.value
    # Of a job that should have the profiler, the columns say nothing.
    wrapped = by_exporters(running())
    assert condition_of(ConditionType.PROFILED, wrapped, ALONE).reason == "PartialTelemetry"
    assert "bottleneck" not in draft_status(stored, wrapped, context(wrapped, ALONE)).body["summary"]


def test_how_its_pods_get_the_profiler_is_said_and_with_it_they_are_judged_as_any() -> None:
    job = by_exporters(seen_running())
    adopted = job.observed.adopted
    assert adopted is not None
    assert condition_of(ConditionType.PROFILED, job, ALONE).message.endswith("it takes Kubernetes 1.36")
    soon = changed(job, adopted=altered(adopted, admits=True))
    assert condition_of(ConditionType.PROFILED, soon, ALONE).message.endswith("they get it when they start anew")
    have = changed(job, adopted=altered(adopted, admits=True, profiled=True))
    assert condition_of(ConditionType.PROFILED, have, ALONE).reason == "PartialTelemetry"


def test_where_nothing_covers_its_pods_that_is_said() -> None:
    job = changed(seen_running(), profile=None, diagnosis=None)
    found = condition_of(ConditionType.PROFILED, job, ALONE)
    assert found.reason == "NoTelemetry" and "Job train, which have no profiler" in found.message


@pytest.mark.parametrize(
    ("manager", "field", "words"),
    [
        ("argocd-controller", "/spec/suspend", "argocd-controller set /spec/suspend back twice, so no move is made"),
        ("kustomize-controller", DEEP, "kustomize-controller set …/template/spec/nodeSelector back twice"),
        ("m" * 128, "/" + "n" * 255, "mmm… set …/nnn"),
        ("", "/spec/suspend", "somebody else set /spec/suspend back twice"),
    ],
    ids=["argo", "flux", "long", "unknown"],
)
def test_who_takes_changes_back_is_named_with_the_field_and_the_remedy(manager: str, field: str, words: str) -> None:
    job = seen_running()
    taken = Undone(manager, field, 2, NOW, job.generation, 1)
    job = job.with_state(replace(job.state, adopted=AdoptedObject("u", None, taken)))
    found = condition_of(ConditionType.MIGRATING, job, ALONE)
    assert (found.status, found.reason) == ("False", "ChangeUndone")
    assert words in re.sub("mm+", "mmm", re.sub("nn+", "nnn", found.message)) and len(found.message) <= 160
    assert found.message.endswith("approve a move or edit the spec")
