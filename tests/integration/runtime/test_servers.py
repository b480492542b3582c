"""A server's way through a running operator: its Deployment, its Service, and endpoints that are never fewer."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from rightpool.api.kubernetes import Resource
from rightpool.cluster.errors import ClusterError, NotFound
from rightpool.cluster.resources import CONFIG_MAPS, PROFILED_JOBS, SERVICES
from rightpool.planning.jobs.job import JobKey
from rightpool.profiles.demand import DAY, SLOT, Demanded, DemandRecord
from rightpool.profiles.served import RequestCounter, ServedWindow, ServerCounts
from rightpool.reporting.demand_object import demand_object
from rightpool.workloads.kinds.server import DEPLOYMENTS
from tests.integration.runtime.conftest import CRDS, Start
from tests.integration.runtime.harness import Body, Fleet
from tests.patience import PATIENCE, eventually

pytestmark = pytest.mark.cluster

SLICES = Resource("discovery.k8s.io", "v1", "EndpointSlice", "endpointslices")
NAME, CHIPS = "ranker", 2


def create(fleet: Fleet, name: str = NAME, spec: Body | None = None, **server: Any) -> Body:
    probe = {"httpGet": {"path": "/ready", "port": 8000}}
    container = {"name": "server", "image": "example.com/server:1", "readinessProbe": probe}
    workload = {
        "chipsPerReplica": CHIPS,
        "replicas": {"min": 2},
        "port": 8000,
        "metrics": {"port": 8002},
        "template": {"spec": {"containers": [container]}},
        **server,
    }
    body = {
        "metadata": {"name": name, "namespace": fleet.namespace},
        "spec": {"workload": {"server": workload}, "placement": {"pools": {"allow": ["a10g"]}}, **(spec or {})},
    }
    return fleet.client.create(PROFILED_JOBS, body)


def deployment(fleet: Fleet, name: str) -> Body | None:
    try:
        return fleet.client.get(DEPLOYMENTS, name, fleet.namespace)
    except NotFound:
        return None


def endpoints(fleet: Fleet, service: str = NAME) -> set[str]:
    """Names of the pods that requests are sent to."""
    slices = fleet.client.list_all(SLICES, fleet.namespace, labels=f"kubernetes.io/service-name={service}")
    ready = [one for each in slices for one in each["endpoints"] or () if one["conditions"].get("ready")]
    return {one["targetRef"]["name"] for one in ready}


def answered_by(fleet: Fleet, revision: str, pods: int) -> bool:
    """Whether so many pods of this Revision are sent requests, and no others."""
    names = endpoints(fleet)
    return len(names) == pods and all(name.startswith(f"{NAME}-{revision}-") for name in names)


class EndpointWatch:
    """Looks all the time how few endpoints are ready."""

    def __init__(self, fleet: Fleet) -> None:
        self.fewest, self.looks = len(endpoints(fleet)), 0
        self._fleet, self._stop = fleet, threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._stop.wait(0.05):
            try:
                self.fewest = min(self.fewest, len(endpoints(self._fleet)))
            except ClusterError:
                continue
            self.looks += 1

    def stop(self) -> int:
        eventually(lambda: self.looks > 0)
        self._stop.set()
        self._thread.join(PATIENCE)
        return self.fewest


@pytest.fixture
def served(start: Start, fleet: Fleet) -> Iterator[EndpointWatch]:
    """A server of two replicas that answers, and how few did at any time."""
    start()
    create(fleet)
    eventually(lambda: answered_by(fleet, "r1", 2), "both replicas answer")
    watch = EndpointWatch(fleet)
    yield watch
    watch.stop()


def image(spec: Body, tag: str) -> None:
    spec["workload"]["server"]["template"]["spec"]["containers"][0]["image"] = f"example.com/server:{tag}"


def test_a_server_is_placed_and_answers(served: EndpointWatch, fleet: Fleet) -> None:
    eventually(lambda: fleet.condition(NAME, "Placed").get("status") == "True")
    status = fleet.status(NAME)
    assert (status["placement"]["pool"], status["placement"]["chips"], status["placement"]["replicas"]) == (
        "a10g",
        4,
        2,
    )
    made = deployment(fleet, f"{NAME}-r1")
    assert made is not None
    assert made["spec"]["strategy"]["rollingUpdate"] == {"maxSurge": "100%", "maxUnavailable": 0}
    pods = made["spec"]["template"]["spec"]
    [container] = pods["containers"]
    assert container["resources"]["limits"] == {"nvidia.com/gpu": str(CHIPS)}
    assert container["lifecycle"]["preStop"] == {"sleep": {"seconds": 15}}
    assert pods["terminationGracePeriodSeconds"] == 75
    service = fleet.client.get(SERVICES, NAME, fleet.namespace)
    assert service["spec"]["clusterIP"] not in ("", "None")
    assert [port["port"] for port in service["spec"]["ports"]] == [8000]
    eventually(lambda: fleet.condition(NAME, "Migrating").get("reason") == "ServerStays")
    # Nothing listens at the addresses of simulated pods.
    eventually(lambda: fleet.condition(NAME, "Profiled").get("message", "").startswith("no replica answers with its"))
    assert "server" not in fleet.status(NAME)


def test_an_edit_takes_no_endpoint_away(served: EndpointWatch, fleet: Fleet) -> None:
    fleet.edit(NAME, lambda spec: image(spec, "2"))
    eventually(lambda: answered_by(fleet, "r2", 2), "the new ones answer")
    eventually(lambda: deployment(fleet, f"{NAME}-r1") is None)
    assert served.stop() == 2
    entry = fleet.status(NAME)["history"][-1]
    assert (entry["action"], entry["outcome"]) == ("Update", "CarriedOut")


def test_an_edit_that_does_not_start_harms_nothing_and_is_taken_back(served: EndpointWatch, fleet: Fleet) -> None:
    def broken(spec: Body) -> None:
        image(spec, "3")
        spec["workload"]["server"]["template"]["spec"]["nodeSelector"] = {"no-such": "node"}

    fleet.edit(NAME, broken)
    eventually(lambda: fleet.condition(NAME, "Migrating").get("status") or deployment(fleet, f"{NAME}-r2"))

    def back(spec: Body) -> None:
        image(spec, "1")
        spec["workload"]["server"]["template"]["spec"].pop("nodeSelector")

    fleet.edit(NAME, back)
    eventually(lambda: deployment(fleet, f"{NAME}-r2") is None and "migration" not in fleet.status(NAME))
    assert answered_by(fleet, "r1", 2)
    assert served.stop() == 2


def test_its_bounds_scale_it_where_it_is(served: EndpointWatch, fleet: Fleet) -> None:
    fleet.edit(NAME, lambda spec: spec["workload"]["server"].update(replicas={"min": 3}))
    eventually(lambda: answered_by(fleet, "r1", 3), "a third one answers")
    assert served.stop() == 2
    placement = fleet.status(NAME)["placement"]
    assert (placement["revision"], placement["replicas"], placement["chips"]) == (1, 3, 6)
    assert not fleet.status(NAME).get("history")


def scale(fleet: Fleet, revision: str, pods: int) -> None:
    change: Body = {"op": "replace", "path": "/spec/replicas", "value": pods}
    fleet.client.patch(DEPLOYMENTS, f"{NAME}-{revision}", fleet.namespace, [change])


def test_somebody_else_scales_its_deployment(start: Start, fleet: Fleet) -> None:
    """And the operator writes no number any more, also not that of the next Revision."""
    start()
    create(fleet, autoscaler="External", chipsPerReplica=1)
    eventually(lambda: answered_by(fleet, "r1", 2), "it begins with replicas.min")
    scale(fleet, "r1", 4)
    eventually(lambda: fleet.status(NAME)["placement"]["replicas"] == 4 and answered_by(fleet, "r1", 4))
    fleet.edit(NAME, lambda spec: spec["workload"]["server"].update(replicas={"min": 3}))
    eventually(lambda: "; 4 replicas, as somebody else" in fleet.condition(NAME, "Placed").get("message", ""))
    fleet.edit(NAME, lambda spec: image(spec, "2"))
    eventually(lambda: answered_by(fleet, "r2", 4), "an edit comes up with as many")
    scale(fleet, "r2", 1)
    eventually(lambda: fleet.status(NAME)["placement"]["replicas"] == 1 and answered_by(fleet, "r2", 1))


METRICS = Resource("external.metrics.k8s.io", "v1beta1", "ExternalMetricValue", "requests")
AUTOSCALERS = Resource("autoscaling", "v2", "HorizontalPodAutoscaler", "horizontalpodautoscalers")


@pytest.fixture
def requests_a_second(fleet: Fleet) -> Iterator[Callable[[int], None]]:
    """Sets what the cluster's API of external metrics says: objects of that group are answered in its own form."""
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": METRICS.version, "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    names = {"plural": METRICS.plural, "kind": METRICS.kind, "listKind": f"{METRICS.kind}List"}
    name = f"{METRICS.plural}.{METRICS.group}"
    spec = {"group": METRICS.group, "scope": "Namespaced", "names": names, "versions": [version]}
    about = {"name": name, "annotations": {"api-approved.kubernetes.io": "unapproved, of a test"}}
    fleet.client.apply(CRDS, {"metadata": about, "spec": spec})
    eventually(lambda: "Established" in str(fleet.client.get(CRDS, name).get("status")))

    def say(value: int) -> None:
        about = {"name": "now", "namespace": fleet.namespace}
        at = "2026-01-01T00:00:00Z"
        fleet.client.apply(METRICS, {"metadata": about, "metricName": "requests", "value": str(value), "timestamp": at})

    yield say
    fleet.client.delete(CRDS, name)


