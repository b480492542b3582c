"""Lanes of small programs: they run side by side and clean up."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from tests.unit.suite.programs import SECONDS, hangs, python, says
from tools.suite import lanes
from tools.suite.__main__ import ROOT, main
from tools.suite.lanes import Suite, selected
from tools.suite.parts import BUILD, LANES, Command, Lane, Part
from tools.suite.results import Result


def touch(path: Path) -> Command:
    return python(f"import pathlib; pathlib.Path({str(path)!r}).touch()")


def waits_for(path: Path) -> Command:
    return python(f"import pathlib, time\nwhile not pathlib.Path({str(path)!r}).exists(): time.sleep(0.02)")


def suite_of(part: Part, folder: Path) -> subprocess.Popen[str]:
    """The whole program with one part. `folder` has the state that suites share, and a folder of logs for each part."""
    program = (
        "import pathlib\n"
        "from tools.suite import __main__ as suite\n"
        "from tools.suite.parts import Lane, Part\n"
        f"suite.LANES = (Lane(({part!r},)),)\n"
        f"suite.FOLDER = pathlib.Path({str(folder / part.name)!r})\n"
        "raise SystemExit(suite.main())\n"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "XDG_STATE_HOME": str(folder)}
    return subprocess.Popen([sys.executable, "-c", program], env=environment, stdout=subprocess.PIPE, text=True)


def exists_in_time(path: Path) -> bool:
    deadline = time.monotonic() + SECONDS
    while not path.exists() and time.monotonic() < deadline:
        time.sleep(0.02)
    return path.exists()


class Ran:
    """The results of a run."""

    def __init__(self, folder: Path, *lanes: Lane) -> None:
        self.output: list[str] = []
        self.suite = Suite(lanes, folder / "logs", self.output.append)
        self.results = {result.part: result for result in self.suite.run()}

    def __getitem__(self, part: str) -> Result:
        return self.results[part]


def test_parts_that_pass_and_fail_and_the_others_go_on(tmp_path: Path) -> None:
    ran = Ran(
        tmp_path,
        Lane((Part("good", (says("5 passed in 0.1s"),)), Part("bad", (says("no", 1),)), Part("next", (says(""),)))),
        Lane((Part("other", (says("1 failed, 1 passed in 0.1s", 1), says("2 passed in 0.1s"))),)),
    )
    assert {name: (r.ok, r.passed, r.failed) for name, r in ran.results.items()} == {
        "good": (True, 5, 0),
        "bad": (False, 0, 1),
        "next": (True, 1, 0),
        "other": (False, 3, 1),
    }
    assert "no" in ran.suite.log("bad").read_text()
    assert any("good begins" in line for line in ran.output)
    assert any("bad FAILED after" in line for line in ran.output)


def test_what_passes_only_when_it_is_run_again_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")  # four starts, most of whose time is that of plugins
    (tmp_path / "test_it.py").write_text(
        "import pathlib\n"
        "import pytest\n"
        "been = pathlib.Path(__file__).with_name('been')\n"
        "@pytest.fixture\ndef slow():\n"
        "    first = not been.exists()\n"
        "    been.touch()\n"
        "    assert not first\n"
        "def test_steady(): pass\n"
        "def test_unsteady(slow): pass\n"
        "def test_bad(): assert False\n"
    )
    command = (sys.executable, "-m", "pytest", "-q", "-o", f"cache_dir={tmp_path}/cache", "--rootdir", str(tmp_path))
    cleaned = tmp_path / "cleaned"

    def part(name: str, test: str) -> Part:
        chosen = (*command, str(tmp_path / "test_it.py"), "-k", f"steady or {test}")
        return Part(name, (chosen,), cleanup=(touch(cleaned),), again=(*chosen, "--last-failed"))

    ran = Ran(tmp_path, Lane((part("unsteady", "steady"),)))
    assert ran["unsteady"].ok and (ran["unsteady"].passed, ran["unsteady"].unsteady) == (2, 1)
    assert cleaned.exists()
    assert "ERROR" in ran.suite.log("unsteady").read_text()
    (tmp_path / "been").unlink()
    ran = Ran(tmp_path, Lane((part("bad", "bad"),)))
    assert not ran["bad"].ok and (ran["bad"].passed, ran["bad"].failed, ran["bad"].unsteady) == (2, 1, 1)


def again(folder: Path) -> Part:
    """Fails, and hangs when it is run again."""
    return Part("bad", (says("1 failed in 1.0s", 1),), again=hangs(folder / "again"))


def test_what_is_run_again_is_ended_when_it_takes_too_long(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lanes, "AGAIN_SECONDS", 1.0)
    ran = Ran(tmp_path, Lane((again(tmp_path),)))
    assert (ran["bad"].failed, ran["bad"].note) == (1, "what failed did not end within 1 s when it was run again")


def test_late_in_a_run_nothing_is_run_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lanes, "LATEST_AGAIN_SECONDS", 0.0)
    ran = Ran(tmp_path, Lane((again(tmp_path),)))
    assert (ran["bad"].failed, ran["bad"].note) == (1, "what failed was not run again: it is too late")
    assert not (tmp_path / "again").exists()


def test_lanes_run_side_by_side_and_parts_of_one_do_not(tmp_path: Path) -> None:
    one, two, three = (tmp_path / name for name in "123")
    not_yet = python(f"import pathlib; assert not pathlib.Path({str(three)!r}).exists()")
    ran = Ran(
        tmp_path,
        Lane((Part("a", (touch(one), waits_for(two)), seconds=SECONDS), Part("c", (touch(three),)))),
        Lane((Part("b", (waits_for(one), not_yet, touch(two)), seconds=SECONDS),)),
    )
    assert all(result.ok for result in ran.results.values()), ran.results


def test_one_that_hangs_is_ended_and_cleaned_up_after(tmp_path: Path) -> None:
    mark = tmp_path / "cleaned"
    cleanup = (touch(mark), says("cleaning up"))
    hanging = Part("hanging", (python("import time; time.sleep(600)"),), cleanup=cleanup, seconds=0.5)
    ran = Ran(tmp_path, Lane((hanging, Part("next", (says(""),)))))
    assert (ran["hanging"].failed, ran["hanging"].note) == (1, "nothing was said for 0.5 s")
    assert mark.exists()
    assert "cleaning up" not in (tmp_path / "logs" / "hanging.log").read_text()
    assert ran["next"].ok


def test_cleanup_runs_only_after_a_failure(tmp_path: Path) -> None:
    ran = Ran(tmp_path, Lane((Part("good", (says(""),), cleanup=(touch(tmp_path / "cleaned"),)),)))
    assert ran["good"].ok
    assert not (tmp_path / "cleaned").exists()


def test_a_part_waits_for_the_one_before_it(tmp_path: Path) -> None:
    made = tmp_path / "made"
    look = python(f"import pathlib; assert pathlib.Path({str(made)!r}).exists()")
    first = Part("first", (python("import time; time.sleep(0.5)"), touch(made)))
    ran = Ran(tmp_path, Lane((Part("then", (look,), after="first"),)), Lane((first,)))
    assert ran["then"].ok


def test_a_part_is_skipped_after_a_failed_one(tmp_path: Path) -> None:
    down = tmp_path / "down"
    then = Part("then", (says(""),), after="first")
    ran = Ran(
        tmp_path,
        Lane((Part("first", (says("", 1),)),)),
        Lane((then, Part("free", (says(""),))), down=touch(down)),
    )
    assert (ran["then"].failed, ran["then"].note) == (1, "not run, because first failed")
    assert not down.exists(), "what was not made is not removed"


def test_shared_resources_of_a_lane_are_created_and_removed(tmp_path: Path) -> None:
    up, down = tmp_path / "up", tmp_path / "down"
    look = python(f"import pathlib as p; assert p.Path({str(up)!r}).exists() and not p.Path({str(down)!r}).exists()")
    ran = Ran(tmp_path, Lane((Part("a", (look,)), Part("b", (look,))), up=touch(up), down=touch(down)))
    assert ran["a"].ok and ran["b"].ok
    assert down.exists()


def test_without_shared_resources_parts_fail(tmp_path: Path) -> None:
    down = tmp_path / "down"
    lane = Lane((Part("a", (says(""),)), Part("b", (says(""),))), up=says("no bridge", 1), down=touch(down))
    ran = Ran(tmp_path, lane)
    assert ran["a"].failed == ran["b"].failed == 1
    assert "not run, because" in ran["b"].note
    assert down.exists(), "half of it may have been made"


def test_an_interrupt_ends_everything_and_cleans_up(tmp_path: Path) -> None:
    ready, cleaned, down = (tmp_path / name for name in ("ready", "cleaned", "down"))
    suite = Suite(
        (
            Lane((Part("hanging", (hangs(ready),), cleanup=(touch(cleaned),)),), up=says(""), down=touch(down)),
            Lane((Part("also", (hangs(tmp_path / "too"),)), Part("never", (touch(tmp_path / "ran"),)))),
        ),
        tmp_path / "logs",
        lambda text: None,
    )

    def interrupt() -> None:
        while not (ready.exists() and (tmp_path / "too").exists()):
            time.sleep(0.02)
        suite.stop()

    threading.Thread(target=interrupt, daemon=True).start()
    results = {result.part: result for result in suite.run()}
    assert {name: result.note for name, result in results.items()} == dict.fromkeys(results, "interrupted")
    assert set(results) == {"hanging", "also", "never"}
    assert "torn down" in suite.log("hanging").read_text()
    assert cleaned.exists() and down.exists()
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_running_parts(tmp_path: Path, number: signal.Signals) -> None:
    ready = tmp_path / "ready"
    with suite_of(Part("hanging", (hangs(ready),)), tmp_path) as running:
        assert exists_in_time(ready)
        running.send_signal(number)
        output, _ = running.communicate(timeout=SECONDS)
    assert running.returncode == 130
    assert output.splitlines()[-1] == "0 passed, 1 failed"
    assert "torn down" in (tmp_path / "hanging" / "hanging.log").read_text()


def test_a_suite_waits_for_another_that_uses_clusters(tmp_path: Path) -> None:
    """Until that is killed here, and can't free the lock itself. One without clusters waits for nobody."""
    ready, ended, free = (tmp_path / name for name in ("ready", "ended", "free"))
    down = (says("down"),)
    begun = (touch(ready), waits_for(ended))
    with suite_of(Part("first", begun, cleanup=down), tmp_path) as first:
        assert exists_in_time(ready)
        with suite_of(Part("other", (says("1 passed in 0.1s"),)), tmp_path) as other:
            output, _ = other.communicate(timeout=SECONDS)
            assert output.endswith("1 passed, 0 failed\n") and "waiting" not in output
        with suite_of(Part("second", (touch(free),), cleanup=down), tmp_path) as second:
            assert second.stdout is not None
            line = f"suite: process {first.pid} in {ROOT} uses the test clusters of this machine; waiting for its end\n"
            assert second.stdout.readline() == line
            assert not free.exists()
            first.kill()
            output, _ = second.communicate(timeout=SECONDS)
            assert output.endswith("1 passed, 0 failed\n") and free.exists()
        ended.touch()  # of the command that the first one left behind


