"""What the scheduler would ask of nodes is asked before anything is touched."""

from dataclasses import replace
from typing import Any

import pytest

from rightpool.api.action import Action
from rightpool.api.placement import Placement
from rightpool.api.pool import AcceleratorPoolSpec
from rightpool.hardware.inventory import build_pools
from rightpool.hardware.node import NodeFacts
from rightpool.hardware.node_needs import NodeNeeds, terms_of
from rightpool.hardware.node_shapes import with_node_shapes
from rightpool.hardware.pool import Pool
from rightpool.planning.allocate.room import Room
from rightpool.planning.jobs.job import Job
from rightpool.planning.offers.rejection import RejectionReason
from rightpool.reporting.candidate_texts import verdict_text
from rightpool.runtime.observe.facts import node_facts
from tests.unit.hardware.test_inventory import CATALOG
from tests.unit.planning.jobs import FOUR, find, fresh, judged, reason, running, spec

Body = dict[str, Any]
GPU = "nvidia.com/gpu"
LARGE = {"cpu": "192", "memory": "2000Gi", "vpc.amazonaws.com/efa": "4", "hugepages-2Mi": "10Gi"}
SMALL = {"cpu": "48", "memory": "192Gi"}


def node(name: str, pool: str, chips: int, offered: Body, *taints: Body, **labels: str) -> NodeFacts:
    return node_facts(
        {
            "metadata": {"name": name, "labels": {"pool": pool, **labels}},
            "spec": {"taints": list(taints)},
            "status": {
                "allocatable": {GPU: str(chips), **offered},
                "conditions": [{"type": "Ready", "status": "True"}],
            },
        }
    )


A100S = [node(f"a100-{n}", "a100", 8, LARGE, product="A100") for n in range(2)]
A10GS = [node(f"a10g-{n}", "a10g", 4, SMALL, product="A10G") for n in range(4)]


def pools(nodes: list[NodeFacts], *jobs: Job, most: int | None = None) -> dict[str, Pool]:
    specs = {
        name: AcceleratorPoolSpec.model_validate(
            {
                "accelerator": key,
                "chipsPerNode": chips,
                "nodeSelector": {"pool": name},
                "resourceName": GPU,
                **({"maxChips": most} if most else {}),
            }
        )
        for name, key, chips in (("a100", "A100-SXM4-80GB", 8), ("a10g", "A10G-24GB", 4))
    }
    aspects = {aspect for job in jobs for aspect in job.needs.aspects}
    return dict(with_node_shapes(build_pools(specs, nodes, {}, CATALOG), nodes, aspects))


def asking(pod: Body, chips: int = 4, resources: Body | None = None) -> Any:
    container = {"name": "trainer", "image": "x", "resources": resources or {}}
    template = {"spec": {"containers": [container], **pod}}
    return spec(chips=chips, workload={"job": {"chipsPerReplica": chips, "replicas": 1, "template": template}})


def selecting(*asks: Body) -> Body:
    return {"nodeSelectorTerms": [{"matchExpressions": list(asks)}]}


