"""`rightpool bench compare`: verdicts by what two files say, and `bench run` of programs that can't be measured."""

from __future__ import annotations

import json
import math
import random
import subprocess
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from rightpool.cli.main import main
from rightpool.profiles.shares import parts_of_step
from tests.unit.profiles.windows import profile

WIRE: dict[str, Any] = {
    "kind": "BenchProfile",
    "name": "resnet",
    "at": "2026-11-28T12:00:00+00:00",
    "commit": "0" * 40,
    "command": ["python", "train.py"],
    "chip": "NVIDIA H200",
    "accelerator": "H200-SXM-141GB",
    "chips": 1,
    "unit": "Samples",
    "session": "",
    "windowSeconds": 3.0,
    "takenByOthers": 0.0,
    "warmUpSeconds": 8.0,
    "bottleneck": "Compute",
    "finding": "it computes",
    "lever": "",
    "shares": {"input": 0.02, "saving": 0.0, "host": 0.03, "communication": 0.0, "chip": 0.95},
    "flopsUtilization": 0.5,
    "memoryBytes": 2.0**33,
    "joulesPerUnit": 0.7,
    "stepP99Seconds": 0.2,
    "model": {"precision": "bf16", "batch": 64},
    "readings": {"chipBusy": 0.95},
}


def written(folder: Path, rate: float, noise: float = 0.01, seed: int = 0, **changes: object) -> str:
    draw = random.Random(seed)
    windows = [rate * math.exp(draw.gauss(0.0, noise)) for _ in range(20)]
    path = folder / f"{rate:g}-{seed}.json"
    path.write_text(
        json.dumps({**WIRE, "rate": sum(windows) / 20, "runs": [sum(windows) / 20], "windows": windows, **changes})
    )
    return str(path)


@pytest.mark.parametrize(
    ("rate", "noise", "status", "says"),
    [
        (1000.0, 0.01, 0, "no worse"),
        (1100.0, 0.01, 0, "better"),
        (900.0, 0.01, 1, "worse"),
        (500.0, 0.05, 1, "worse"),
        (920.0, 0.2, 3, "not known"),
    ],
)
def test_rates_on_equal_chips(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], rate: float, noise: float, status: int, says: str
) -> None:
    before, after = written(tmp_path, 1000.0, noise), written(tmp_path, rate, noise, seed=1)
    assert main(["bench", "compare", before, after]) == status
    assert f"**resnet**: {says}: samples/s changed by " in capsys.readouterr().out


def test_equal_runs_are_never_called_worse(tmp_path: Path) -> None:
    for seed in range(0, 60, 2):
        before, after = (written(tmp_path, 1000.0, 0.05, one) for one in (seed, seed + 1))
        assert main(["bench", "compare", before, after]) != 1, seed


def test_what_moved_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shares = {"input": 0.22, "saving": 0.0, "host": 0.02, "communication": 0.0, "chip": 0.76}
    before, after = written(tmp_path, 1000.0), written(tmp_path, 800.0, seed=1, shares=shares, bottleneck="InputBound")
    assert main(["bench", "compare", before, after]) == 1
    assert "waiting for input went from 2% to 22% of a step" in capsys.readouterr().out


def test_parts_of_a_step_are_known_where_communication_is_not() -> None:
    parts = {"input": 0.75, "saving": 0.0, "host": pytest.approx(0.05), "chip": 0.2}
    assert parts_of_step(profile(2, chip_busy=0.2, input_wait=0.75)) == parts
    assert parts_of_step(profile(1, chip_busy=0.2, input_wait=0.75)) == {**parts, "communication": 0.0}
    with_communication = parts_of_step(profile(2, chip_busy=0.2, input_wait=0.75, exposed_communication=0.1))
    assert with_communication == {**parts, "chip": 0.1, "communication": 0.1}


