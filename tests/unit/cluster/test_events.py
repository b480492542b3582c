"""EventRecorder: what is sent, and what is only counted."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from rightpool.cluster.errors import AlreadyExists, ClusterError, Forbidden, Unavailable, Unreachable
from rightpool.cluster.events import COUNT_SECONDS, REPEAT_AFTER, RESEND_SECONDS, WAITING_LIMIT, EventRecorder
from rightpool.reporting.events import Event

JOB = {"apiVersion": "rightpool.dev/v1alpha1", "kind": "ProfiledJob", "namespace": "ml", "name": "bert", "uid": "u"}


class Client:
    """Carries out at once what is submitted."""

    def __init__(self) -> None:
        self.created: list[dict[str, Any]] = []
        self.counted: list[int] = []
        self.names: list[str] = []
        """Of all that were to be created."""
        self.problems: list[ClusterError] = []
        """The answers to the next requests."""

    def submit(self, function: Any, /, *arguments: Any) -> None:
        function(*arguments)

    def create(self, resource: object, body: Mapping[str, Any]) -> dict[str, Any]:
        self.names.append(body["metadata"]["name"])
        if self.problems:
            raise self.problems.pop(0)
        self.created.append(dict(body))
        return dict(body)

    def request(self, method: str, path: str, *, body: dict[str, Any], content: str) -> dict[str, Any]:
        assert (method, path.rpartition("/")[2]) == ("PATCH", self.created[-1]["metadata"]["name"])
        self.counted.append(body["count"])
        return body


def test_a_repetition_is_counted_in_the_event_that_was_sent() -> None:
    client, clock = Client(), [0.0]
    recorder = EventRecorder(client, leads=lambda: True, term=lambda: 0, instance="a", clock=lambda: clock[0])  # type: ignore[arg-type]
    crash = Event(JOB, "CrashLoop", "Observe", "failed once", True, "Placed=CrashLoop")
    assert recorder.post(crash)
    (body,) = client.created
    assert (body["count"], body["firstTimestamp"]) == (1, body["lastTimestamp"])
    assert body["involvedObject"] == JOB
    again = Event(JOB, "CrashLoop", "Observe", "failed 2 times", True, "Placed=CrashLoop")
    assert not recorder.post(again)
    clock[0] = COUNT_SECONDS + 1
    assert not recorder.post(again)
    assert (len(client.created), client.counted) == (1, [3])
    clock[0] = REPEAT_AFTER + 1
    assert recorder.post(again)


def test_other_words_without_a_subject_are_another_statement() -> None:
    client = Client()
    recorder = EventRecorder(client, leads=lambda: True, term=lambda: 0, instance="a", clock=lambda: 0.0)  # type: ignore[arg-type]
    assert recorder.post(Event(JOB, "Draining", "Migrate", "d-1: r1 is ended"))
    assert recorder.post(Event(JOB, "Draining", "Migrate", "d-2: r2 is ended"))
    assert not recorder.post(Event(JOB, "Draining", "Migrate", "d-2: r2 is ended"))


class Situation:
    """A recorder, what it depends on, and one statement to make."""

    def __init__(self) -> None:
        self.client = Client()
        self.leads, self.term, self.now = True, 1, 0.0
        self.recorder = EventRecorder(
            self.client,  # type: ignore[arg-type]
            leads=lambda: self.leads,
            term=lambda: self.term,
            instance="a",
            clock=lambda: self.now,
        )

    def post(self) -> None:
        self.recorder.post(Event(JOB, "CrashLoop", "Observe", "failed once", True, "Placed=CrashLoop"))

    @property
    def counts(self) -> list[int]:
        """Of the Events that were sent."""
        return [body["count"] for body in self.client.created]


def test_an_event_waits_while_a_renewal_of_the_lease_is_late() -> None:
    it = Situation()
    it.leads = False
    it.post()
    it.recorder.resend()
    assert it.counts == []
    it.leads = True
    it.recorder.resend()
    it.recorder.resend()
    assert it.counts == [1], "it is sent once"


def test_an_event_that_waits_when_another_process_has_led_is_dropped() -> None:
    it = Situation()
    it.leads = False
    it.post()
    it.leads, it.term = True, 3
    it.recorder.resend()
    assert it.counts == []
    it.post()
    assert it.counts == [1], "it is not counted in one that was never sent"
    it.leads, it.now = False, COUNT_SECONDS + 1
    it.post()
    assert it.client.counted == []


@pytest.mark.parametrize("carried_out", [True, False])
def test_an_event_that_the_api_server_could_not_take_is_sent_again(carried_out: bool) -> None:
    it = Situation()
    it.client.problems = [Unreachable("no answer in time")]
    it.post()
    if carried_out:
        it.client.problems = [AlreadyExists("it is there")]
    it.recorder.resend()
    it.recorder.resend()
    assert it.counts == ([] if carried_out else [1])
    assert len(it.client.names) == 2 and len(set(it.client.names)) == 1, "under one name, so that it is there once"


@pytest.mark.parametrize(("problem", "requests"), [(Unavailable("etcd has no leader"), 3), (Forbidden("no"), 1)])
def test_an_event_that_is_never_taken_is_given_up(problem: ClusterError, requests: int) -> None:
    it = Situation()
    it.client.problems = [problem] * 10
    for it.now in (0.0, RESEND_SECONDS, RESEND_SECONDS + 1, RESEND_SECONDS + 2):
        it.post() if not it.client.names else it.recorder.resend()
    assert len(it.client.names) == requests


def test_events_that_wait_are_few() -> None:
    it = Situation()
    it.leads = False
    posted = [it.recorder.post(Event(JOB, "Draining", "Migrate", f"d-{n}")) for n in range(WAITING_LIMIT + 10)]
    assert sum(posted) == WAITING_LIMIT
    it.leads = True
    it.recorder.resend()
    assert len(it.counts) == WAITING_LIMIT
    assert it.recorder.post(Event(JOB, "Draining", "Migrate", "d-0, again")), "there is room again"
