"""Objects that their users have made move where they are, and their users' word goes before the operator's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from rightpool.api.placement import Placement
from rightpool.cluster.client import MERGE_CONTENT
from rightpool.cluster.errors import Forbidden, NotFound
from rightpool.cluster.resources import PODS, PROFILED_JOBS
from rightpool.contract import ANNOTATION_RELEASE, LABEL_ADOPT, LABEL_REVISION
from rightpool.workloads.in_place import is_held, original_of
from rightpool.workloads.kinds.registry import KINDS, adoptable
from rightpool.workloads.kinds.train_job import RUNTIMES
from rightpool.workloads.names import ANNOTATION_HELD
from tests.integration.faults.fleet import A10G, A100, DEAD, NODE_LABEL, SIMULATION, Body, Tenant
from tests.integration.faults.site import CrashingOperator, Site
from tests.integration.kinds.conftest import INSTALLED
from tests.integration.kinds.test_job_set import TOLERATION
from tests.patience import eventually

pytestmark = pytest.mark.cluster

STEP = "trainer.kubeflow.org/trainjob-ancestor-step"
FIELDS = tuple(kind.field for kind in adoptable())


def template(stop: str, restart: str = "Never", chips: int = 1, **container: Any) -> Body:
    play = {"workload": "resnet50", "warm-up": "0s", "start-delay": "200ms", "stop-delay": stop}
    annotations = {SIMULATION + key: value for key, value in play.items()}
    resources = {"limits": {"nvidia.com/gpu": str(chips)}}
    containers = [{"name": "main", "image": "example.com/trainer:1", "resources": resources, **container}]
    spec = {"nodeSelector": {NODE_LABEL: A100}, "tolerations": [TOLERATION], "restartPolicy": restart}
    return {"metadata": {"annotations": annotations}, "spec": {**spec, "containers": containers}}


def train_job(pods: Body) -> Body:
    """Of the runtime below. Trainer takes what its user says of nodes from `runtimePatches`."""
    selector = {"nodeSelector": pods["spec"]["nodeSelector"]}
    patched = [{"name": "node", "template": {"spec": {"template": {"spec": selector}}}}]
    patch = {"manager": "example.com/me", "trainingRuntimeSpec": {"template": {"spec": {"replicatedJobs": patched}}}}
    trainer = {"numNodes": 2, "resourcesPerNode": pods["spec"]["containers"][0]["resources"]}
    reference = {"kind": RUNTIMES.kind, "name": "llm"}
    return {"runtimeRef": reference, "trainer": trainer, "runtimePatches": [patch]}


def runtime(logs: Body, trained: Body) -> Body:
    """Of a step that trains, and of another one beside it."""
    steps = [
        {"name": name, "template": {"metadata": {"labels": labels}, "spec": {"template": pods}}}
        for name, pods, labels in (("logs", logs, {}), ("node", trained, {STEP: "trainer"}))
    ]
    return {"mlPolicy": {"torch": {}}, "template": {"spec": {"replicatedJobs": steps}}}


def specs(stop: str, chips: int) -> dict[str, Body]:
    """Of each kind one with two simulated pods."""
    job = {"completionMode": "Indexed", "completions": 2, "parallelism": 2, "template": template(stop, chips=chips)}
    roles = [
        {"name": "leader", "template": {"spec": {"template": leader(stop)}}},
        {"name": "workers", "template": {"spec": job}},
    ]
    return {
        "job": job,
        "jobSet": {"replicatedJobs": roles},
        "trainJob": train_job(template(stop, chips=chips)),
        "leaderWorkerSet": {"leaderWorkerTemplate": {"size": 2, "workerTemplate": template(stop, "Always", chips)}},
    }


def leader(stop: str) -> Body:
    """Pods that ask for no chips."""
    pods = template(stop, resources={})
    pods["spec"].pop("nodeSelector")
    return pods


def simulated(stop: str) -> Body:
    """The runtime of a TrainJob whose pods are simulated."""
    trained = template(stop, name="node")
    trained["spec"].pop("nodeSelector")
    return runtime(leader(stop), trained)


def played(site: Site, field: str, stop: str = "200ms", chips: int = 1) -> Mine:
    """One whose pods are simulated."""
    return Mine(site, field, specs(stop, chips)[field], simulated(stop))


class Mine:
    """An object of somebody's, with two pods in a pool."""

    def __init__(
        self,
        site: Site,
        field: str,
        spec: Body,
        runs: Body | None = None,
        pool: str = A100,
        *,
        pods: int = 2,
        **labels: str,
    ) -> None:
        """runs: the runtime that a TrainJob names."""
        self.tenant: Tenant = site.tenant
        self.kind, self.resource, self.pool = KINDS[field], KINDS[field].resource, pool
        about = {"name": "llm", "namespace": self.tenant.namespace}
        if field == "trainJob":
            self.tenant.client.create(RUNTIMES, {"metadata": about, "spec": runs})
        body = {"metadata": {**about, "labels": labels}, "spec": spec}
        eventually(lambda: self.accepted(body), "Trainer knows its runtime")
        eventually(lambda: self.runs_on(pool, pods), "it runs")
        self.before = self.body

    def accepted(self, body: Body) -> bool:
        """A webhook knows only later of a runtime that has just been made."""
        try:
            self.tenant.client.create(self.resource, body)
        except Forbidden as error:
            assert "runtimeRef" in error.message
            return False
        return True

    @property
    def body(self) -> Body:
        return self.tenant.client.get(self.resource, "llm", self.tenant.namespace)

    def patch(self, body: Body) -> None:
        path = self.resource.path(self.tenant.namespace, "llm")
        self.tenant.client.request("PATCH", path, body=body, content=MERGE_CONTENT)

    def suspend(self, suspended: bool) -> None:
        """As its user does."""
        self.patch(self.kind.suspension(suspended, Placement(A100, 2, 2), 2))

    def pods(self) -> list[Body]:
        return [
            pod
            for pod in self.tenant.client.list_all(PODS, self.tenant.namespace)
            if pod["status"].get("phase") not in ("Succeeded", "Failed")
        ]

    def runs_on(self, pool: str, pods: int = 2) -> bool:
        """So many pods that train run there, and no other one."""
        trained = [pod for pod in self.pods() if "nodeSelector" in pod["spec"]]
        there = [pod for pod in trained if pod["spec"]["nodeSelector"].get(NODE_LABEL) == pool]
        return len(there) == len(trained) == pods and all(pod["status"].get("phase") == "Running" for pod in there)

    def adopt(self, **spec: Any) -> None:
        self.create(spec)
        eventually(lambda: self.placed(self.pool, 1), "it is found")

    def create(self, spec: Body) -> None:
        """The ProfiledJob that names it."""
        identity = {"apiVersion": self.resource.api_version, "kind": self.resource.kind, "name": "llm"}
        self.tenant.client.create(
            PROFILED_JOBS,
            {
                "metadata": {"name": "llm", "namespace": self.tenant.namespace},
                "spec": {
                    "workloadRef": identity,
                    "adoption": {"change": "Suspend"},
                    "placement": {"pools": {"allow": [self.pool]}},
                    "checkpoint": {"mode": "None"},
                    "profiling": {"interval": "1s", "window": "6s"},
                    **spec,
                },
            },
        )

    def placed(self, pool: str, revision: int | None = None) -> bool:
        try:
            found = self.tenant.status("llm").get("placement") or {}
        except NotFound:
            return False
        return found.get("pool") == pool and revision in (None, found.get("revision"))

    def send(self, pool: str) -> None:
        self.tenant.edit("llm", lambda spec: spec["placement"].update(pools={"allow": [pool]}))

    def release(self) -> None:
        """As `rightpool release` asks for it."""
        path, asked = PROFILED_JOBS.path(self.tenant.namespace, "llm"), {ANNOTATION_RELEASE: "true"}
        self.tenant.client.request("PATCH", path, body={"metadata": {"annotations": asked}}, content=MERGE_CONTENT)

    def untouched(self, body: Body | None = None) -> bool:
        """Its spec is what its user wrote, and it is not suspended."""
        now, before = ({"suspend": False, **one["spec"]} for one in (body or self.body, self.before))
        for patch in (*now.get("runtimePatches", ()), *before.get("runtimePatches", ())):
            patch.pop("time", None)  # when Trainer has seen it
        return bool(now == before)


