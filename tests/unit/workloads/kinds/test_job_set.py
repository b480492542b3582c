"""JobSetKind: what a placement changes of a user's JobSet, and how its state is read."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from rightpool.api.job_set import JobSetWorkload
from rightpool.contract import LABEL_JOB, LABEL_ROLE, SIDECAR_CONTAINER
from rightpool.workloads.kinds.job_set import JOB_SET
from rightpool.workloads.pod_set import scaled_of
from rightpool.workloads.template import InvalidTemplate
from tests.unit.workloads.samples import GPU_POOL, INJECTION, OWNER, TPU_POOL, env_of, plain, ref

INDEX_OF_POD = "metadata.annotations['batch.kubernetes.io/job-completion-index']"
INDEX_OF_JOB = "metadata.annotations['jobset.sigs.k8s.io/job-index']"


def role(name: str, jobs: int = 1, pods: int = 1, **spec: Any) -> dict[str, Any]:
    job = {"parallelism": pods, "completions": pods, "template": plain(), **spec}
    return {"name": name, "replicas": jobs, "template": {"spec": job}}


def work(*roles: dict[str, Any], **fields: Any) -> JobSetWorkload:
    template = {"failurePolicy": {"maxRestarts": 3}, "replicatedJobs": [*roles], **fields.pop("template", {})}
    named = {"role": "workers"} if len(roles) > 1 else {}
    return JobSetWorkload.model_validate({"chipsPerReplica": 4, **named, **fields, "template": template})


def built(workload: JobSetWorkload, **options: Any) -> dict[str, Any]:
    arguments = {"queue_name": None, "ref": ref(), "pool": GPU_POOL, "injection": None, **options}
    return JOB_SET.build(OWNER, workload, **arguments)


def jobs_of(child: dict[str, Any]) -> dict[str, Any]:
    return {role["name"]: role["template"]["spec"] for role in child["spec"]["replicatedJobs"]}


def size_of(child: dict[str, Any], name: str = "workers") -> tuple[int, int]:
    found = next(role for role in child["spec"]["replicatedJobs"] if role["name"] == name)
    job = found["template"]["spec"]
    assert job["completions"] == job["parallelism"] and job["completionMode"] == "Indexed"
    return found["replicas"], job["parallelism"]


def env(child: dict[str, Any], name: str = "workers") -> dict[str, Any]:
    return env_of(jobs_of(child)[name]["template"]["spec"]["containers"][0])


LEADER = role("leader")
WORKERS = role("workers", 1, 2)


def test_the_role_that_trains_is_placed_and_profiled_and_others_stay_as_they_are() -> None:
    workload = work(LEADER, WORKERS, template={"coordinator": {"replicatedJob": "leader"}})
    before = copy.deepcopy(workload.template)
    child = built(workload, injection=INJECTION)
    assert workload.template == before
    assert (child["apiVersion"], child["kind"], child["metadata"]["name"]) == (
        "jobset.x-k8s.io/v1alpha2",
        "JobSet",
        "bert-r3",
    )
    assert child["metadata"]["labels"][LABEL_ROLE] == "workers"
    spec = child["spec"]
    assert (spec["failurePolicy"], spec["coordinator"]) == ({"maxRestarts": 3}, {"replicatedJob": "leader"})
    leader, workers = (jobs_of(child)[name]["template"] for name in ("leader", "workers"))
    assert {"nodeSelector", "tolerations", "initContainers", "affinity"}.isdisjoint(leader["spec"])
    assert {"env", "resources"}.isdisjoint(leader["spec"]["containers"][0])
    assert leader["metadata"]["labels"][LABEL_JOB] == "bert" and leader["metadata"]["labels"][LABEL_ROLE] == "leader"
    assert workers["spec"]["nodeSelector"] == GPU_POOL.node_selector
    assert workers["spec"]["initContainers"][0]["name"] == SIDECAR_CONTAINER
    assert workers["spec"]["containers"][0]["resources"]["limits"] == {"nvidia.com/gpu": "4"}
    assert jobs_of(child)["workers"]["podReplacementPolicy"] == "Failed"
    assert "podReplacementPolicy" not in jobs_of(child)["leader"]


@pytest.mark.parametrize(
    ("jobs", "pods", "placed", "size"),
    [
        (1, 2, 2, (1, 2)),
        (1, 2, 4, (1, 4)),
        (4, 1, 2, (2, 1)),  # a pod is a Job
        (2, 2, 4, (2, 2)),
        (2, 2, 8, (2, 4)),
        (2, 2, 3, (1, 3)),  # what two Jobs can't share is one's
        (3, 2, 9, (3, 3)),
    ],
)
def test_another_number_of_pods_is_divided_among_jobs(jobs: int, pods: int, placed: int, size: tuple[int, int]) -> None:
    child = built(work(LEADER, role("workers", jobs, pods)), ref=ref(4 * placed, placed))
    assert size_of(child) == size
    assert size[0] * size[1] == placed
    assert size_of({"spec": {"replicatedJobs": [role("leader", completionMode="Indexed")]}}, "leader") == (1, 1)


def test_a_job_is_a_slice_where_there_are_slices() -> None:
    workload = work(role("slice", 1, 8))
    assert size_of(built(workload, ref=ref(32, 8, pool="v5e"), pool=TPU_POOL), "slice") == (2, 4)
    one = built(workload, ref=ref(16, 4, pool="v5e"), pool=TPU_POOL)
    assert size_of(one, "slice") == (1, 4)
    hosts = env(one, "slice")["TPU_WORKER_HOSTNAMES"].split(",")
    assert hosts == [f"bert-r3-slice-0-{pod}.bert-r3.research.svc" for pod in range(4)]


def test_each_of_several_slices_finds_its_own_hosts_and_the_first_of_all() -> None:
    two = env(built(work(role("slice", 2, 4)), ref=ref(32, 8, pool="v5e"), pool=TPU_POOL), "slice")
    assert two["MEGASCALE_NUM_SLICES"] == "2"
    assert two["MEGASCALE_SLICE_ID"]["valueFrom"]["fieldRef"]["fieldPath"] == INDEX_OF_JOB
    assert two["TPU_WORKER_ID"]["valueFrom"]["fieldRef"]["fieldPath"] == INDEX_OF_POD
    assert two["MEGASCALE_COORDINATOR_ADDRESS"] == "bert-r3-slice-0-0.bert-r3.research.svc"
    assert two["TPU_WORKER_HOSTNAMES"].split(",") == [
        f"bert-r3-slice-$(MEGASCALE_SLICE_ID)-{pod}.bert-r3.research.svc" for pod in range(4)
    ]
    names = list(two)
    assert names.index("MEGASCALE_SLICE_ID") < names.index("TPU_WORKER_HOSTNAMES"), "a variable refers to those above"
    one = env(built(work(role("slice", 2, 4)), ref=ref(16, 4, pool="v5e"), pool=TPU_POOL), "slice")
    assert "MEGASCALE_NUM_SLICES" not in one
    hosts = [f"bert-r3-slice-0-{pod}.bert-r3.research.svc" for pod in range(4)]
    assert one["TPU_WORKER_HOSTNAMES"].split(",") == hosts


def test_by_which_label_its_jobs_are_kept_apart_is_said_by_the_role() -> None:
    apart = role("slice", 2, 4)
    apart["template"]["metadata"] = {"annotations": {"alpha.jobset.sigs.k8s.io/exclusive-topology": "example.com/rack"}}
    workload = work(LEADER, apart, role="slice")
    assert [pod_set.apart for pod_set in JOB_SET.pod_sets(workload)] == ["", "example.com/rack"]
    child = built(workload, ref=ref(32, 8, pool="v5e"), pool=TPU_POOL)
    assert child["spec"]["replicatedJobs"][1]["template"]["metadata"] == apart["template"]["metadata"]


def test_pods_find_the_first_by_the_names_that_jobset_gives_them() -> None:
    found = env(built(work(LEADER, WORKERS)))
    assert found["MASTER_ADDR"] == "bert-r3-workers-0-0.bert-r3.research.svc"
    assert (found["PET_NNODES"], found["PET_NPROC_PER_NODE"], found["JAX_NUM_PROCESSES"]) == ("2", "4", "2")
    assert found["PET_NODE_RANK"]["valueFrom"]["fieldRef"]["fieldPath"] == INDEX_OF_POD
    assert JOB_SET.hosts(work(LEADER, WORKERS), "bert-r3", 2) is None, "JobSet makes the Service"


def test_pods_are_numbered_by_the_one_index_that_differs() -> None:
    single = env(built(work(LEADER, role("workers", 2, 1))))
    assert single["RANK"]["valueFrom"]["fieldRef"]["fieldPath"] == INDEX_OF_JOB
    crossed = env(built(work(LEADER, role("workers", 2, 2)), ref=ref(16, 4)))
    assert crossed["WORLD_SIZE"] == "4"
    assert {"RANK", "PET_NODE_RANK", "JAX_PROCESS_ID"}.isdisjoint(crossed), "no field numbers all of them"


def test_what_is_asked_for_is_read_from_the_role_that_trains() -> None:
    workload = work(LEADER, role("workers", 2, 3))
    assert (workload.replicas, workload.chips_per_replica) == (6, 4)
    leader, workers = JOB_SET.pod_sets(workload)
    assert (leader.pods, leader.scaled, workers.pods, workers.scaled) == (1, False, 6, True)
    assert work(role("only", pods=2)).replicas == 2, "the only role trains"


def test_a_variant_is_laid_over_the_pods_that_train() -> None:
    workload = work(LEADER, WORKERS)
    changed = JOB_SET.with_template(workload, plain(image="example.com/tpu:1"))
    leader, workers = JOB_SET.pod_sets(changed)
    assert workers.template["spec"]["containers"][0]["image"] == "example.com/tpu:1"
    assert leader == JOB_SET.pod_sets(workload)[0]
    assert scaled_of(JOB_SET.pod_sets(workload)).template == plain()


def test_it_is_created_without_an_end_and_expires_once_it_has_ended() -> None:
    workload = work(WORKERS, template={"ttlSecondsAfterFinished": 60})
    assert "ttlSecondsAfterFinished" not in built(workload)["spec"]
    assert JOB_SET.lifetime(workload) == 60
    assert JOB_SET.expiry(60)["spec"]["ttlSecondsAfterFinished"] == 60
    assert JOB_SET.lifetime(work(WORKERS)) is None


@pytest.mark.parametrize(
    ("suspend", "condition", "started"),
    [
        (False, {"status": "False", "lastTransitionTime": "1970-01-01T00:01:00Z"}, 60.0),
        (False, {"status": "True", "lastTransitionTime": "1970-01-01T00:01:00Z"}, None),
        (True, {"status": "False", "lastTransitionTime": "1970-01-01T00:01:00Z"}, None),
        (False, {}, 30.0),  # it was resumed before its controller saw it
        (True, {}, None),
    ],
)
def test_it_has_started_when_it_was_resumed(suspend: bool, condition: dict[str, Any], started: float | None) -> None:
    conditions = [{"type": "Suspended", **condition}] if condition else []
    body = {"metadata": {"creationTimestamp": "1970-01-01T00:00:30Z"}, "spec": {"suspend": suspend}}
    assert JOB_SET.observe({**body, "status": {"conditions": conditions}}).started_at == started


def test_restarts_that_count_are_compared_with_what_is_allowed() -> None:
    failed = {"type": "Failed", "status": "True", "reason": "ReachedMaxRestarts", "message": "3 of 3"}
    status = {"restarts": 5, "restartsCountTowardsMax": 3, "conditions": [failed]}
    state = JOB_SET.observe({"spec": {"failurePolicy": {"maxRestarts": 3}}, "status": status})
    assert state.failures == (3, 3, "template.failurePolicy.maxRestarts", True)
    assert state.failure == "ReachedMaxRestarts: 3 of 3"


def test_no_role_asks_for_chips_itself() -> None:
    greedy = role("leader", template=plain(resources={"limits": {"nvidia.com/gpu": "1"}}))
    with pytest.raises(InvalidTemplate, match=r"^leader: container trainer asks for nvidia.com/gpu itself"):
        built(work(greedy, WORKERS))


def test_a_role_that_is_not_there_is_refused_with_the_field() -> None:
    with pytest.raises(InvalidTemplate, match=r"jobSet.role must be the name of one of template.replicatedJobs"):
        built(work(LEADER, WORKERS, role="trainers"))


def test_a_name_that_becomes_too_long_is_refused_before_jobset_sees_it() -> None:
    with pytest.raises(InvalidTemplate, match="the job's name is too long"):
        built(work(LEADER, role("w" * 60), role="w" * 60))


def test_more_pods_than_a_placement_can_have_are_no_workload() -> None:
    with pytest.raises(ValueError, match="20000 pods are more than"):
        work(role("workers", 200, 100))


def test_the_jobs_that_jobset_makes_can_be_asked_about_before_it_does() -> None:
    child = built(work(LEADER, WORKERS))
    made = JOB_SET.made_of(child)
    assert [(resource.kind, body["metadata"]["name"]) for resource, body in made] == [
        ("Job", "bert-r3-leader-0"),
        ("Job", "bert-r3-workers-0"),
    ]
    assert [body["spec"] for _, body in made] == list(jobs_of(child).values())
