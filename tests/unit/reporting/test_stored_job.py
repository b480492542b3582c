"""What is read of a stored job, and what is not believed."""

from __future__ import annotations

import pickle
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rightpool.api.account import Account
from rightpool.api.conditions import Condition
from rightpool.api.placement import Placement
from rightpool.api.revision import Revision
from rightpool.api.state import JobState
from rightpool.api.status import ProfiledJobStatus
from rightpool.contract import ANNOTATION_APPROVE, ANNOTATION_TRACE
from rightpool.reporting.conditions.context import Context
from rightpool.reporting.status import draft_status
from rightpool.reporting.stored_job import read_job
from rightpool.reporting.write_policy import WritePolicy
from tests.unit.api.test_state import states
from tests.unit.planning.jobs import changed
from tests.unit.runtime.makers import profiled_job


def test_a_status_of_a_newer_operator_stops_the_job_and_says_so() -> None:
    body = profiled_job()
    body["status"] = ProfiledJobStatus(state=read_job(body).job.state).to_dict()
    body["status"]["migration"] = {"id": "d-1", "phase": "Teleporting"}
    stored = read_job(body)
    assert stored.job.unreadable is not None
    assert "another version" in stored.job.unreadable


@pytest.mark.parametrize("how", ["Completed", "Failed"])
def test_a_terminal_condition_is_the_memory_of_the_end(how: str) -> None:
    body = profiled_job()
    body["status"] = {"conditions": [{"type": how, "status": "True", "reason": "X", "message": ""}]}
    assert read_job(body).job.state.finished == how


@given(states, st.sampled_from(["Placed", "Completed", "Failed"]), st.sampled_from(["True", "False"]))
def test_the_answer_to_an_own_write_is_read_as_any_other(state: JobState, kind: str, status: str) -> None:
    body = profiled_job()
    before = read_job(body)
    condition = Condition(kind, "True" if status == "True" else "False", "Why", "text", 1, 1.7e9)
    body["status"] = ProfiledJobStatus(conditions=(condition,), state=state).to_dict()
    assert read_job(body, before, own=True) == read_job(body, before)


def test_a_status_that_could_not_be_read_is_read_as_a_whole_after_an_own_write() -> None:
    body = profiled_job()
    body["status"] = {"moves": -1}
    before = read_job(body)
    assert before.job.unreadable is not None
    assert read_job(body, before, own=True).job.unreadable == before.job.unreadable


def forged(**changes: Any) -> dict[str, Any]:
    """A job that runs, whose status somebody has written to."""
    body = profiled_job()
    ref = Revision(1, Placement("a100", 4, 1), "h", 4, 1, 1.7e9, 5.0, 1.7e9, 1)
    state = changed(read_job(body).job, revision=ref, account=Account(spent=3.0, since=1.7e9, cost_per_hour=5.0))
    body["status"] = ProfiledJobStatus(state=state.state).to_dict()
    for path, value in changes.items():
        at = body["status"]
        *above, last = path.split("__")
        for key in above:
            at = at.setdefault(key, {})
        at[last] = value
    return body


PLACED = {"pool": "a100", "chips": 4, "replicas": 1, "revision": 1}
MIGRATION = {
    "id": "d-1",
    "action": "Move",
    "phase": "Draining",
    "reason": "Moving",
    "startedAt": "2026-11-21T10:00:00Z",
    "phaseStartedAt": "2026-11-21T10:00:00Z",
    "from": PLACED,
    "to": {**PLACED, "revision": 2},
}
ESTIMATE = {"median": "1", "low": "1", "high": "1", "sd": "0"}


ENTRY = {
    "id": "d-1",
    "action": "Move",
    "from": {"pool": "a100", "chips": 4, "replicas": 1},
    "to": {"pool": "a10g", "chips": 4, "replicas": 1},
    "startedAt": "2026-11-21T10:00:00Z",
    "finishedAt": "2026-11-21T10:05:00Z",
    "outcome": "Verified",
    "reason": "Delivered",
}