@pytest.fixture(params=FIELDS)
def field(request: pytest.FixtureRequest) -> str:
    """Each kind whose objects can be adopted."""
    found = str(request.param)
    if found in INSTALLED:
        request.getfixturevalue(INSTALLED[found])
    return found


@pytest.fixture
def mine(site: Site, field: str) -> Callable[..., Mine]:
    return lambda **more: played(site, field, **more)


def test_it_moves_where_it_is(site: Site, mine: Callable[..., Mine]) -> None:
    site.operate()
    one = mine()
    one.adopt()
    uid = one.before["metadata"]["uid"]
    assert one.untouched(), "to be looked at changes nothing"
    one.send(A10G)
    eventually(lambda: one.runs_on(A10G) and one.placed(A10G, 2), "it has moved")
    body = one.body
    assert body["metadata"]["uid"] == uid and not is_held(body)
    assert body["metadata"]["annotations"][LABEL_REVISION] == "2"
    original = original_of(one.kind, body)
    assert original is not None and original.placement.pool == A100
    eventually(lambda: (one.tenant.status("llm").get("adopted") or {}).get("original") is not None, "it is kept, too")
    one.tenant.client.delete(PROFILED_JOBS, "llm", one.tenant.namespace)
    eventually(lambda: LABEL_REVISION in (one.body["metadata"].get("annotations") or {}), "it is let go")
    assert one.runs_on(A10G), "and runs on where it is"


