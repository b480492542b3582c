"""What a ProfiledJob can't adopt: each with its reason and its remedy, and left as it is."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from rightpool.api.kubernetes import JOBS
from rightpool.cluster.resources import PROFILED_JOBS
from rightpool.contract import ANNOTATION_ADOPTED_BY, LABEL_JOB
from rightpool.planning.moves.commands import Adopt
from rightpool.reporting.stored_job import read_job
from rightpool.runtime.act.adoption import Adopter
from rightpool.runtime.act.fence import Fence
from rightpool.runtime.act.refusals import Refusals
from rightpool.runtime.observe.store import Store
from rightpool.workloads.kinds.job_set import JOB_SETS
from tests.unit.runtime.act.world import Cluster
from tests.unit.runtime.makers import LEADING, Body
from tests.unit.runtime.test_members import adopted, referring


def found(**about: Any) -> Body:
    """The Job train, which nobody has adopted."""
    body = adopted()
    body["metadata"] = {"name": "train", "namespace": "research", "uid": "job-1", "resourceVersion": "20", **about}
    return body


def owned(kind: str, name: str) -> Body:
    return found(ownerReferences=[{"apiVersion": "x/v1", "kind": kind, "name": name, "uid": "o", "controller": True}])


def without_chips() -> Body:
    body = found()
    del body["spec"]["template"]["spec"]["containers"][0]["resources"]
    return body


def by_claims() -> Body:
    body = without_chips()
    body["spec"]["template"]["spec"]["resourceClaims"] = [{"name": "gpus", "resourceClaimTemplateName": "two"}]
    return body


def of_another() -> Body:
    return found(labels={LABEL_JOB: "other"}, annotations={ANNOTATION_ADOPTED_BY: "uid-2"})


REFUSED: dict[str, tuple[Body | None, dict[str, str], str, str]] = {
    "made by a JobSet": (owned("JobSet", "llm"), {}, "WorkloadControlled", "JobSet llm, which would undo changes"),
    "two ProfiledJobs": (of_another(), {}, "AdoptedByAnother", "ProfiledJob other already: delete either"),
    "no chips": (without_chips(), {}, "WorkloadNotAdoptable", "no container asks for chips"),
    "chips by claims": (by_claims(), {}, "WorkloadNotAdoptable", "resourceClaims are not read: have a container ask"),
    "not there": (None, {}, "WorkloadNotFound", "create it, or delete this ProfiledJob"),
    "being deleted": (found(deletionTimestamp="2026-11-28T10:00:00Z"), {}, "WorkloadNotFound", "delete this"),
    "another kind": (None, {"kind": "CronJob"}, "WorkloadNotAdoptable", "CronJob of batch/v1 can't be adopted"),
    "no definition": (
        None,
        {"apiVersion": JOB_SETS.api_version, "kind": "JobSet"},
        "KindNotInstalled",
        "jobsets.jobset.x-k8s.io is not installed; JobSet train is looked for once it is",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
@pytest.mark.parametrize("long", [False, True], ids=["", "long names"])
def test_what_can_not_be_adopted_is_told_with_its_remedy_and_left_as_it_is(name: str, long: bool) -> None:
    body, ref, reason, words = copy.deepcopy(REFUSED[name])
    if long:
        ref |= {"name": "n" * 253}
        words = words.replace("train", f"{'n' * 39}…")
        for about in () if body is None else (body["metadata"], *body["metadata"].get("ownerReferences", ())):
            words = words.replace("llm, which", f"{'n' * 39}…, which")
            about["name"] = "n" * 253
    cluster, store = Cluster(), Store()
    store.turn_off({JOB_SETS})
    other = referring("other")
    other["metadata"]["uid"] = "uid-2"
    store.observe(PROFILED_JOBS, None, other)
    if body is not None:
        cluster.put(JOBS, body)
    mine = referring()
    mine["spec"]["workloadRef"] |= ref
    job = read_job(mine).job
    refusals = Refusals(store, lambda: 0.0)
    adopter = Adopter(cluster, Fence(cluster, LEADING), store, refusals)  # type: ignore[arg-type]
    assert adopter.needed(job) and not adopter.adopt(job, Adopt())
    refusal = refusals.current(job)
    assert refusal is not None and refusal.reason == reason
    assert words in refusal.message and len(refusal.message) <= 160
    assert cluster.writes == [] and not adopter.needed(job), "it is looked for again after a while"
