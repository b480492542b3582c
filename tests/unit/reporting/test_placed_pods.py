"""Placed: pods that Kubernetes does not make, does not take, or does not end."""

from __future__ import annotations

from dataclasses import replace

from rightpool.api.conditions import ConditionType, Reason
from rightpool.api.wording import MESSAGE
from rightpool.planning.jobs.revision_state import RevisionState
from rightpool.reporting.conditions.placed import LATE_SECONDS, SILENT_SECONDS, placed_until
from tests.unit.planning.jobs import NOW, changed, running
from tests.unit.reporting.test_conditions import condition_of


def test_pods_that_kubernetes_does_not_make_are_told_with_where_it_says_why() -> None:
    """A quota, Pod Security, or a ServiceAccount that does not exist: the Job's Events alone say so."""
    job = running()
    young = RevisionState(1, exists=True, started_at=NOW - LATE_SECONDS + 1.0)
    text = condition_of(ConditionType.PLACED, changed(job, revisions={1: young})).message
    assert text.endswith("0 of 1 pods run")
    assert placed_until(changed(job, revisions={1: young}), NOW) == NOW + 1.0

    old = replace(young, started_at=NOW - LATE_SECONDS - 1.0)
    condition = condition_of(ConditionType.PLACED, changed(job, revisions={1: old}))
    assert (condition.status, condition.reason) == ("False", "Starting")
    assert "0 of 1 pods run; 1 pod does not exist: see `kubectl describe job job-r1`" in condition.message

    for other in (replace(old, active=1), replace(old, suspended=True), replace(old, deleting=True)):
        text = condition_of(ConditionType.PLACED, changed(job, revisions={1: other})).message
        assert "does not exist" not in text


def test_a_pod_that_its_node_did_not_take_is_told() -> None:
    fault = "UnexpectedAdmissionError: Allocate failed: no healthy devices"
    state = RevisionState(1, exists=True, active=1, pod_fault=fault, started_at=NOW - 2 * LATE_SECONDS)
    condition = condition_of(ConditionType.PLACED, changed(running(), revisions={1: state}))
    assert condition.reason == "Starting"
    assert condition.message.endswith(f"0 of 1 pods run; a pod has failed: {fault}")

    unmade = changed(running(), revisions={1: replace(state, active=0)})
    assert f"a pod has failed: {fault}; 1 pod does not exist" in condition_of(ConditionType.PLACED, unmade).message


def test_a_server_that_does_not_warm_up_says_how_it_answers() -> None:
    blocked = "warm-up failed: POST /infer: HTTP 400: no such model"
    cold = RevisionState(1, exists=True, active=1, blocked=blocked, refused=True, prevented=True, cold=True)
    condition = condition_of(ConditionType.PLACED, changed(running(), revisions={1: cold}))
    assert (condition.status, condition.reason) == ("False", "WarmUpFailed")
    assert condition.message.endswith(blocked)


def test_after_an_hour_pods_that_do_not_exist_are_no_unknown_reason() -> None:
    job = running()
    ref = replace(job.state.revision, since=None, created_at=NOW - 2 * SILENT_SECONDS)
    absent = RevisionState(1, exists=True, started_at=NOW - 2 * SILENT_SECONDS)
    never_ran = changed(job, revision=ref, revisions={1: absent})
    condition = condition_of(ConditionType.PLACED, never_ran)
    assert condition.reason == "StartDeadlineExceeded"
    assert "`kubectl describe job job-r1`" in condition.message and "of its Job and pods" not in condition.message
    there = changed(job, revision=ref, revisions={1: replace(absent, active=1)})
    assert "of its Job and pods" in condition_of(ConditionType.PLACED, there).message


def test_containers_that_do_not_become_ready_are_told_after_a_while() -> None:
    words = "containers with unready status: [trainer]"
    young = RevisionState(1, exists=True, active=1, unready=words, started_at=NOW - LATE_SECONDS + 1.0)
    text = condition_of(ConditionType.PLACED, changed(running(), revisions={1: young})).message
    assert text.endswith("0 of 1 pods run")
    old = changed(running(), revisions={1: replace(young, started_at=NOW - LATE_SECONDS - 1.0)})
    look = "`kubectl describe pod -l rightpool.dev/profiledjob=job`"
    assert condition_of(ConditionType.PLACED, old).message.endswith(f"0 of 1 pods run; {words}; see {look}")


def test_a_deletion_that_a_finalizer_holds_up_does_not_say_that_pods_end() -> None:
    """Kubernetes ends the child once the ProfiledJob is gone, or is deleted in the foreground."""
    held = changed(running(), deleting=True)
    condition = condition_of(ConditionType.PLACED, held)
    assert (condition.status, condition.reason) == ("False", Reason.STOPPING)
    assert "1 pod runs on and holds its chips" in condition.message and "metadata.finalizers" in condition.message
    assert "still ending" not in condition.message

    suspended = RevisionState(1, exists=True, suspended=True, active=1)
    ends = changed(running(), deleting=True, revisions={1: suspended})
    assert "1 pod is still ending" in condition_of(ConditionType.PLACED, ends).message


def test_nodes_of_other_pools_do_not_push_out_what_the_scheduler_says_of_its_own() -> None:
    others = "11 node(s) didn't match Pod's node affinity/selector"
    taint = "1 node(s) had untolerated taint {node-role.kubernetes.io/control-plane: }"
    words = f"Unschedulable: 0/16 nodes are available: {taint}, {others}, 4 Insufficient nvidia.com/gpu"
    words += ". preemption: 0/16 nodes are available: 16 Preemption is not helpful for scheduling."
    pending = RevisionState(1, exists=True, active=1, blocked=words)
    message = condition_of(ConditionType.PLACED, changed(running(), revisions={1: pending})).message
    assert message.endswith(f"0/16 nodes are available: {taint}, 4 Insufficient nvidia.com/gpu")
    assert len(message) <= MESSAGE
