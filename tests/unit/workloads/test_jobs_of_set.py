"""Which Jobs of a JobSet are held to nodes that the JobSet has left."""

from __future__ import annotations

from typing import Any

import pytest

from rightpool.workloads.jobs_of_set import ROLE, JobsOfSet
from rightpool.workloads.kinds.job_set import JOB_SETS

JOBS_OF_SET = JobsOfSet(JOB_SETS, "llm", ("jobset.sigs.k8s.io/jobset-uid", "u"))
THERE = {"node.kubernetes.io/instance-type": "g5.12xlarge"}
BEFORE = {"nvidia.com/gpu.product": "A100"}
KEYS = {*THERE, *BEFORE}


def spec(selector: dict[str, str] | None, **more: Any) -> dict[str, Any]:
    return {"template": {"spec": {} if selector is None else {"nodeSelector": selector}}, **more}


JOB_SET = {"spec": {"replicatedJobs": [{"name": "workers", "template": {"spec": spec(THERE)}}]}}


def outdated(selector: dict[str, str] | None, role: str = "workers", about: Any = None, **status: Any) -> bool:
    suspended = status.pop("suspend", False)
    metadata = {"name": "llm-workers-0", "labels": {ROLE: role}, **(about or {})}
    job = {"metadata": metadata, "spec": spec(selector, suspend=suspended), "status": status}
    return list(JOBS_OF_SET.outdated(JOB_SET, [job], KEYS)) == [job]


def test_a_key_of_the_pool_that_it_has_left_keeps_its_pods_from_every_node() -> None:
    assert outdated(BEFORE | THERE) and outdated(BEFORE)


@pytest.mark.parametrize("selector", [THERE, {}, None, THERE | {"team.example.com/own": "yes"}])
def test_other_keys_do_not_count(selector: dict[str, str] | None) -> None:
    assert not outdated(selector)


def test_one_that_runs_or_is_not_to_run_stays() -> None:
    old = BEFORE | THERE
    assert not outdated(old, ready=1) and not outdated(old, suspend=True)
    assert not outdated(old, completionTime="2026-01-01T00:00:00Z")
    assert not outdated(old, about={"deletionTimestamp": "2026-01-01T00:00:00Z"})


def test_a_job_of_no_role_is_nobodys() -> None:
    assert not outdated(BEFORE, role="other")
