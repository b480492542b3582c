"""Requests for traces as the agent reads them: which are its own, and which can't be served."""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from rightpool_agent import trace_request, trace_schedule  # type: ignore[import-not-found]
from rightpool_agent.steps import StepLog  # type: ignore[import-not-found]
from rightpool_agent.trace_schedule import Schedule  # type: ignore[import-not-found]

from rightpool import contract


@pytest.fixture
def shared(tmp_path: Path) -> Path:
    for name in ("commands", "traces"):
        (tmp_path / name).mkdir()
    return tmp_path


def leave(shared: Path, content: Any) -> None:
    text = content if isinstance(content, str) else json.dumps(content)
    temporary = shared / "commands" / "trace.new"
    temporary.write_text(text)
    temporary.replace(shared / "commands" / "trace.json")


def request(**fields: Any) -> dict[str, Any]:
    return {"id": "now", "rank": 0, "at": time.time(), **fields}


def test_a_request_is_read_once(shared: Path) -> None:
    requests = trace_request.Requests(str(shared))
    requests.look(0)
    assert requests.facts() == {}
    leave(shared, request())
    requests.look(0)
    assert requests.waits and requests.facts() == {"trace": {"id": "now", "state": "waiting"}}
    requests.state = "written"
    leave(shared, request())
    requests.look(0)
    assert requests.state == "written", "the sidecar was started again, and asks for the same"
    leave(shared, request(id="again"))
    requests.look(0)
    assert requests.waits


def test_one_that_comes_while_a_trace_is_taken_is_read_afterwards(shared: Path) -> None:
    requests = trace_request.Requests(str(shared))
    leave(shared, request())
    requests.look(0)
    requests.state = "capturing"
    leave(shared, request(id="again"))
    requests.look(0)
    assert requests.facts() == {"trace": {"id": "now", "state": "capturing"}}
    requests.state = "written"
    requests.look(0)
    assert requests.facts() == {"trace": {"id": "again", "state": "waiting"}}


@pytest.mark.parametrize(
    "content",
    [
        request(rank=1),
        request(at=time.time() - 3600),
        request(at=time.time() + 3600),
        request(at=float("nan")),
        {"id": "now"},
        [],
        "",
        "{" * 3000,
        json.dumps(request(id="x" * 5000)),
    ],
)
def test_others_are_left_alone(shared: Path, content: Any) -> None:
    requests = trace_request.Requests(str(shared))
    leave(shared, content)
    requests.look(0)
    assert requests.facts() == {}


def test_it_does_not_wait_for_ever(shared: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    requests = trace_request.Requests(str(shared))
    leave(shared, request())
    requests.look(0)
    now = time.monotonic()
    monkeypatch.setattr(trace_request.time, "monotonic", lambda: now + 1000)
    requests.look(0)
    assert requests.state == "NoSteps"


class Tracer(SimpleNamespace):
    """PyTorch's, as far as the schedule knows it."""

    ENDING = ".kineto.json"
    REQUESTED = ".requested.json"

    def begin_requested(self) -> Any:
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer

    begin = begin_requested

    def ready(self, session: Any, steps: int, seconds: float) -> bool:
        return bool(session.ended)

    def finish(self, session: Any, path: str) -> bool:
        if session.error is not None:
            raise session.error
        if session.reason:
            return False
        Path(path).write_text("trace")
        return True


def schedule(shared: Path, monkeypatch: pytest.MonkeyPatch, answer: Any, step: float = 0.1) -> tuple[Any, Any]:
    monkeypatch.setitem(sys.modules, "rightpool_agent.torch_trace", Tracer(answer=answer))
    made, log = Schedule(str(shared)), StepLog()
    log.recent.extend([step] * 10)
    leave(shared, request())
    made.requests.look(0)
    return made, log


@pytest.mark.parametrize("reason", ["ProgramProfiles", "UnsupportedVersion"])
def test_the_tracer_says_why_not(shared: Path, monkeypatch: pytest.MonkeyPatch, reason: str) -> None:
    made, log = schedule(shared, monkeypatch, reason)
    made.turn("torch", log)
    assert made.requests.state == reason in contract.TRACE_REASONS and not made.running


def test_a_tracer_that_fails_ends_nothing_else(shared: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A version of the framework that has something elsewhere, which nobody has seen yet."""
    monkeypatch.setenv("RIGHTPOOL_TRACE", "Auto")
    monkeypatch.setattr(trace_schedule, "_WARM_UP_SECONDS", 0.0)
    made, log = schedule(shared, monkeypatch, AttributeError("it was here"))
    log.steps = 100
    for _ in range(3):
        made.turn("torch", log)
    assert made.requests.state == "UnsupportedVersion" and not made.running


def test_long_steps_and_other_frameworks(shared: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made, log = schedule(shared, monkeypatch, None, step=30.0)
    made.turn("torch", log)
    assert made.requests.state == "StepTooLong"
    made, log = schedule(shared, monkeypatch, None)
    made.turn("another", log)
    assert made.requests.state == "UnsupportedFramework"


@pytest.mark.parametrize(
    ("reason", "error", "state"),
    [
        ("", None, "written"),
        ("ProgramProfiles", None, "ProgramProfiles"),
        ("", OSError(28, "No space left on device"), "NoSpace"),
        ("", RuntimeError("Kineto"), "CaptureFailed"),
    ],
)
def test_the_end_of_a_trace(
    shared: Path, monkeypatch: pytest.MonkeyPatch, reason: str, error: Exception | None, state: str
) -> None:
    session = SimpleNamespace(ended=False, reason=reason, error=error)
    made, log = schedule(shared, monkeypatch, session)
    made.turn("torch", log)
    assert made.running and made.requests.state == "capturing"
    session.ended = True
    made.turn("torch", log)
    assert not made.running and made.requests.state == state
    left = [path.name for path in (shared / "traces").iterdir()]
    assert left == ([f"{os.getpid()}.requested.json"] if state == "written" else [])
