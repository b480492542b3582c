"""Simulated nodes look like those of the platforms they stand for, and Prometheus finds pods as it does elsewhere."""

import json
from pathlib import Path
from typing import Any

import yaml

from devcluster import discovery, monitoring, simulated
from devcluster.spec import DEMO


def test_default_pools() -> None:
    assert simulated.default_counts(DEMO) == {"a100": 4, "a10g": 8, "tpu-v5e": 4}


def test_chips_and_taints() -> None:
    chips = {name: (pool.resource, pool.chips) for name, pool in simulated.POOLS.items()}
    assert chips == {"a100": ("nvidia.com/gpu", 8), "a10g": ("nvidia.com/gpu", 4), "tpu-v5e": ("google.com/tpu", 8)}
    for pool in simulated.POOLS.values():
        node = pool.node(3)
        assert node["metadata"]["name"] == f"{pool.name}-3"
        assert node["metadata"]["annotations"] == {"kwok.x-k8s.io/node": "fake"}
        assert node["status"]["allocatable"][pool.resource] == str(pool.chips)
        (taint,) = node["spec"]["taints"]
        assert taint == {"key": pool.resource, "value": "present", "effect": "NoSchedule"}


def test_the_stages_are_valid_and_named_once() -> None:
    stages = list(yaml.safe_load_all(simulated.STAGES.read_text()))
    names = [stage["metadata"]["name"] for stage in stages]
    assert len(set(names)) == len(names)
    assert "rightpool.dev/simulated" not in simulated.STAGES.read_text()


def pod(**status: Any) -> dict[str, Any]:
    return {
        "metadata": {
            "namespace": "team",
            "name": "train-0",
            "uid": "u1",
            "labels": {"rightpool.dev/profiledjob": "train", "rightpool.dev/revision": "2"},
        },
        "spec": {
            "nodeName": "a100-0",
            "initContainers": [{"name": "profiler", "ports": [{"name": "rightpool", "containerPort": 9464}]}],
            "containers": [{"name": "main"}],
        },
        "status": status,
    }


def test_a_native_sidecar_is_a_target() -> None:
    (target,) = discovery.targets(pod(podIP="10.99.0.7", phase="Running"))
    assert target["targets"] == ["10.99.0.7:9464"]
    labels = target["labels"]
    assert labels["__meta_kubernetes_pod_container_init"] == "true"
    assert labels["__meta_kubernetes_pod_container_port_name"] == "rightpool"
    assert labels["__meta_kubernetes_pod_labelpresent_rightpool_dev_profiledjob"] == "true"
    assert labels["__meta_kubernetes_pod_label_rightpool_dev_revision"] == "2"


def test_a_pod_without_an_address_is_none() -> None:
    assert discovery.targets(pod(phase="Pending")) == []


def test_every_label_that_the_rules_read_is_given() -> None:
    given = set(discovery.targets(pod(podIP="10.99.0.7", phase="Running"))[0]["labels"])
    rules = monitoring.configuration(Path("targets.json"))["scrape_configs"][0]["relabel_configs"]
    assert {label for rule in rules for label in rule["source_labels"]} <= given


def test_the_targets_file_follows_changes(tmp_path: Path) -> None:
    path = tmp_path / "targets.json"
    file = discovery.TargetsFile(path)
    file.replace([pod(phase="Pending")])
    file.write()
    assert json.loads(path.read_text()) == []
    file.change(pod(podIP="10.99.0.7", phase="Running"), True)
    file.write()
    assert len(json.loads(path.read_text())) == 1
    written = path.stat().st_mtime_ns
    file.write()
    assert path.stat().st_mtime_ns == written
    file.change(pod(podIP="10.99.0.7", phase="Running"), False)
    file.write()
    assert json.loads(path.read_text()) == []
