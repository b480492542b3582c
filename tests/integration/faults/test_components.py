"""A campaign's cluster keeps its programs: what is killed, and what ends by itself, is started again."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from devcluster.processes import Identity, Program, Supervisor
from tests.chaos.components import Components
from tests.patience import eventually

NAME = "sleeper"


def running(components: Components) -> Identity:
    identity = components.process(NAME)
    assert identity is not None
    return identity


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    yield tmp_path
    Supervisor(tmp_path).stop([NAME], grace=0.2)


@pytest.fixture
def components(folder: Path) -> Iterator[Components]:
    program = Program(NAME, ("sleep", "3600"))
    Supervisor(folder).ensure(program)
    made = Components(folder, [program])
    yield made
    made.close()


def test_nothing_is_started_while_all_run(components: Components) -> None:
    first = running(components)
    assert components.start_ended() == []
    assert running(components) == first


def test_what_ends_by_itself_is_started_again(components: Components) -> None:
    first = running(components)
    first.signal(signal.SIGKILL)
    eventually(lambda: not first.alive(), "it has ended")
    assert components.start_ended() == [NAME]
    eventually(lambda: not components.broken, "it runs again")
    assert running(components) != first


def test_what_a_fault_killed_is_started_once(components: Components) -> None:
    first = running(components)
    components.kill(NAME, first)
    eventually(lambda: components.start_ended() == [] and not components.broken, "it runs again")
    assert running(components) != first


def test_what_a_fault_killed_is_started_also_when_the_campaign_ends(components: Components) -> None:
    """Another campaign may use the same cluster. Here the end comes first, so that no thread is faster."""
    first = running(components)
    components.close()
    components.kill(NAME, first)
    components.close()
    assert not components.broken
    assert running(components) != first


def test_what_ends_before_it_is_ready_is_started_once_more(folder: Path) -> None:
    seen, ready = folder / "seen", folder / "ready"
    script = f"if [ -e {seen} ]; then touch {ready}; exec sleep 3600; fi; touch {seen}; exit 1"
    program = Program(NAME, ("sh", "-c", script), ready=ready.exists)
    components = Components(folder, [program])
    assert components.start_ended() == [NAME]
    eventually(lambda: not components.broken, "its second start succeeds")
    components.close()
    assert running(components).alive()


def test_a_frozen_program_goes_on_when_the_campaign_ends(components: Components) -> None:
    first = running(components)
    components.freeze(NAME, first, seconds=3600.0)
    assert components.broken == {NAME}
    assert components.start_ended() == []
    components.close()
    assert not components.broken
    assert running(components) == first
    state = Path(f"/proc/{first.pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    assert state in "SR"
