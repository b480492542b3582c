"""User actions and job events in every phase of a move take precedence over the move.

All jobs run side by side under one operator; each gets its action as soon as it reaches its phase. On a machine that
stands still at times a phase may pass unseen: that job is then made anew.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import product
from pathlib import Path

import pytest

from rightpool.cluster.client import ClusterClient
from rightpool.cluster.errors import Conflict, NotFound
from rightpool.cluster.resources import PROFILED_JOBS
from rightpool.contract import ANNOTATION_APPROVE
from tests.chaos.operators import ProcessPool
from tests.chaos.stream import StreamEvent
from tests.integration.faults.acts import delete, edit, evict, fail, finish, suspend
from tests.integration.faults.conftest import make_site
from tests.integration.faults.fleet import A10G, A100, SLOW, Body, Tenant
from tests.integration.faults.site import NamespaceWatch, Site
from tests.patience import eventually

pytestmark = pytest.mark.cluster

# A phase in lower case belongs to a rollback: the target is slow, and the move is undone.
AHEAD = ("Planned", "Checkpointing", "Draining", "Starting", "WarmingUp", "Verifying")
BACK = ("checkpointing", "draining", "starting")
PHASES = (*AHEAD, *BACK)
MOVED = {"Verified", "RolledBack", "Failed"}
PLAY = {"checkpoint-delay": "2s", "start-delay": "1500ms", "stop-delay": "1500ms"}


# --- expected results ------------------------------------------------------------------------------------------------


def edited(tenant: Tenant, name: str, phase: str) -> None:
    eventually(lambda: rests(tenant, name) and image_of(tenant, name) == "example.com/trainer:2", name)
    tenant.only_child(name)


def rests(tenant: Tenant, name: str) -> bool:
    """It runs without a migration, or waits for an approval again."""
    runs = tenant.condition(name, "Placed").get("status") == "True"
    return runs and tenant.phase(name) in (None, "Planned")


def suspended(tenant: Tenant, name: str, phase: str) -> None:
    def is_suspended() -> bool:
        return tenant.condition(name, "Placed").get("reason") == "Suspended" and not tenant.revisions_alive(name)

    eventually(is_suspended, f"{name} sleeps")
    tenant.edit(name, lambda spec: spec.update(suspend=False))
    settled(tenant, name, phase)


def deleted(tenant: Tenant, name: str, phase: str) -> None:
    def gone() -> bool:
        try:
            tenant.job(name)
        except NotFound:
            return not tenant.children(name) and not tenant.pods(name)
        return False

    eventually(gone, f"{name} is gone")


def finished(tenant: Tenant, name: str, phase: str) -> None:
    """Completed; or it runs at its target, if its pods were already being ended."""
    came_to_an_end(tenant, name, "Completed", phase in ("Checkpointing", "Draining", "checkpointing", "draining"))


def failed(tenant: Tenant, name: str, phase: str) -> None:
    """The job fails; on a target under verification the move fails and the job returns.

    Kubernetes takes a moment to fail the Job. Meanwhile a move continues unless it waits for its approval.
    """
    came_to_an_end(tenant, name, "Failed", phase not in ("Planned", "starting"))
    if phase in ("Starting", "WarmingUp"):
        # Kubernetes may fail the Job only after the move.
        assert {"RolledBack", "Verified"} & set(tenant.outcomes(name))


def came_to_an_end(tenant: Tenant, name: str, how: str, may_run: bool) -> None:
    def over() -> bool:
        ended = tenant.condition(name, how).get("status") == "True"
        return ended and not tenant.revisions_alive(name) and not tenant.status(name).get("migration")

    def runs() -> bool:
        return may_run and tenant.settled(name) and bool(tenant.outcomes(name))

    eventually(lambda: over() or runs(), f"{name} is over")


def settled(tenant: Tenant, name: str, phase: str) -> None:
    eventually(lambda: rests(tenant, name), f"{name} runs")
    tenant.only_child(name)


ACTS = {edit: edited, suspend: suspended, delete: deleted, finish: finished, fail: failed, evict: settled}


def image_of(tenant: Tenant, name: str) -> str:
    child = tenant.child(f"{name}-r{tenant.status(name)['placement']['revision']}")
    container: Body = {} if child is None else child["spec"]["template"]["spec"]["containers"][0]
    return str(container.get("image"))


# --- the run ---------------------------------------------------------------------------------------------------------


def called(act: Callable[[Tenant, str], None], phase: str) -> str:
    return f"{act.__name__}-{'back-' if phase in BACK else ''}{phase.lower()}"


class Director:
    """Watches the phase of every job and acts on each as soon as it reaches its phase."""

    def __init__(self, site: Site) -> None:
        self.acts: dict[str, Future[None]] = {}
        self._site = site
        self._tenant = site.tenant
        self._parts = {called(act, phase): (act, phase) for act, phase in product(ACTS, PHASES)}
        self._passed: set[str] = set()  # uids of jobs whose phase passed unseen
        self._threads = ThreadPoolExecutor(16)
        site.namespace_watch.listen(site.namespace, self._on_event)

    def _on_event(self, event: StreamEvent) -> None:
        name = event.body["metadata"]["name"]
        if event.resource is not PROFILED_JOBS or name not in self._parts or name in self.acts:
            return
        act, wanted = self._parts[name]
        status, uid = event.body.get("status") or {}, event.body["metadata"]["uid"]
        migration = status.get("migration")
        if migration is None:
            outcomes = {entry["outcome"] for entry in status.get("history") or ()}
            if outcomes & MOVED and uid not in self._passed:
                self._passed.add(uid)
                self._threads.submit(self._replace, name)
            return
        phase = migration["phase"].lower() if migration.get("rollingBack") else migration["phase"]
        if phase == wanted:
            self.acts[name] = self._threads.submit(act, self._tenant, name)

    def _train(self, name: str) -> None:
        _, phase = self._parts[name]
        target = SLOW if phase in BACK else A10G
        adaptation = {"cooldown": "1h", "requireApproval": phase == "Planned"}
        self._tenant.train(name, play=PLAY, placement={"pools": {"allow": [A100, target]}}, adaptation=adaptation)

    def _replace(self, name: str) -> None:
        """By a new job of the same name."""
        delete(self._tenant, name)
        deleted(self._tenant, name, "")
        self._train(name)

    def _missing(self) -> list[str]:
        assert self._site.namespace_watch.running
        return sorted(self._parts.keys() - self.acts.keys())

    def _states(self, names: list[str]) -> str:
        """What each did instead."""
        bodies = self._tenant.client.list_all(PROFILED_JOBS, self._tenant.namespace)
        states = {body["metadata"]["name"]: body.get("status") for body in bodies}
        return "\n".join(f"{name}: {states.get(name)}" for name in names)

    def play(self) -> None:
        """Run until every action was carried out."""
        for name in self._parts:
            self._train(name)
        while missing := self._missing():
            # For the next one only: on a busy machine all of them take long.
            eventually(
                lambda missing=missing: self._missing() != missing,  # type: ignore[misc]
                lambda missing=missing: f"these never reached their phase: {self._states(missing)}",  # type: ignore[misc]
            )
        for act in self.acts.values():
            act.result()
        for name, (act, phase) in self._parts.items():
            if phase == "Planned" and act is not fail:
                approve(self._tenant, name)


def approve(tenant: Tenant, name: str) -> None:
    """Approve a move that waits for it. A deleted job is ignored."""
    while True:
        try:
            job = tenant.job(name)
            job["metadata"].setdefault("annotations", {})[ANNOTATION_APPROVE] = "d-2"
            tenant.client.replace(PROFILED_JOBS, job)
        except Conflict:
            continue
        except NotFound:
            pass
        return


@pytest.fixture(scope="module")
def actions_done(
    client: ClusterClient,
    process_pool: ProcessPool,
    namespace_watch: NamespaceWatch,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Site]:
    folder: Path = tmp_path_factory.mktemp("phases")
    with make_site(client, process_pool, namespace_watch, folder) as site:
        site.operate()
        Director(site).play()
        yield site


@pytest.mark.parametrize("phase", PHASES)
@pytest.mark.parametrize("act", ACTS, ids=lambda act: act.__name__)
def test_action_takes_precedence_in_every_phase(
    actions_done: Site, act: Callable[[Tenant, str], None], phase: str
) -> None:
    name = called(act, phase)
    ACTS[act](actions_done.tenant, name, phase)