@pytest.mark.parametrize(
    ("field", "changes"),
    [
        ("cost.spent", {"cost__spent": "NaN"}),
        ("cost.spent", {"cost__spent": "-1e9"}),
        ("cost.saved", {"cost__saved": "inf"}),
        ("cost.perHour", {"cost__perHour": "a lot"}),
        ("placement", {"placement__chips": 0}),
        ("placement", {"placement__replicas": 0}),
        ("placement", {"placement__replicas": 10**6, "placement__chips": 10**6}),
        ("placement", {"placement__chips": 5, "placement__replicas": 2}),
        ("placement.revision", {"placement__revision": 2**62}),
        ("placement.revision", {"placement__revision": -1}),
        ("placement.costPerHour", {"placement__costPerHour": "-5"}),
        ("adopted.remade", {"adopted": {"uid": "u-1", "remade": 3}}),
        ("moves", {"moves": 2**63 - 1}),
        ("ledgerCount", {"ledgerCount": -5}),
        ("migration.phase", {"migration": {**MIGRATION, "phase": "Teleporting"}}),
        ("migration.action", {"migration": {**MIGRATION, "action": ""}}),
        ("migration.reason", {"migration": {**MIGRATION, "reason": "Because"}}),
        ("migration: abandoned", {"migration": {**MIGRATION, "rollingBack": True}}),
        ("migration.predicted.median", {"migration": {**MIGRATION, "predicted": {**ESTIMATE, "median": "-1"}}}),
        ("migration.predicted.sd", {"migration": {**MIGRATION, "predicted": {**ESTIMATE, "sd": "-0.1"}}}),
        ("migration.predicted.sd", {"migration": {**MIGRATION, "predicted": {**ESTIMATE, "sd": "inf"}}}),
        ("migration.predicted.shared", {"migration": {**MIGRATION, "predicted": {**ESTIMATE, "shared": {"a": "b"}}}}),
        ("migration.from.costPerHour", {"migration": {**MIGRATION, "from": {**PLACED, "costPerHour": "-1"}}}),
        ("migration.to.chips", {"migration": {**MIGRATION, "to": {**PLACED, "chips": 0}}}),
        ("migration.startedAt", {"migration": {**MIGRATION, "startedAt": "2026-11-21T10:00:00"}}),
        ("migration.lostSeconds", {"migration": {**MIGRATION, "lostSeconds": "-1e400"}}),
    ],
)
def test_a_forged_status_is_no_memory_and_is_kept_as_it_is(field: str, changes: dict[str, Any]) -> None:
    body = forged(**changes)
    stored = read_job(body)
    assert stored.job.unreadable is not None and field in stored.job.unreadable
    context = Context(None, None, True, 1.8e9)
    draft = draft_status(stored, stored.job, context)
    rest = {**draft.body}
    placed = next(c for c in rest.pop("conditions") if c["type"] == "Placed")
    assert (placed["status"], placed["reason"]) == ("Unknown", "InvalidStatus")
    before = {key: value for key, value in body["status"].items() if key != "conditions"}
    assert rest == {**before, "observedGeneration": 1}, "nothing of it is lost by saying so"
    policy = WritePolicy()
    assert policy.wait("uid", stored.status_body, draft.body, draft.shown, 1000.0) == 0.0
    written = read_job({**body, "status": dict(draft.body)})
    again = draft_status(written, stored.job, replace(context, now=1.9e9))
    assert policy.wait("uid", written.status_body, again.body, again.shown, 1.9e9) is None, "and it is written once"


