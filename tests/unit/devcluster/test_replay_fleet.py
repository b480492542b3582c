"""The fleet: which pod has which address, and which faults."""

import logging

import pytest

from devcluster.replay.faults import BadFault, Faults, from_mapping, parse
from devcluster.replay.pod import parse_node, parse_pod
from tests.unit.devcluster.replay_world import NOW, World, node_object, pod, pod_object


def test_an_address_is_its_running_pods() -> None:
    world = World(pod(0, world=2), pod(1, world=2))
    found = world.fleet.find("127.9.0.2")
    assert found is not None and found[0].name == "job-1"
    assert world.fleet.find("127.9.0.9") is None


@pytest.mark.parametrize("change", [{"started": None}, {"phase": "Succeeded"}, {"phase": "Failed"}])
def test_a_pod_that_does_not_run_answers_nothing(change: dict[str, str | None]) -> None:
    world = World(pod(0, **change))
    assert world.fleet.find("127.9.0.1") is None


def test_an_address_passes_on_to_the_next_pod() -> None:
    first, second = pod(0), pod(0, job="other")
    world = World(first)
    world.fleet.change_pods([(second, True), (first, False)], NOW + 1)
    found = world.fleet.find("127.9.0.1")
    assert found is not None and found[0].name == "other-0"


def test_a_new_list_removes_deleted_objects() -> None:
    world = World(pod(0), pod(1, job="other"))
    world.fleet.replace_pods([pod(1, job="other")], NOW + 1)
    assert world.fleet.find("127.9.0.1") is None
    assert world.fleet.find("127.9.0.2") is not None


def test_pods_may_be_seen_before_their_node() -> None:
    world = World()
    world.fleet.replace_nodes([], NOW)
    world.fleet.replace_pods([pod(0)], NOW)
    found = world.fleet.find("127.9.0.1")
    assert found is not None and found[1].problem is not None
    world.fleet.change_node(parse_node(node_object()), True, NOW + 1)
    assert found[1].problem is None
    assert found[1].odometer(NOW + 10).steps > 0


@pytest.mark.parametrize("pool", ["cheap", "a10g", "all"])
def test_a_pools_fault_holds_by_either_name(pool: str) -> None:
    world = World(pod(0))
    world.fleet.set_faults({pool: '{"throughput": 0.5, "throttle": 0.3}'}, NOW)
    assert world.fleet.faults_of(pod(0)) == Faults(throughput=0.5, throttle=0.3)
    world.fleet.set_faults({}, NOW + 1)
    assert world.fleet.faults_of(pod(0)) == Faults()


def test_another_pools_fault_is_not_ours() -> None:
    world = World(pod(0))
    world.fleet.set_faults({"a100": "silent: true"}, NOW)
    assert world.fleet.faults_of(pod(0)) == Faults()


def test_a_pods_own_fault_comes_on_top() -> None:
    slow = pod(0, throughput="0.5")
    world = World(slow)
    world.fleet.set_faults({"cheap": "throughput: 0.5"}, NOW)
    assert world.fleet.faults_of(slow).throughput == 0.25


def test_a_lost_pod_is_reported_once_and_immediately() -> None:
    world = World(pod(0, world=2), pod(1, world=2))
    world.fleet.set_faults({"cheap": "lose: team/job-1"}, NOW + 10)
    assert world.lost == ["job-1"]
    assert world.fleet.find("127.9.0.2") is None
    survivor = world.fleet.find("127.9.0.1")
    assert survivor is not None
    assert survivor[1].odometer(NOW + 20) == survivor[1].odometer(NOW + 10)
    world.fleet.set_faults({"cheap": "{lose: team/job-1, throttle: 0.1}"}, NOW + 30)
    assert world.lost == ["job-1"]
    world.fleet.change_pods(
        [(pod(1, world=2, phase="Failed"), True), (pod(2, world=2, started=NOW + 40), True)], NOW + 40
    )
    assert survivor[1].odometer(NOW + 50).steps > survivor[1].odometer(NOW + 40).steps - 1
    assert world.lost == ["job-1"]


def test_a_pods_annotation_marks_it_as_lost() -> None:
    assert World(pod(0, lose="true")).lost == ["job-0"]
    assert World(pod(0, lose="false")).lost == []


def test_a_problem_is_reported_once(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.ERROR):
        world = World(pod(0, workload="other"))
        world.fleet.change_pods([(pod(0, workload="other", world=1, mode="None"), True)], NOW + 1)
    assert [record.getMessage() for record in caplog.records] == [
        "team/job revision 1 exports nothing: no row for other on A10G-24GB; there are: toy on A10G-24GB"
    ]


def test_a_bad_fault_is_reported_and_the_others_hold(caplog: pytest.LogCaptureFixture) -> None:
    world = World(pod(0))
    world.fleet.set_faults({"cheap": "throughput: 0.5", "a100": '{"speed": 2}'}, NOW)
    assert "fault of pool a100 ignored: speed: not a fault" in caplog.text
    assert world.fleet.faults_of(pod(0)).throughput == 0.5


@pytest.mark.parametrize(
    "value",
    [
        {"throughput": 0},
        {"throughput": "half"},
        {"throughput": True},
        {"link": -1},
        {"throttle": 1.5},
        {"silent": "yes please"},
        {"lose": 3},
        {"lose": [1]},
    ],
)
def test_faults_that_make_no_sense_are_refused(value: dict[str, object]) -> None:
    with pytest.raises(BadFault, match=next(iter(value))):
        from_mapping(value)


@pytest.mark.parametrize("text", ["[1]", "{", "a: [", "slow"])
def test_a_value_that_is_no_mapping_is_refused(text: str) -> None:
    with pytest.raises(BadFault):
        parse(text)


def test_no_annotation_is_no_fault() -> None:
    assert parse("") == parse("{}") == Faults()


@pytest.mark.parametrize(
    ("labels", "accelerator"),
    [
        ({"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-80GB"}, "A100-SXM4-80GB"),
        ({"karpenter.k8s.aws/instance-gpu-name": "a10g"}, "A10G-24GB"),
        ({"cloud.google.com/gke-tpu-accelerator": "tpu-v5-lite-podslice"}, "TPU-v5e"),
        ({"simulation.rightpool.dev/accelerator": "H100"}, "H100"),
        ({}, None),
    ],
)
def test_the_chip_of_a_node_follows_from_its_labels(labels: dict[str, str], accelerator: str | None) -> None:
    assert parse_node({"metadata": {"name": "n", "labels": labels}}).accelerator == accelerator


def test_a_pod_without_a_job_is_ignored() -> None:
    unlabelled = pod_object(0)
    del unlabelled["metadata"]["labels"]["rightpool.dev/profiledjob"]
    assert parse_pod(unlabelled) is None
    assert pod(0).chips == 4