def test_an_autoscaler_of_kubernetes_scales_it(
    served: EndpointWatch, fleet: Fleet, requests_a_second: Callable[[int], None]
) -> None:
    requests_a_second(350)
    target = {"apiVersion": PROFILED_JOBS.api_version, "kind": PROFILED_JOBS.kind, "name": NAME}
    metric = {"metric": {"name": "requests"}, "target": {"type": "AverageValue", "averageValue": "100"}}
    spec = {"minReplicas": 2, "maxReplicas": 3, "metrics": [{"type": "External", "external": metric}]}
    spec |= {"scaleTargetRef": target, "behavior": {"scaleDown": {"stabilizationWindowSeconds": 0}}}
    fleet.client.create(AUTOSCALERS, {"metadata": {"name": NAME, "namespace": fleet.namespace}, "spec": spec})
    eventually(lambda: answered_by(fleet, "r1", 3), "as many answer as it asks for, at most")
    requests_a_second(120)
    eventually(lambda: answered_by(fleet, "r1", 2), "and fewer again")
    assert served.stop() == 2
    placement = fleet.status(NAME)["placement"]
    assert (placement["revision"], placement["replicas"]) == (1, 2)
    assert not fleet.status(NAME).get("history")


def week_of(rate: float, place: str) -> DemandRecord:
    """A record that ends now, and batches of up to eight that take 10 ms and 1 ms for each request."""
    record, last = DemandRecord(), round(time.time() / SLOT)
    record.fill(Demanded.REQUESTS, dict.fromkeys(range(last - 7 * DAY, last), rate * SLOT))
    for load in (1.0, 2.0, 4.0, 8.0) * 20:
        batches = 2000.0 / load
        counted = {
            RequestCounter.REQUESTS: 2000.0,
            RequestCounter.BATCHED: 2000.0,
            RequestCounter.BATCHES: batches,
            RequestCounter.TIMED_BATCHES: batches,
            RequestCounter.BATCH_SECONDS: batches * (0.010 + 0.001 * load),
        }
        window = ServedWindow(last * SLOT, SLOT, ServerCounts(counted, {}, {}), 1, True)
        record.loads.extend(window, place, "of before")
    return record