@pytest.mark.parametrize("field", ["job", "leaderWorkerSet"], indirect=True)
def test_it_gets_another_size_where_it_is(site: Site, mine: Callable[..., Mine]) -> None:
    site.operate()
    one = mine(chips=4)
    one.adopt(elasticity={"chipCounts": [8]})

    def grown(spec: Body) -> None:
        spec["elasticity"]["chipCounts"] = [12]
        spec["placement"]["pools"]["allow"] = [A10G]

    one.tenant.edit("llm", grown)
    eventually(lambda: one.runs_on(A10G, pods=3) and one.placed(A10G, 2), "it has three pods")
    assert one.body["metadata"]["uid"] == one.before["metadata"]["uid"]
    one.tenant.client.delete(PROFILED_JOBS, "llm", one.tenant.namespace)
    eventually(lambda: LABEL_REVISION in (one.body["metadata"].get("annotations") or {}), "it is let go")
    assert one.runs_on(A10G, pods=3), "and runs on as it is"


class Groups(Mine):
    """Two groups of two pods, which save nothing."""

    def __init__(self, site: Site) -> None:
        super().__init__(site, "leaderWorkerSet", {**specs("200ms", 1)["leaderWorkerSet"], "replicas": 2}, pods=4)
        self.fewest = 4

    def at(self, pool: str, revision: int | None = None) -> bool:
        self.fewest = min(self.fewest, sum(pod["status"].get("phase") == "Running" for pod in self.pods()))
        return self.runs_on(pool, pods=4) and self.placed(pool, revision)

    def never_stopped(self) -> bool:
        return self.fewest >= 2 and self.untouched() and self.body["metadata"]["uid"] == self.before["metadata"]["uid"]


@pytest.mark.usefixtures("leader_worker_set")
def test_where_nothing_is_saved_one_group_moves_after_the_other(site: Site) -> None:
    site.operate()
    one = Groups(site)
    one.adopt()
    one.send(A10G)
    eventually(lambda: one.at(A10G, 2), "it has moved", longest=0.1)
    assert not is_held(one.body)
    eventually(lambda: one.tenant.phase("llm") in (None, "WarmingUp", "Verifying"), "it has arrived")
    one.release()
    eventually(lambda: not one.at(A100) and one.runs_on(A100, pods=4), "its ProfiledJob is gone", longest=0.1)
    assert one.never_stopped()


@pytest.mark.usefixtures("leader_worker_set")
def test_a_group_that_does_not_start_there_comes_back(site: Site, impatient: Callable[[], None]) -> None:
    site.operate()
    one = Groups(site)
    one.adopt()
    impatient()
    one.send(DEAD)
    eventually(lambda: one.at(A100) and one.tenant.outcomes("llm") == ["RolledBack"], "it is back", longest=0.1)
    assert one.never_stopped()