def required(*asks: Body) -> Body:
    return {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": selecting(*asks)}}}


@pytest.mark.parametrize(
    ("pod", "resources", "why", "words"),
    [
        (
            required({"key": "product", "operator": "In", "values": ["A100"]}),
            {},
            RejectionReason.NODE_SELECTOR,
            "no node of a10g meets product In A100 of template.spec.affinity.nodeAffinity",
        ),
        (
            {},
            {"requests": {"cpu": "64", "memory": "400Gi"}},
            RejectionReason.NODE_RESOURCES,
            "Insufficient cpu: a pod requests 64 with its profiler, and nodes of a10g have 48 at most",
        ),
        (
            {},
            {"requests": {"cpu": "8", "memory": "400Gi"}},
            RejectionReason.NODE_RESOURCES,
            "Insufficient memory: a pod requests 400Gi with its profiler, and nodes of a10g have 192Gi at most",
        ),
        (
            {},
            {"limits": {"vpc.amazonaws.com/efa": "4", "memory": "100Gi"}},
            RejectionReason.NODE_RESOURCES,
            "Insufficient vpc.amazonaws.com/efa: a pod requests 4 with its profiler, and nodes of a10g have 0 at most",
        ),
        (
            {},
            {"limits": {"hugepages-2Mi": "5Gi", "memory": "100Gi"}},
            RejectionReason.NODE_RESOURCES,
            "Insufficient hugepages-2Mi: a pod requests 5Gi with its profiler, and nodes of a10g have 0Gi at most",
        ),
    ],
)
def test_a_running_job_is_not_sent_where_its_pods_can_never_be(
    pod: Body, resources: Body, why: RejectionReason, words: str
) -> None:
    job = running(FOUR, made=asking(pod, resources=resources))
    assessment = judged(job, pools([*A100S, *A10GS], job))
    assert reason(assessment, "a10g") is why
    assert words in verdict_text(find(assessment, "a10g"))
    assert find(assessment, "a100", 8).rejection is None or reason(assessment, "a100") is not why
    grown = judged(job, pools([*A100S, *A10GS], job, most=64))
    assert (reason(grown, "a10g") is why) == (why is RejectionReason.NODE_RESOURCES), "new nodes are as large"


def test_volumes_and_affinity_have_to_hold_on_one_node() -> None:
    one, other = (terms_of(selecting({"key": key, "operator": "In", "values": ["x"]})) for key in "ab")
    nowhere = terms_of(selecting({"key": "c", "operator": "Exists"}))
    apart = [node("n0", "a100", 8, LARGE, a="x"), node("n1", "a100", 8, LARGE, b="x")]
    both = [*apart, node("n2", "a100", 8, LARGE, a="x", b="x")]
    for volumes, nodes, why in (
        ((one,), apart, None),
        ((one, other), apart, RejectionReason.VOLUME_ELSEWHERE),
        ((one, other), both, None),
        ((nowhere,), both, RejectionReason.VOLUME_ELSEWHERE),
    ):
        job = fresh(made=asking({}))
        job = replace(job, needs=job.needs.bound_to(volumes))
        assessment = judged(job, pools(nodes, job))
        assert reason(assessment, "a100") is why
        assert judged(job, pools(nodes, job, most=64)).decision.action is Action.START, "new nodes may differ"


DEDICATED = {"key": "dedicated", "value": "vision", "effect": "NoSchedule"}
TOLERATES = {"tolerations": [{"key": "dedicated", "operator": "Equal", "value": "vision", "effect": "NoSchedule"}]}


def test_a_job_that_tolerates_a_taint_has_the_nodes_behind_it() -> None:
    behind = node("a100-0", "a100", 8, LARGE, DEDICATED, team="vision")
    job = fresh(made=asking({"nodeSelector": {"team": "vision"}, **TOLERATES}, chips=8))
    for others in ([], [A100S[1]]):
        assessment = judged(job, pools([behind, *others, *A10GS], job))
        assert assessment.decision.action is Action.START
        assert assessment.decision.target is not None and assessment.decision.target.pool == "a100"
    stranger = fresh(made=asking({"nodeSelector": {"team": "vision"}}, chips=8))
    assessment = judged(stranger, pools([behind, A100S[1], *A10GS], stranger))
    assert reason(assessment, "a100") is RejectionReason.NODE_TAINTED
    assert "nodes of a100 have the taint dedicated=vision:NoSchedule: tolerate it" in verdict_text(
        find(assessment, "a100")
    )


def test_nodes_behind_a_taint_are_no_room_for_who_does_not_tolerate_it() -> None:
    behind = node("a100-0", "a100", 8, LARGE, DEDICATED)
    job = fresh(made=asking({}, chips=8, resources={"requests": {"cpu": "1"}}))
    made = pools([behind, node("a100-1", "a100", 4, LARGE)], job)
    assert made["a100"].free == 4
    assert Room(made).fits(job, [Placement("a100", 4, 1), Placement("a100", 8, 1)]) == (True, False)


def test_equal_nodes_are_one_shape_and_what_no_job_asks_for_is_not_kept() -> None:
    job = fresh(made=asking({}, resources={"requests": {"memory": "100Gi"}}))
    alike = [
        node(f"n{n}", "a100", 8, {"cpu": str(90 + n), "memory": f"{2_000 * 2**20 - n * 100}Ki"}) for n in range(50)
    ]
    (shape,) = pools(alike, job)["a100"].shapes
    assert [name for name, _ in shape.offers] == ["memory"]


def test_requests_are_counted_as_the_scheduler_does() -> None:
    def container(cpu: str, **more: Any) -> Body:
        return {"name": "c", "resources": {"requests": {"cpu": cpu}, "limits": {"cpu": "99", "memory": "1Gi"}}, **more}

    pod = {
        "containers": [container("2"), container("500m")],
        "initContainers": [container("1", restartPolicy="Always"), container("3")],
        "overhead": {"cpu": "250m"},
    }
    assert NodeNeeds.of({"spec": pod}).requests == (("cpu", 4250), ("memory", 3 * 2**30))
    assert NodeNeeds.of({"spec": {**pod, "initContainers": []}}).requests[0] == ("cpu", 2750)


@pytest.mark.parametrize(
    ("ask", "holds"),
    [
        ({"operator": "In", "values": ["a", "5"]}, True),
        ({"operator": "NotIn", "values": ["5"]}, False),
        ({"operator": "Exists"}, True),
        ({"operator": "DoesNotExist"}, False),
        ({"operator": "Gt", "values": ["4"]}, True),
        ({"operator": "Lt", "values": ["5"]}, False),
        ({"operator": "Gt", "values": ["x"]}, False),
    ],
)
def test_expressions_hold_as_the_scheduler_reads_them(ask: Body, holds: bool) -> None:
    needs = NodeNeeds.of({"spec": required({"key": "k", **ask})})
    assert needs.drawn(frozenset({("k", "5")})) is holds


@pytest.mark.parametrize("pod", [{"containers": "x"}, {"affinity": []}, {"nodeSelector": 5}, {"tolerations": {"a": 1}}])
def test_what_cannot_be_read_asks_for_nothing(pod: Body) -> None:
    assert NodeNeeds.of({"spec": pod}) == NodeNeeds()


def test_a_pool_whose_nodes_are_not_known_is_not_ruled_out() -> None:
    job = fresh(made=asking({}, resources={"requests": {"cpu": "640"}}))
    known = pools([*A100S, *A10GS], job)
    blind = {name: replace(pool, shapes={}, open_nodes=()) for name, pool in known.items()}
    assert judged(job, known).decision.action is Action.HOLD
    assert judged(job, blind).decision.action is Action.START