def test_a_target_gets_replicas_by_the_recorded_week(start: Start, fleet: Fleet) -> None:
    record = week_of(1200.0, f"a10g/{CHIPS}")
    fleet.client.create(CONFIG_MAPS, demand_object(fleet.namespace, JobKey(fleet.namespace, NAME), record, None))
    create(fleet, spec={"targets": {"latency": {"p99": "80ms"}}}, replicas={"min": 2, "max": 8})
    start()
    needed = eventually(lambda: fleet.status(NAME).get("server", {}).get("needed"), "its record is looked at")
    # A replica can't take more than full batches, 12 in 22 ms, and takes half of that at the least.
    assert 3 <= needed <= 6
    eventually(lambda: answered_by(fleet, "r1", needed), "as many answer as the week takes")
    made, status = deployment(fleet, f"{NAME}-r1"), fleet.status(NAME)
    assert made is not None
    assert made["spec"]["replicas"] == status["placement"]["replicas"] == needed
    server = status["server"]
    assert (server["peak"], set(server["week"])) == ("1200", {"█"})
    assert server["recordedHours"] in ("167", "168"), "of 15 seconds those that are not over are not known"
    assert 200.0 < float(server["servableAtLeast"]) < 12 / 0.022
    assert not status.get("history"), "it is scaled where it is"
    fleet.edit(NAME, lambda spec: spec["workload"]["server"].update(replicas={"min": 2, "max": 2}))
    eventually(lambda: answered_by(fleet, "r1", 2), "no more than its user allows")
    below = eventually(lambda: of_reason(fleet, "TargetsMet", "CapacityBelowDemand"))
    assert f"take {needed} replicas, and 2 are allowed: raise replicas.max" in below