def test_what_does_not_start_there_comes_back_as_it_was(
    site: Site, mine: Callable[..., Mine], impatient: Callable[[], None]
) -> None:
    site.operate()
    one = mine()
    one.adopt()
    impatient()
    one.send(DEAD)
    eventually(lambda: one.tenant.outcomes("llm") == ["RolledBack"] and one.runs_on(A100), "it is back")
    body = one.body
    assert one.untouched(body) and not is_held(body)
    assert body["metadata"]["annotations"][LABEL_REVISION] == "3"


def test_released_it_is_what_it_was(site: Site, mine: Callable[..., Mine]) -> None:
    site.operate()
    one = mine()
    one.adopt()
    one.send(A10G)
    eventually(lambda: one.runs_on(A10G) and one.placed(A10G, 2), "it has moved")
    one.send(A10G)
    eventually(lambda: one.tenant.phase("llm") in (None, "WarmingUp", "Verifying"), "it has arrived")
    one.release()
    eventually(lambda: one.runs_on(A100) and not one.placed(A100), "it is back, and its ProfiledJob is gone")
    eventually(lambda: not one.body["metadata"].get("annotations"), "nothing is left on it")
    assert one.untouched()


def drained(one: Mine) -> None:
    """It is stopped for a move, and its pods end slowly."""
    one.adopt()
    one.send(A10G)
    eventually(lambda: one.tenant.phase("llm") == "Draining" and is_held(one.body), "it is stopped", longest=0.05)


def left_alone(one: Mine) -> None:
    eventually(lambda: one.tenant.phase("llm") is None, "the move has ended")
    [entry] = one.tenant.status("llm")["history"]
    assert (entry["outcome"], entry["reason"]) == ("Superseded", "Superseded")


def test_who_resumes_it_meanwhile_keeps_it_where_it_is(site: Site, mine: Callable[..., Mine]) -> None:
    site.operate()
    one = mine(stop="6s")
    drained(one)
    one.suspend(False)
    one.send(A100)
    left_alone(one)
    eventually(lambda: one.runs_on(A100) and not is_held(one.body), "it runs where it was")
    assert one.untouched()


def test_who_suspends_it_before_finds_it_suspended(site: Site, mine: Callable[..., Mine]) -> None:
    site.operate()
    one = mine()
    one.adopt()
    one.suspend(True)
    one.send(A10G)
    eventually(lambda: not one.pods(), "it stops")
    eventually(lambda: one.tenant.condition("llm", "Placed").get("reason") == "Suspended", "the status says so")
    body = one.body
    assert one.kind.observe(body).suspended and ANNOTATION_HELD not in (body["metadata"].get("annotations") or {})


def test_who_deletes_the_profiledjob_meanwhile_has_it_resumed(site: Site, mine: Callable[..., Mine]) -> None:
    site.operate()
    one = mine(stop="6s")
    drained(one)
    one.tenant.client.delete(PROFILED_JOBS, "llm", one.tenant.namespace)
    eventually(lambda: one.runs_on(A100) and not is_held(one.body), "it runs where it was")
    assert one.untouched()


def test_the_label_auto_lets_it_be_moved(site: Site, mine: Callable[..., Mine]) -> None:
    site.operate()
    one = mine()
    one.patch({"metadata": {"labels": {LABEL_ADOPT: "recommend"}}})
    eventually(lambda: one.placed(A100, 1), "it is found")
    one.patch({"metadata": {"labels": {LABEL_ADOPT: "auto"}}})
    eventually(
        lambda: one.tenant.job("llm")["spec"]["adoption"]["change"] == "Suspend", "its ProfiledJob follows the label"
    )
    assert one.tenant.job("llm")["spec"]["adaptation"]["mode"] == "Auto"


def test_killed_at_every_write_it_moves_and_comes_back(site: Site, field: str, impatient: Callable[[], None]) -> None:
    one = played(site, field)
    operator = CrashingOperator(site)
    one.create({})
    operator.until(lambda: one.placed(A100, 1), "it is found")
    impatient()
    one.send(DEAD)
    operator.until(lambda: one.tenant.outcomes("llm") == ["RolledBack"] and one.runs_on(A100), "it is back")
    body = one.body
    assert one.untouched(body) and not is_held(body)
    plural = one.resource.plural
    steps = [f"PATCH {plural}/llm {what}" for what in ("suspend", "resume")]
    assert operator.missed(*steps) == []
