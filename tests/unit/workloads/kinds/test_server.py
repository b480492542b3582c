"""ServerKind: what a Deployment and its Service have so that no request is lost."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from rightpool.api.server import ServerWorkload
from rightpool.contract import LABEL_JOB, LABEL_REVISION, LABEL_SERVING, SIDECAR_CONTAINER
from rightpool.workloads.kinds.server import SERVER
from rightpool.workloads.names import workload_hash
from rightpool.workloads.template import InvalidTemplate
from rightpool_profiler.warm_up import WarmUpSettings
from tests.unit.workloads.samples import GPU_POOL, INJECTION, OWNER, env_of, ref

Body = dict[str, Any]
PROBE = {"readinessProbe": {"tcpSocket": {"port": 8000}}}


WARM_UP = {"path": "/infer", "bodyFrom": {"configMapKeyRef": {"name": "bodies", "key": "one.bin"}}}


def work(container: Body | None = None, pod: Body | None = None, **server: Any) -> ServerWorkload:
    main = {"name": "server", "image": "mine:1", **PROBE, **(container or {})}
    template = {"spec": {"containers": [main], **(pod or {})}}
    return ServerWorkload.model_validate({"port": 8000, "template": template, **server})


def built(workload: ServerWorkload) -> Body:
    """The Deployment; what the user wrote stays."""
    before = copy.deepcopy(workload)
    child = SERVER.build(OWNER, workload, None, ref(4, 2), GPU_POOL, INJECTION)
    assert workload == before
    return child


def pods(workload: ServerWorkload) -> Body:
    found: Body = built(workload)["spec"]["template"]["spec"]
    return found


def test_a_rollout_by_anybody_takes_no_pod_away_first() -> None:
    spec = built(work())["spec"]
    assert spec["replicas"] == 2
    assert spec["strategy"]["rollingUpdate"] == {"maxSurge": "100%", "maxUnavailable": 0}
    labels = spec["template"]["metadata"]["labels"]
    assert spec["selector"]["matchLabels"].items() <= labels.items()


def test_pods_are_placed_and_profiled_and_look_for_no_peers() -> None:
    spec = pods(work())
    [container] = spec["containers"]
    assert spec["nodeSelector"] == GPU_POOL.node_selector
    assert container["resources"]["limits"] == {"nvidia.com/gpu": "2"}
    assert spec["initContainers"][0]["name"] == SIDECAR_CONTAINER
    assert "subdomain" not in spec and "MASTER_ADDR" not in env_of(container)


def test_a_pod_answers_on_while_proxies_learn_that_it_ends() -> None:
    spec = pods(work(drain={"quiet": "20s", "timeout": "90s"}))
    assert spec["containers"][0]["lifecycle"]["preStop"] == {"sleep": {"seconds": 20}}
    assert spec["terminationGracePeriodSeconds"] == 110


def test_how_the_user_ends_it_stays() -> None:
    hook = {"lifecycle": {"preStop": {"httpGet": {"path": "/drain", "port": 8000}}}}
    spec = pods(work(hook, {"terminationGracePeriodSeconds": 600}))
    assert spec["containers"][0]["lifecycle"] == hook["lifecycle"]
    assert spec["terminationGracePeriodSeconds"] == 600
    assert "lifecycle" not in pods(work(drain={"quiet": "0s"}))["containers"][0]


def test_the_page_of_its_metrics_is_found_by_the_name_of_the_port() -> None:
    [container] = pods(work(metrics={"port": 8002}))["containers"]
    assert container["ports"] == [{"name": "metrics", "containerPort": 8002}]
    own = {"ports": [{"name": "metrics", "containerPort": 9000}]}
    assert pods(work(own, metrics={"port": 9000}))["containers"][0]["ports"] == own["ports"]
    assert "ports" not in pods(work())["containers"][0]
    with pytest.raises(InvalidTemplate, match="its port metrics must be 8002"):
        pods(work(own, metrics={"port": 8002}))


def test_a_pod_is_ready_once_its_profiler_has_warmed_it_up() -> None:
    spec = pods(work(warmUp=WARM_UP))
    sidecar = spec["initContainers"][0]
    assert sidecar["name"] == SIDECAR_CONTAINER and sidecar["restartPolicy"] == "Always"
    assert sidecar["readinessProbe"]["exec"]["command"] == ["test", "-e", "/tmp/rightpool-traces/warm"]
    settings = WarmUpSettings.read(env_of(sidecar)["RIGHTPOOL_WARM_UP"])
    body = "/tmp/rightpool-warm-up/body"
    assert settings == WarmUpSettings(8000, "POST", "/infer", "application/json", 200, body)
    [volume] = [one for one in spec["volumes"] if one["name"] == "rightpool-warm-up"]
    assert volume["configMap"] == {"name": "bodies", "items": [{"key": "one.bin", "path": "body"}], "optional": True}
    assert {"name": "rightpool-warm-up", "mountPath": "/tmp/rightpool-warm-up", "readOnly": True} in sidecar[
        "volumeMounts"
    ]
    assert not any(one["name"] == "rightpool-warm-up" for one in spec["containers"][0]["volumeMounts"])
    alone = pods(work(warmUp={"path": "/", "method": "GET"}))
    assert WarmUpSettings.read(env_of(alone["initContainers"][0])["RIGHTPOOL_WARM_UP"]).body is None
    assert "readinessProbe" not in pods(work())["initContainers"][0], "what warms itself up"


def test_a_pod_without_the_profiler_is_not_warmed_up() -> None:
    with pytest.raises(InvalidTemplate, match="left out of pods with hostNetwork"):
        built(work(pod={"hostNetwork": True}, warmUp=WARM_UP))
    with pytest.raises(InvalidTemplate, match="the volume name rightpool-warm-up is the profiler's"):
        built(work(pod={"volumes": [{"name": "rightpool-warm-up", "emptyDir": {}}]}, warmUp=WARM_UP))


def test_requests_go_to_pods_of_one_revision_or_of_all() -> None:
    labels = built(work())["spec"]["template"]["metadata"]["labels"]
    number = labels[LABEL_REVISION]
    front, shared = (SERVER.fronts(OWNER, work(), answer, None)[0] for answer in ([int(number)], [4, 5]))
    assert front["spec"]["selector"] == {LABEL_JOB: OWNER.name, LABEL_SERVING: "true", LABEL_REVISION: number}
    assert front["spec"]["selector"].items() <= labels.items()
    assert shared["spec"]["selector"] == {LABEL_JOB: OWNER.name, LABEL_SERVING: "true"}
    assert [(port["port"], port["targetPort"]) for port in front["spec"]["ports"]] == [(8000, 8000)]
    assert front["metadata"]["name"] == OWNER.name
    assert front["metadata"]["ownerReferences"] == [OWNER.reference]
    assert SERVER.fronts(OWNER, work(traffic={"service": "ranker"}), [3], None)[0]["metadata"]["name"] == "ranker"


@pytest.mark.parametrize(
    ("edit", "another"),
    [
        ({"drain": {"quiet": "16s"}}, True),
        ({"metrics": {"port": 8002}}, True),
        ({"container": {"image": "mine:2"}}, True),
        ({"replicas": {"min": 5}}, False),
        ({"warmUp": WARM_UP}, True),
        ({"drain": {"quiet": "15s", "timeout": "60s"}}, False),
    ],
)
def test_what_its_pods_are_made_of_is_a_revision_and_their_number_is_not(edit: Body, another: bool) -> None:
    one, two = (workload_hash(SERVER.pod_sets(work(**changes))) for changes in ({}, edit))
    assert (one != two) is another


def test_it_is_scaled_by_its_spec_alone() -> None:
    child = built(work())
    placement = ref(6, 3).placement
    assert SERVER.observe(child).pods == 2 and not SERVER.observe(child).suspended
    assert SERVER.suspension(False, placement, 1) == {"spec": {"replicas": 3}}
    assert SERVER.suspension(True, placement, 1) == {"spec": {"replicas": 0}}
