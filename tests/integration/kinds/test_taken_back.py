"""What Argo CD or Flux sets back is not changed for ever: who does it is named, and its user has the last word."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import suppress

import pytest

from rightpool.cluster.errors import Conflict, Invalid
from rightpool.cluster.resources import EVENTS
from tests.integration.faults.fleet import A10G, A100, Body
from tests.integration.faults.site import Site
from tests.integration.kinds.conftest import INSTALLED
from tests.integration.kinds.test_in_place import Mine, mine, pytestmark
from tests.patience import eventually

__all__ = ["mine", "pytestmark"]

AUTO: Body = {"mode": "Auto", "cooldown": "1s"}


class Repository:
    """Applies an object as it is in a repository, again and again, by server-side apply."""

    def __init__(self, one: Mine, manager: str) -> None:
        self._one, self._manager = one, manager
        # As its user wrote it: what Kubernetes has generated is in no repository.
        spec = {**one.before["spec"], "suspend": False}
        if one.kind.field == "job":
            spec.pop("selector")
            spec["template"] = {**spec["template"], "metadata": {"annotations": annotations_of(spec["template"])}}
        self._body = {"metadata": {"name": "llm", "namespace": one.tenant.namespace}, "spec": spec}
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def start(self) -> Repository:
        self.apply()
        self._thread.start()
        return self

    def apply(self) -> None:
        self._one.tenant.client.apply(self._one.resource, self._body, manager=self._manager)

    def _run(self) -> None:
        while not self._stop.wait(0.3):
            with suppress(Conflict, Invalid):  # what can't be changed while it runs: the sync fails, as Argo CD's does
                self.apply()

    def stop(self) -> None:
        self._stop.set()
        if self._thread.ident is not None:
            self._thread.join()


def annotations_of(template: Body) -> Body:
    found: Body = template["metadata"]["annotations"]
    return found


@pytest.fixture(params=("job", "jobSet"))
def field(request: pytest.FixtureRequest) -> str:
    """The kinds whose objects Argo CD and Flux most often have."""
    found = str(request.param)
    if found in INSTALLED:
        request.getfixturevalue(INSTALLED[found])
    return found


@pytest.fixture
def repository() -> Iterator[Callable[[Mine, str], Repository]]:
    """Makes one, and ends it."""
    made: list[Repository] = []

    def make(one: Mine, manager: str) -> Repository:
        made.append(Repository(one, manager))
        return made[-1].start()

    yield make
    for one in made:
        one.stop()


def undone(one: Mine) -> Body:
    found: Body = (one.tenant.status("llm").get("adopted") or {}).get("undone") or {}
    return found


def refuses(one: Mine) -> str:
    """The message, where no move is made any more."""
    condition = one.tenant.condition("llm", "Migrating")
    return str(condition["message"]) if condition.get("reason") == "ChangeUndone" else ""


def test_what_is_resumed_twice_is_suspended_no_more_until_its_user_says_so(
    site: Site, mine: Callable[..., Mine], repository: Callable[[Mine, str], Repository]
) -> None:
    site.operate()
    one = mine(stop="3s")
    argo = repository(one, "argocd-controller")
    one.adopt(adaptation=AUTO)
    one.send(A10G)
    eventually(lambda: refuses(one), "it has tried twice")
    assert refuses(one).startswith("argocd-controller set /spec/suspend back twice") and len(refuses(one)) <= 160
    assert undone(one)["times"] == 2 and undone(one)["field"] == "/spec/suspend"
    outcomes = one.tenant.status("llm")["history"]
    assert [entry["outcome"] for entry in outcomes] == ["Superseded", "Superseded"]
    assert "argocd-controller has resumed" in outcomes[-1]["message"]
    eventually(lambda: one.runs_on(A100), "it runs where it was")
    assert one.untouched()
    generation = one.body["metadata"]["generation"]
    events = one.tenant.client.list_all(EVENTS, one.tenant.namespace)
    assert {event["type"] for event in events if event["reason"] == "ChangeUndone"} == {"Warning"}
    argo.stop()  # from now on it ignores the field
    assert one.body["metadata"]["generation"] == generation, "it is let alone"
    one.tenant.edit("llm", lambda spec: spec["adaptation"].update(cooldown="2s"))
    eventually(lambda: one.runs_on(A10G) and one.placed(A10G), "it moves")
