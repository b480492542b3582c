"""Whether an operator leads, as the commands tell it."""

from __future__ import annotations

from typing import Any

import pytest

from rightpool.api.kubernetes import Resource
from rightpool.cli.heartbeat import no_leader_text
from rightpool.cli.main import main
from rightpool.cluster.errors import Forbidden
from tests.unit.cli.cluster import NOW, moment
from tests.unit.cli.ui.pages import abandoned, fleet


class Leases:
    def __init__(self, *leases: dict[str, Any], forbidden: bool = False) -> None:
        self.leases, self.forbidden = list(leases), forbidden

    def list_all(self, resource: Resource, namespace: str | None = None) -> list[dict[str, Any]]:
        if self.forbidden:
            raise Forbidden("no")
        return self.leases


def lease(seconds_ago: float, holder: str = "a", name: str = "rightpool-operator") -> dict[str, Any]:
    spec = {"holderIdentity": holder, "leaseDurationSeconds": 15, "renewTime": moment(seconds_ago)}
    return {"metadata": {"name": name}, "spec": spec}


def test_a_fresh_lease_is_no_news() -> None:
    assert no_leader_text(Leases(lease(5)), "system", NOW) is None
    assert no_leader_text(Leases(lease(500), lease(3)), "system", NOW) is None, "one of two releases leads"


def test_a_lease_that_ran_out_or_was_released_is_told() -> None:
    assert "no operator leads since 10 min" in (no_leader_text(Leases(lease(600)), "system", NOW) or "")
    assert "no operator leads" in (no_leader_text(Leases(lease(5, holder="")), "system", NOW) or "")


@pytest.mark.parametrize(
    "words",
    [("top",), ("explain",), ("explain", "resnet50"), ("recommend",), ("approve", "resnet50"), ("report",)],
    ids=" ".join,
)
def test_who_waits_for_an_operator_is_told_that_none_leads(
    words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    client = abandoned(fleet())
    monkeypatch.setattr("rightpool.cli.connection._connect", lambda *_: client)
    monkeypatch.setattr(client, "request", lambda *_, **__: {}, raising=False)
    monkeypatch.setattr(client, "close", lambda: None, raising=False)
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "in a pod")
    monkeypatch.delenv("KUBECONFIG", raising=False)
    monkeypatch.setenv("HOME", "/nowhere")
    monkeypatch.setattr("time.time", lambda: NOW)
    assert main([*words, "-n", "vision"]) == 0
    assert "no operator leads since 10 min" in capsys.readouterr().out


def test_nothing_is_claimed_of_what_cannot_be_read() -> None:
    assert no_leader_text(Leases(forbidden=True), "system", NOW) is None
    assert no_leader_text(Leases(), "system", NOW) is None
    assert no_leader_text(Leases(lease(600, name="other")), "system", NOW) is None