def test_other_chips_are_compared_by_utilization(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    other: dict[str, Any] = {"chip": "NVIDIA A100-SXM4-80GB", "accelerator": "A100-SXM4-80GB"}
    before = written(tmp_path, 1000.0)
    assert main(["bench", "compare", before, written(tmp_path, 400.0, seed=1, **other)]) == 0
    assert main(["bench", "compare", before, written(tmp_path, 400.0, seed=2, **other, flopsUtilization=0.4)]) == 1
    assert main(["bench", "compare", before, written(tmp_path, 400.0, seed=3, **other, flopsUtilization=None)]) == 3
    assert "1 × NVIDIA H200 and 1 × NVIDIA A100-SXM4-80GB differ" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("rate", "noise", "tag"), [(1000.0, 0.01, None), (900.0, 0.01, "failure"), (920.0, 0.2, "skipped")]
)
def test_junit(tmp_path: Path, rate: float, noise: float, tag: str | None) -> None:
    before, after = written(tmp_path, 1000.0, noise), written(tmp_path, rate, noise, seed=1)
    report = tmp_path / "junit.xml"
    main(["bench", "compare", before, after, "--junit", str(report)])
    case = ElementTree.parse(report).getroot().find("testcase")
    assert case is not None and case.get("name") == "resnet"
    assert [one.tag for one in case if one.tag != "system-out"] == ([] if tag is None else [tag])


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"rate": -1.0}, "rate: "),
        ({"windows": [1.0]}, "windows: "),
        ({"shares": {"host": 2.0}}, "shares.host: "),
        ({"kind": "Pod"}, "kind: "),
        ({"more": 1}, "more: "),
    ],
)
def test_a_file_that_is_no_profile_is_named_with_its_field(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], changes: dict[str, object], says: str
) -> None:
    good, bad = written(tmp_path, 1000.0), tmp_path / "bad.json"
    bad.write_text(json.dumps({**json.loads(Path(good).read_text()), **changes}))
    assert main(["bench", "compare", good, str(bad)]) == 2
    assert f"{bad}, line 1, is no profile of `bench run`: {says}" in capsys.readouterr().err


def test_a_file_that_is_missing_or_no_json_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    good, bad = written(tmp_path, 1000.0), tmp_path / "bad.json"
    assert main(["bench", "compare", good, str(bad)]) == 2
    bad.write_text("{")
    assert main(["bench", "compare", str(bad), good]) == 2
    assert capsys.readouterr().err.count(str(bad)) == 2


@pytest.mark.parametrize(
    ("command", "status", "says"),
    [
        ([sys.executable, "-c", "raise SystemExit(3)"], 4, "the program ended with exit code 3"),
        (["/no/such/program"], 4, "/no/such/program does not run: No such file"),
        ([sys.executable, "-c", "pass"], 3, "no step was seen"),
        ([], 2, "name the program behind --"),
    ],
)
def test_a_program_that_can_not_be_measured(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], command: list[str], status: int, says: str
) -> None:
    output = tmp_path / "bench.json"
    assert main(["bench", "run", "-o", str(output), "--", *command]) == status
    assert says in capsys.readouterr().err
    assert not output.exists()


# --- runs that take turns --------------------------------------------------------------------------------------------


def in_turns(folder: Path, ratio: float, noise: float, pairs: int, session: str = "s") -> tuple[str, str]:
    """Two files whose runs met the same machine: a neighbour takes up to half of it, from pair to pair."""
    draw = random.Random(7)
    machine = [draw.uniform(0.5, 1.0) for _ in range(pairs)]
    files = []
    for which, rate, of in (("before", 1000.0, session), ("after", 1000.0 * ratio, session and "s")):
        runs = [rate * one * math.exp(draw.gauss(0.0, noise)) for one in machine]
        path = folder / f"{which}.json"
        mean = sum(runs) / pairs
        path.write_text(json.dumps({**WIRE, "rate": mean, "runs": runs, "windows": runs, "session": of}))
        files.append(str(path))
    return files[0], files[1]


@pytest.mark.parametrize(("ratio", "status"), [(1.0, 0), (0.8, 1), (1.3, 0)], ids=["equal", "slower", "faster"])
def test_pairs_meet_the_same_machine(tmp_path: Path, ratio: float, status: int) -> None:
    assert main(["bench", "compare", *in_turns(tmp_path, ratio, 0.02, 6)]) == status


def test_without_turns_the_machine_counts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = in_turns(tmp_path, 0.8, 0.02, 6, session="")
    assert main(["bench", "compare", *files]) == 3
    assert "--against)" in capsys.readouterr().out
    assert main(["bench", "compare", *files, "--strict"]) == 1


