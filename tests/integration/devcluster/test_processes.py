"""Processes are found again, restarted when they should be, and never mistaken for unrelated ones."""

import dataclasses
import os
import subprocess
import time
from pathlib import Path

import pytest

from devcluster.processes import Identity, Program, Supervisor, start_ticks, stop_all
from devcluster.spec import DevclusterError
from tests.patience import PATIENCE, eventually

SLEEP = Program("sleeper", ("sleep", "3600"))


@pytest.fixture
def supervisor(tmp_path: Path):
    made = Supervisor(tmp_path)
    yield made
    made.stop([record.name for record in made.records()], grace=0.2)


def identity_of(supervisor: Supervisor, name: str) -> Identity:
    record = supervisor.record(name)
    assert record is not None
    return record.identity


def wait_until_dead(identity: Identity) -> None:
    eventually(lambda: not identity.alive(), f"{identity} is dead")


def test_a_program_keeps_running_and_is_not_started_twice(supervisor: Supervisor) -> None:
    assert supervisor.ensure(SLEEP) == "started"
    first = identity_of(supervisor, "sleeper")
    assert first.alive()
    assert os.getsid(first.pid) == first.pid  # closing the terminal does not end it
    assert supervisor.ensure(SLEEP) is None
    assert identity_of(supervisor, "sleeper") == first


def test_another_supervisor_finds_it_by_the_record(supervisor: Supervisor, tmp_path: Path) -> None:
    supervisor.ensure(SLEEP)
    assert Supervisor(tmp_path).running("sleeper")


def test_a_dead_program_is_started_again(supervisor: Supervisor) -> None:
    supervisor.ensure(SLEEP)
    first = identity_of(supervisor, "sleeper")
    first.signal(9)
    wait_until_dead(first)
    assert not supervisor.running("sleeper")
    assert supervisor.ensure(SLEEP) == "restarted (it had died)"
    assert supervisor.running("sleeper")


def test_new_settings_restart_it(supervisor: Supervisor, tmp_path: Path) -> None:
    config = tmp_path / "config"
    config.write_text("one")
    program = dataclasses.replace(SLEEP, reads=(config,))
    supervisor.ensure(program)
    first = identity_of(supervisor, "sleeper")
    assert supervisor.ensure(program) is None
    config.write_text("two")
    assert supervisor.ensure(program) == "restarted (new settings)"
    assert not first.alive()


def test_a_reused_pid_is_another_process() -> None:
    """The same number with another start time, or from before a reboot, is never signalled."""
    with subprocess.Popen(["sleep", "3600"]) as unrelated:
        real = Identity.of(unrelated.pid)
        assert real is not None
        assert real.alive()
        for other in (
            dataclasses.replace(real, start_ticks=real.start_ticks - 1),
            dataclasses.replace(real, boot="another boot"),
        ):
            assert not other.alive()
            other.signal(9)
            stop_all([other], grace=0.1)
        assert unrelated.poll() is None
        assert real.alive()
        unrelated.kill()


def test_a_zombie_is_dead() -> None:
    child = subprocess.Popen(["true"])
    eventually(lambda: start_ticks(child.pid) is None, "it has ended")
    assert Path(f"/proc/{child.pid}").exists()
    assert Identity.of(child.pid) is None
    child.wait()


def test_a_name_with_parentheses_does_not_confuse_the_start_time(tmp_path: Path) -> None:
    odd = tmp_path / "a) R (b"
    odd.symlink_to("/bin/sleep")
    with subprocess.Popen([odd, "3600"]) as child:
        time.sleep(0.05)
        mine = start_ticks(os.getpid())
        theirs = start_ticks(child.pid)
        assert mine is not None
        assert theirs is not None
        assert theirs >= mine
        child.kill()


def test_a_program_that_ignores_sigterm_is_killed(supervisor: Supervisor) -> None:
    stubborn = Program("stubborn", ("sh", "-c", "trap '' TERM; echo ready; while :; do sleep 0.05; done"))
    supervisor.ensure(stubborn)
    identity = identity_of(supervisor, "stubborn")
    eventually(lambda: "ready" in supervisor.tail("stubborn"))
    supervisor.stop(["stubborn"], grace=0.3)
    assert not identity.alive()
    assert supervisor.record("stubborn") is None


def test_half_a_record_is_no_record(supervisor: Supervisor, tmp_path: Path) -> None:
    (tmp_path / "pid").mkdir()
    (tmp_path / "pid" / "broken.json").write_text('{"name": "bro')
    assert supervisor.records() == []
    assert supervisor.record("broken") is None


def test_the_error_of_a_program_that_ends_names_its_log(supervisor: Supervisor) -> None:
    program = Program("failing", ("sh", "-c", "echo no such flag; exit 1"), ready=lambda: False)
    with pytest.raises(DevclusterError, match="failing ended") as raised:
        supervisor.ensure(program)
        supervisor.wait(program, seconds=PATIENCE)
    assert "no such flag" in str(raised.value)
    assert str(supervisor.log("failing")) in str(raised.value)


def test_waiting_for_a_program_that_never_responds_ends(supervisor: Supervisor) -> None:
    program = dataclasses.replace(SLEEP, ready=lambda: False)
    supervisor.ensure(program)
    with pytest.raises(DevclusterError, match="did not answer within"):
        supervisor.wait(program, seconds=0.3)


def test_a_namespace_is_entered_without_leaving_the_mounts() -> None:
    program = dataclasses.replace(SLEEP, namespace="rp-x")
    assert program.argv() == ("nsenter", "--net=/run/netns/rp-x", "--", "sleep", "3600")
