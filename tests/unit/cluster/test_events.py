"""EventRecorder: what is sent, and what is only counted."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rightpool.cluster.events import COUNT_SECONDS, REPEAT_AFTER, EventRecorder
from rightpool.reporting.events import Event

JOB = {"apiVersion": "rightpool.dev/v1alpha1", "kind": "ProfiledJob", "namespace": "ml", "name": "bert", "uid": "u"}


class Client:
    """Carries out at once what is submitted."""

    def __init__(self) -> None:
        self.created: list[dict[str, Any]] = []
        self.counted: list[int] = []

    def submit(self, function: Any, /, *arguments: Any) -> None:
        function(*arguments)

    def create(self, resource: object, body: Mapping[str, Any]) -> dict[str, Any]:
        self.created.append(dict(body))
        return dict(body)

    def request(self, method: str, path: str, *, body: dict[str, Any], content: str) -> dict[str, Any]:
        assert (method, path.rpartition("/")[2]) == ("PATCH", self.created[-1]["metadata"]["name"])
        self.counted.append(body["count"])
        return body


def test_a_repetition_is_counted_in_the_event_that_was_sent() -> None:
    client, clock = Client(), [0.0]
    recorder = EventRecorder(client, leads=lambda: True, instance="a", clock=lambda: clock[0])  # type: ignore[arg-type]
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
    recorder = EventRecorder(client, leads=lambda: True, instance="a", clock=lambda: 0.0)  # type: ignore[arg-type]
    assert recorder.post(Event(JOB, "Draining", "Migrate", "d-1: r1 is ended"))
    assert recorder.post(Event(JOB, "Draining", "Migrate", "d-2: r2 is ended"))
    assert not recorder.post(Event(JOB, "Draining", "Migrate", "d-2: r2 is ended"))


def test_an_event_that_waits_when_the_lease_is_lost_is_dropped() -> None:
    client, leads, clock = Client(), [False], [0.0]
    recorder = EventRecorder(client, leads=lambda: leads[0], instance="a", clock=lambda: clock[0])  # type: ignore[arg-type]
    crash = Event(JOB, "CrashLoop", "Observe", "failed once", True, "Placed=CrashLoop")
    recorder.post(crash)
    assert client.created == []
    leads[0] = True
    recorder.post(crash)
    assert [body["count"] for body in client.created] == [1], "it is not counted in one that was never sent"
    leads[0], clock[0] = False, COUNT_SECONDS + 1
    recorder.post(crash)
    assert client.counted == []