@pytest.mark.parametrize(
    ("reading", "says"), [("throttle", "a fault held its clocks down"), ("others", "others worked on its chip")]
)
def test_a_disturbed_run_fails_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], reading: str, says: str
) -> None:
    before = written(tmp_path, 1000.0)
    assert main(["bench", "compare", before, written(tmp_path, 500.0, seed=1, readings={reading: 0.3})]) == 3
    assert f"the candidate was disturbed, {says}" in capsys.readouterr().out


def test_a_precision_that_changed_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    after = written(tmp_path, 500.0, seed=1, model={"precision": "fp32"})
    assert main(["bench", "compare", written(tmp_path, 1000.0), after]) == 1
    assert "it computes in fp32, and did in bf16" in capsys.readouterr().out


def test_an_annotation_and_measures_for_github(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    out = tmp_path / "benchmark.json"
    after = written(tmp_path, 500.0, seed=1)
    assert main(["bench", "compare", written(tmp_path, 1000.0), after, "--benchmark", str(out)]) == 1
    assert capsys.readouterr().err.startswith("::error title=resnet::worse: ")
    measures = json.loads(out.read_text())
    assert [one["unit"] for one in measures] == ["samples/s", "%"]
    assert measures[0]["value"] == json.loads(Path(after).read_text())["rate"] and measures[0]["extra"]


# --- what is kept ----------------------------------------------------------------------------------------------------


def git(folder: Path, *words: str) -> str:
    name = ["-c", "user.name=a", "-c", "user.email=a@b"]
    return subprocess.run(["git", *name, *words], cwd=folder, capture_output=True, text=True, check=True).stdout


@pytest.mark.parametrize("branch", [False, True], ids=["folder", "branch"])
def test_runs_are_kept_and_shown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, branch: bool
) -> None:
    work = tmp_path / "work"
    work.mkdir()
    git(work, "init", "-q", "-b", "main")
    (work / "a").write_text("a")
    git(work, "add", "a")
    git(work, "commit", "-qm", "a")
    (work / "a").write_text("changed")
    monkeypatch.chdir(work)
    place = "git:bench/runs" if branch else str(tmp_path / "runs")
    assert main(["bench", "fetch", "--from", place, "--name", "resnet"]) == 2
    for day, rate in enumerate((1000.0, 1010.0, 800.0), 1):
        run = written(tmp_path, rate, seed=day, at=f"2026-11-0{day}T00:00:00+00:00", commit=str(day) * 40)
        assert main(["bench", "store", run, "--in", place]) == 0
    assert main(["bench", "fetch", "--from", place, "--name", "other"]) == 3
    fetched = tmp_path / "baseline.json"
    assert main(["bench", "fetch", "--from", place, "--name", "resnet", "-o", str(fetched)]) == 0
    assert json.loads(fetched.read_text())["commit"] == "3" * 40
    capsys.readouterr()
    drawing = tmp_path / "history.svg"
    assert main(["bench", "history", "--from", place, "--name", "resnet", "--svg", str(drawing)]) == 0
    rows = capsys.readouterr().out.splitlines()[2:]
    assert [row.split(" | ")[1] for row in rows] == ["1" * 12, "2" * 12, "3" * 12]
    assert "no worse" in rows[1] and "| worse: samples/s changed by -2" in rows[2]
    root = ElementTree.parse(drawing).getroot()
    colours = [one.get("fill") for one in root.iter("{http://www.w3.org/2000/svg}circle")]
    assert len(set(colours[:2])) == 1 and colours[2] not in colours[:2]
    assert git(work, "status", "--porcelain") == " M a\n"  # nothing of the user's is touched
    if branch:
        assert git(work, "log", "--format=%s", "bench/runs").count("\n") == 3


def test_a_revision_that_is_not_there(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    git(tmp_path, "init", "-q")
    monkeypatch.chdir(tmp_path)
    assert main(["bench", "run", "--against", "v1", "--baseline", "b.json", "--", "true"]) == 2
    assert "git rev-parse: " in capsys.readouterr().err
    assert main(["bench", "run", "--against", "v1", "--", "true"]) == 2
    assert "belong together" in capsys.readouterr().err
