"""TrainJobKind: what of a TrainJob and of its runtime a placement changes."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from rightpool.api.train_job import TrainJobWorkload
from rightpool.contract import LABEL_ROLE, SIDECAR_CONTAINER
from rightpool.workloads.kinds.train_job import TRAIN_JOB
from rightpool.workloads.names import LABEL_OWNER
from rightpool.workloads.pod_set import scaled_of
from rightpool.workloads.template import InvalidTemplate
from tests.unit.workloads.samples import GPU_POOL, INJECTION, OWNER, env_of, ref

Body = dict[str, Any]
STEP = {"trainer.kubeflow.org/trainjob-ancestor-step": "trainer"}
COMPANION = TRAIN_JOB.companion


def step(name: str, container: Body, **labels: str) -> Body:
    job = {"metadata": {"labels": labels}, "spec": {"template": {"spec": {"containers": [container]}}}}
    return {"name": name, "template": job}


def runtime(*others: Body, **policy: Any) -> Body:
    env = [{"name": "MODE", "value": "base"}, {"name": "PYTHONPATH", "value": "/base"}]
    node = {"name": "node", "image": "base:1", "env": env, "resources": {"requests": {"cpu": "1"}}}
    steps = [*others, step("node", node, **STEP)]
    return {"spec": {"mlPolicy": policy or {"torch": {}}, "template": {"spec": {"replicatedJobs": steps}}}}


def work(**trainer: Any) -> TrainJobWorkload:
    template = {"runtimeRef": {"name": "torch"}, "trainer": {"numNodes": 2, **trainer}}
    return TrainJobWorkload.model_validate({"chipsPerReplica": 4, "template": template})


def built(workload: TrainJobWorkload, body: Body | None = None) -> tuple[Body, Body]:
    """The TrainJob, and the pod templates of its runtime by role."""
    known = COMPANION.known(workload, body or runtime(step("data", {"name": "data", "image": "data:1"})))
    child = TRAIN_JOB.build(OWNER, known, None, ref(16, 4), GPU_POOL, INJECTION)
    made = COMPANION.build(OWNER, known, ref(16, 4), GPU_POOL, INJECTION)
    assert made["metadata"]["name"] == child["metadata"]["name"] == child["spec"]["runtimeRef"]["name"] == "bert-r3"
    assert child["spec"]["runtimeRef"]["kind"] == made["kind"] == "TrainingRuntime"
    roles = made["spec"]["template"]["spec"]["replicatedJobs"]
    return child, {role["name"]: role["template"]["spec"]["template"] for role in roles}


def test_the_pods_of_the_trainer_are_placed_and_profiled_and_other_steps_stay_as_they_are() -> None:
    body = runtime(step("data", {"name": "data", "image": "data:1"}))
    workload, before = work(image="mine:1"), copy.deepcopy(body)
    child, pods = built(workload, body)
    assert body == before and workload == work(image="mine:1")
    assert child["spec"]["trainer"] == {"numNodes": 4, "numProcPerNode": 4, "image": "mine:1"}
    node, data = pods["node"], pods["data"]
    assert node["spec"]["nodeSelector"] == GPU_POOL.node_selector
    assert node["spec"]["initContainers"][0]["name"] == SIDECAR_CONTAINER
    [container] = node["spec"]["containers"]
    assert container["resources"]["limits"] == {"nvidia.com/gpu": "4"}
    assert env_of(container)["MASTER_ADDR"] == "bert-r3-node-0-0.bert-r3.research.svc"
    assert {"nodeSelector", "tolerations", "initContainers"}.isdisjoint(data["spec"])
    for role, template in pods.items():
        labels = template["metadata"]["labels"]
        assert (labels[LABEL_ROLE], labels[LABEL_OWNER]) == (role, child["metadata"]["labels"][LABEL_OWNER])


def test_what_the_trainjob_says_of_the_program_holds_before_its_runtime() -> None:
    env = [{"name": "MODE", "value": "mine"}, {"name": "EXTRA", "value": "1"}]
    child, pods = built(work(command=["torchrun"], env=env, resourcesPerNode={"requests": {"memory": "1Gi"}}))
    [container] = pods["node"]["spec"]["containers"]
    assert (container["image"], container["command"]) == ("base:1", ["torchrun"])
    found = env_of(container)
    assert (found["MODE"], found["EXTRA"]) == ("mine", "1")
    assert found["PYTHONPATH"].endswith(":/base"), "the agent is found before what the runtime has"
    assert container["resources"]["requests"] == {"cpu": "1", "memory": "1Gi", "nvidia.com/gpu": "4"}
    assert {"env", "resourcesPerNode"}.isdisjoint(child["spec"]["trainer"]), "Trainer would lay them over ours"


def test_processes_that_the_user_counts_stay() -> None:
    child, _ = built(work(numProcPerNode=1))
    assert child["spec"]["trainer"]["numProcPerNode"] == 1


def test_for_a_dry_run_it_names_the_runtime_that_is_there() -> None:
    child, _ = built(work())
    assert COMPANION.without(work(), child)["spec"] == {**child["spec"], "runtimeRef": {"name": "torch"}}
    assert COMPANION.named(work())[0].kind == "ClusterTrainingRuntime"


def test_without_its_runtime_its_pods_are_what_it_says_of_them() -> None:
    [known] = TRAIN_JOB.pod_sets(work(image="mine:1"))
    assert (known.name, known.pods, known.chips) == ("node", 2, 4)
    assert known.template == {"spec": {"containers": [{"name": "node", "image": "mine:1"}]}}
    pods = TRAIN_JOB.pod_sets(COMPANION.known(work(image="mine:1"), runtime()))
    assert scaled_of(pods).template["spec"]["containers"][0]["image"] == "mine:1"


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (runtime(mpi={}), r"runtimeRef: the runtime has mlPolicy.mpi"),
        (runtime(flux={}), r"runtimeRef: the runtime has mlPolicy.flux"),
        ({"spec": {}}, r"runtimeRef: no step of the runtime has the label .*trainjob-ancestor-step: trainer"),
        (
            runtime(step("data", {"name": "d", "resources": {"limits": {"nvidia.com/gpu": 1}}})),
            "^data: container d asks",
        ),
    ],
)
def test_a_runtime_that_does_not_do_is_refused(body: Body, message: str) -> None:
    with pytest.raises(InvalidTemplate, match=message):
        built(work(), body)


def test_no_variant_is_laid_over_it() -> None:
    with pytest.raises(InvalidTemplate, match="remove the variant"):
        TRAIN_JOB.with_template(work(), {})