def of_reason(fleet: Fleet, kind: str, reason: str) -> str:
    """The message of a condition where it has this reason."""
    condition = fleet.condition(NAME, kind)
    return str(condition["message"]) if condition.get("reason") == reason else ""


def test_it_stops_and_goes_on(served: EndpointWatch, fleet: Fleet) -> None:
    fleet.edit(NAME, lambda spec: spec.update(suspend=True))
    eventually(lambda: not endpoints(fleet) and not fleet.revisions_alive(NAME))
    eventually(lambda: fleet.condition(NAME, "Placed").get("reason") == "Suspended")
    assert fleet.client.get(SERVICES, NAME, fleet.namespace), "clients go on finding it"
    fleet.edit(NAME, lambda spec: spec.update(suspend=False))
    eventually(lambda: answered_by(fleet, "r1", 2))


def test_an_operator_that_dies_in_an_edit_leaves_both_answering(start: Start, fleet: Fleet) -> None:
    operator = start()
    create(fleet)
    eventually(lambda: answered_by(fleet, "r1", 2))
    watch = EndpointWatch(fleet)
    fleet.edit(NAME, lambda spec: image(spec, "2"))
    eventually(lambda: deployment(fleet, f"{NAME}-r2") is not None)
    operator.kill()
    assert deployment(fleet, f"{NAME}-r1") is not None or answered_by(fleet, "r2", 2)
    start("b")
    eventually(lambda: answered_by(fleet, "r2", 2) and deployment(fleet, f"{NAME}-r1") is None)
    assert watch.stop() == 2


def test_its_service_comes_back(served: EndpointWatch, fleet: Fleet) -> None:
    served.stop()
    before = fleet.client.get(SERVICES, NAME, fleet.namespace)["metadata"]["uid"]
    fleet.client.delete(SERVICES, NAME, fleet.namespace)

    def back() -> bool:
        try:
            return bool(fleet.client.get(SERVICES, NAME, fleet.namespace)["metadata"]["uid"] != before)
        except NotFound:
            return False

    eventually(back)
    eventually(lambda: answered_by(fleet, "r1", 2))


def test_two_servers_do_not_share_a_service(served: EndpointWatch, fleet: Fleet) -> None:
    create(fleet, "other", traffic={"service": NAME})
    eventually(lambda: fleet.condition("other", "Placed").get("reason") == "NameTaken")
    assert f"Service {NAME} is that of ProfiledJob {NAME}" in fleet.condition("other", "Placed")["message"]
    assert not fleet.pods("other")
    assert answered_by(fleet, "r1", 2)


def test_deleting_it_deletes_all_of_it(served: EndpointWatch, fleet: Fleet) -> None:
    served.stop()
    fleet.client.delete(PROFILED_JOBS, NAME, fleet.namespace, propagation="Background")

    def gone() -> bool:
        try:
            fleet.client.get(SERVICES, NAME, fleet.namespace)
        except NotFound:
            return deployment(fleet, f"{NAME}-r1") is None and not fleet.pods(NAME)
        return False

    eventually(gone)


def test_a_service_of_somebody_else_is_not_taken(start: Start, fleet: Fleet) -> None:
    spec = {"selector": {"app": "other"}, "ports": [{"port": 80}]}
    fleet.client.create(SERVICES, {"metadata": {"name": "front", "namespace": fleet.namespace}, "spec": spec})
    start()
    create(fleet, traffic={"service": "front"})
    eventually(lambda: fleet.condition(NAME, "Placed").get("reason") == "NameTaken")
    assert "Service front exists and is not this ProfiledJob's" in fleet.condition(NAME, "Placed")["message"]
    assert fleet.client.get(SERVICES, "front", fleet.namespace)["spec"]["selector"] == {"app": "other"}
    assert not fleet.pods(NAME), "nothing answers that nobody can reach"
