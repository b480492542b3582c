"""`rightpool trial`: what is written, and what is said of the operator's answer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from rightpool.cli.main import main
from rightpool.cluster.resources import PROFILED_JOBS
from rightpool.contract import ANNOTATION_TRIAL
from rightpool.planning.jobs.trial_seen import TrialSeen
from rightpool.planning.moves.trying import with_trial
from rightpool.planning.offers.trial_consent import NO_TRIAL, Trying
from rightpool.reporting.stored_job import read_job
from tests.unit.cli.cluster import NOW, FakeClient, job, running_status
from tests.unit.planning.jobs import AUTO, changed, running
from tests.unit.planning.test_trying import OFFER

Run = Callable[..., tuple[int, str, str]]


class Operated(FakeClient):
    """An operator answers what is written, and a trial under way sees this in a later cycle."""

    def __init__(self, trying: Trying | None, seen: TrialSeen | None = None) -> None:
        super().__init__()
        self.trying, self.seen = trying, seen
        self.values: list[str] = []

    def request(self, method: str, path: str, *, body: dict[str, Any], content: str) -> dict[str, Any]:
        assert (method, content) == ("PATCH", "application/merge-patch+json")
        (stored,) = self.objects[PROFILED_JOBS]
        annotations = body["metadata"]["annotations"]
        stored["metadata"]["annotations"] = annotations
        self.values.append(annotations[ANNOTATION_TRIAL])
        if self.trying is not None:
            self._cycle(self.trying, None, NOW)
        return body

    def later(self, seconds: float) -> None:
        self._cycle(NO_TRIAL, self.seen, NOW + 200.0)

    def close(self) -> None:
        pass

    def _cycle(self, trying: Trying, seen: TrialSeen | None, now: float) -> None:
        (stored,) = self.objects[PROFILED_JOBS]
        before = read_job(stored).job
        after = with_trial(changed(before, trial=seen, profile=running().observed.profile), trying, AUTO, now)
        stored["status"] |= after.state.to_dict()
        if after.state.trial is None:
            stored["status"].pop("trial", None)


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    def go(client: Operated, *words: str, **spec: Any) -> tuple[int, str, str]:
        client.add(PROFILED_JOBS, job(status=running_status(), **({"trial": {"duration": "3m"}} | spec)))
        monkeypatch.setattr("rightpool.cli.connection._connect", lambda *_: client)
        monkeypatch.setattr("rightpool.cli.trial.time.sleep", client.later)
        monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "in a pod")
        monkeypatch.delenv("KUBECONFIG", raising=False)
        monkeypatch.setenv("HOME", "/nowhere")
        code = main(["trial", "resnet50", "-n", "vision", *words])
        out, err = capsys.readouterr()
        return code, out, err

    return go


def test_it_says_what_has_begun_and_what_it_costs(run: Run) -> None:
    client = Operated(Trying(OFFER))
    code, out, _ = run(client, "--pool", "a10g", "--for", "90s")
    assert code == 0
    assert client.values[0].startswith("cli-") and client.values[0].endswith(":a10g:90")
    assert out == (
        "ProfiledJob resnet50-t1 tries it on 4 chips of a10g for 3 min from its first step on: "
        "$0.12 and its start, at $2.40 an hour; $2.00 may be spent\n"
    )


def test_without_more_it_asks_for_any_pool(run: Run) -> None:
    client = Operated(Trying(OFFER))
    run(client)
    assert client.values[0].endswith(":") and client.values[0].count(":") == 1


def test_it_waits_for_what_it_shows(run: Run) -> None:
    seen = TrialSeen(1, NOW, ended="container trainer exited with 1 (Error)")
    code, out, err = run(Operated(Trying(OFFER), seen), "--wait")
    assert (code, "resnet50-t1 tries it" in out) == (1, True)
    assert "nothing measured on 4 chips of a10g: container trainer exited with 1 (Error)" in err


def test_one_that_was_broken_off_has_shown_nothing(run: Run) -> None:
    client = Operated(Trying(OFFER))
    client.later = lambda seconds: client._cycle(Trying(breaks_off=True), None, NOW + 9.0)  # type: ignore[method-assign]
    code, _, err = run(client, "--wait")
    assert code == 1 and "resnet50-t1 was ended before it had measured anything" in err


def test_the_operators_refusal_is_said(run: Run) -> None:
    code, out, err = run(Operated(Trying(refused="pool a10g has no 4 chips free")))
    assert (code, out) == (1, "") and "vision/resnet50 is not tried: pool a10g has no 4 chips free" in err


@pytest.mark.parametrize(
    ("spec", "words", "why"),
    [
        ({"trial": None}, (), "set spec.trial"),
        ({"managedBy": "example.com/other"}, (), "which tries nothing"),
        ({}, ("--for", "soon"), "--for"),
        ({}, ("--for", "0s"), "1s or more"),
    ],
)
def test_what_can_not_be_asked_for_is_not_written(
    run: Run, spec: dict[str, Any], words: tuple[str, ...], why: str
) -> None:
    client = Operated(Trying(OFFER))
    try:
        code, _, err = run(client, *words, **spec)
    except SystemExit as exit:
        assert exit.code == 2
    else:
        assert code in (1, 2) and why in err
    assert client.values == []


def test_an_operator_that_does_not_answer_is_not_awaited_for_ever(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rightpool.cli.trial.TAKEN_SECONDS", 0.01)
    client = Operated(None)
    client.later = lambda seconds: None  # type: ignore[method-assign]
    code, _, err = run(client)
    assert code == 1 and "no operator has answered" in err