@pytest.mark.parametrize(
    "changes",
    [
        {"avoid": [{"pool": "a10g", "chips": 0, "reason": "RolledBack"}]},
        {"history": [{**ENTRY, "finishedAt": "soon"}]},
        {"history": [{**ENTRY, "lostSeconds": "-90"}, {**ENTRY, "outcome": "Unknown"}]},
        {"history": "none", "avoid": 7},
        {"progress": {"done": "-3"}, "interruption": {"id": "d-1", "startedAt": "soon"}},
        {"workingMemory": '{"progress": {"done": "-3"}, "interruption": 7, "disruptions": ["never"]}'},
        {"profile": {"chipBusy": "much"}, "history": [{**ENTRY, "predicted": "lots"}]},
    ],
)
def test_what_can_not_be_read_costs_that_part_and_not_the_job(changes: dict[str, Any]) -> None:
    stored = read_job(forged(**changes))
    assert stored.job.unreadable is None
    assert stored.job.state == read_job(forged()).job.state
    assert stored.status.profile is None


def test_the_entries_beside_an_unreadable_one_stay() -> None:
    body = forged(history=[ENTRY, {**ENTRY, "cost": "-1"}, {**ENTRY, "id": "d-3"}])
    for own in (True, False):
        stored = read_job(body, read_job(forged()), own=own)
        assert [entry.id for entry in stored.job.state.history] == ["d-1", "d-3"]


def test_the_forged_ones_differ_from_one_that_can_be_read() -> None:
    assert read_job(forged()).job.unreadable is None
    assert read_job(forged(migration=MIGRATION)).job.unreadable is None
    assert read_job(forged(migration={**MIGRATION, "predicted": ESTIMATE})).job.unreadable is None
    assert read_job(forged(history=[ENTRY])).job.unreadable is None


def test_the_labels_to_select_nodes_by_are_those_of_the_spec_as_it_is() -> None:
    body = profiled_job()
    before = read_job(body)
    pod = body["spec"]["workload"]["job"]["template"]["spec"]
    pod["nodeSelector"] = {"zone": "a"}
    body["metadata"]["generation"] += 1
    edited = read_job(body, before)
    assert (before.asks, edited.asks) == (frozenset(), {("label", "zone")})
    assert read_job(body, edited, own=True).asks == {("label", "zone")}
    broken = {**body, "metadata": {**body["metadata"], "generation": 9}, "spec": {"workload": 3}}
    assert read_job(broken, edited).asks == read_job(broken, read_job(broken)).asks == frozenset()


def test_specs_share_their_equal_parts_and_keep_what_their_users_wrote() -> None:
    body, other = profiled_job(), profiled_job()
    other["spec"]["workload"]["job"]["template"]["metadata"] = {"labels": {"of": "another"}}
    one, two = read_job(body).job.spec, read_job(other).job.spec
    assert one.workload != two.workload
    assert one.elasticity is two.elasticity and one.targets is two.targets
    assert one.model_fields_set == type(one).model_validate(body["spec"]).model_fields_set


def test_specs_share_the_names_of_what_their_users_wrote_and_keep_their_own() -> None:
    one, other = profiled_job(), profiled_job()
    other["spec"]["workload"]["job"] |= {"replicas": 3, "chipsPerReplica": 2}
    for body in (one, other, one):
        first, second = read_job(body).job.spec, read_job(body).job.spec
        whole = type(first).model_validate(body["spec"])
        assert first.model_dump(exclude_unset=True) == whole.model_dump(exclude_unset=True)
        for names in (lambda spec: spec, lambda spec: spec.workload, lambda spec: spec.workload.job):
            assert names(first).model_fields_set is names(second).model_fields_set
            assert names(first).model_fields_set == names(whole).model_fields_set
        copy = first.model_copy(update={"targets": whole.targets})
        assert "targets" in copy.model_fields_set and first.model_fields_set == whole.model_fields_set


def test_of_annotations_of_any_length_little_is_kept() -> None:
    """Ten thousand jobs may each have a quarter of a megabyte of them."""
    body = profiled_job()
    words = "d-1-" + "x" * 250_000
    body["metadata"]["annotations"] = {ANNOTATION_APPROVE: words, ANNOTATION_TRACE: words, "example.com/note": words}
    stored = read_job(body)
    assert stored.job.approved is not None and stored.job.trace_request is not None
    kept = len(stored.job.approved) + len(stored.job.trace_request.id) + len(pickle.dumps(stored.status_packed))
    assert kept < 1_000