def test_every_part_with_clusters_waits() -> None:
    alone = {part.name: Lane((part,), lane.up) for lane in LANES for part in lane.parts}
    without = {name for name, lane in alone.items() if not lane.clustered}
    assert without == {BUILD, "lint", "unit", "profiler", "templates"}


def test_a_part_includes_the_parts_before_it() -> None:
    assert [part.name for lane in selected(LANES, ["faults"]) for part in lane.parts] == [BUILD, "faults"]
    assert [part.name for lane in selected(LANES, ["lint", "unit"]) for part in lane.parts] == ["lint", "unit"]
    assert selected(LANES, []) == list(LANES)


def refused(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *parts: str) -> str:
    """The message to a user who is not root. Nothing runs."""
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    monkeypatch.setattr("tools.suite.__main__.Suite.run", lambda suite: pytest.fail("it ran"))
    monkeypatch.setattr(sys, "argv", ["suite", *parts])
    monkeypatch.chdir(Path.cwd())
    assert main() == 1
    return capsys.readouterr().err


def test_without_root_the_message_names_the_parts_that_need_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("RIGHTPOOL_TEST_KUBECONFIG", raising=False)
    needs, can = refused(monkeypatch, capsys).splitlines()
    for part in ("cli-runtime", "stories", "faults", "security", "chart", "chaos"):
        assert part in needs and part not in can
    assert "`make lint unit`" in can and "python -m tools.suite lint unit profiler templates devcluster" in can
    needs, can = refused(monkeypatch, capsys, "lint", "faults").splitlines()
    assert "cli-runtime" not in needs and can.endswith("python -m tools.suite lint")


def test_without_root_harmless_parts_use_an_existing_cluster(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("RIGHTPOOL_TEST_KUBECONFIG", "theirs")
    needs, can = refused(monkeypatch, capsys).splitlines()
    assert "cli-runtime" in can and "chaos" in needs


def test_every_test_folder_is_in_exactly_one_part() -> None:
    root = Path(__file__).parents[3]
    words = [word for lane in LANES for part in lane.parts for command in part.commands for word in command]
    for folder in (*(root / "tests" / "integration").iterdir(), root / "tests" / "e2e", root / "tests" / "unit"):
        if folder.name == "kueue":  # its program is built by `make kueue` alone
            assert folder.relative_to(root).as_posix() in (root / "Makefile").read_text()
        elif (folder / "__init__.py").exists() or folder.name == "unit":
            assert words.count(folder.relative_to(root).as_posix()) == 1, folder
