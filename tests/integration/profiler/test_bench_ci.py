"""examples/ci: the commands of its steps, run here on a real PyTorch program and a repository with a remote."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.integration.profiler.conftest import ROOT, clean_environment
from tests.integration.profiler.test_bench import SLOW_DATA

pytestmark = pytest.mark.torch

QUICK = {"MEASURED": "5", "TIMES": "1", "GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@b", "GIT_COMMITTER_NAME": "a"}


def ran(command: str, cwd: Path, environment: Mapping[str, str]) -> None:
    done = subprocess.run(["bash", "-eo", "pipefail", "-c", command], cwd=cwd, env=environment, capture_output=True)
    assert done.returncode == 0, (command, done.stderr.decode()[-2000:])


@pytest.fixture
def checkout(tmp_path: Path) -> tuple[Path, dict[str, str]]:
    """A clone whose newest commit is not on the remote's branch, and an environment in which there is `rightpool`."""
    commands = tmp_path / "bin"
    commands.mkdir()
    for name, words in (("rightpool", "-m rightpool.cli.main "), ("python", "")):
        (commands / name).write_text(f'#!/bin/sh\nexec {sys.executable} {words}"$@"\n')
        (commands / name).chmod(0o755)
    sources = os.pathsep.join((str(ROOT / "operator"), str(ROOT / "profiler_sidecar")))
    environment = clean_environment(PYTHONPATH=sources) | QUICK | {"GIT_COMMITTER_EMAIL": "a@b"}
    environment["PATH"] = f"{commands}{os.pathsep}{os.environ['PATH']}"
    ran("git init -q --bare -b main remote.git && git clone -q remote.git work", tmp_path, environment)
    work = tmp_path / "work"
    (work / "train.py").write_text(SLOW_DATA)
    ran("git checkout -q -b main; git add . && git commit -qm one && git push -q origin main", work, environment)
    (work / "train.py").write_text(SLOW_DATA + "# the same\n")
    ran("git checkout -q -b change && git commit -qam two", work, environment)
    return work, environment


def example(name: str) -> Any:
    return yaml.safe_load((ROOT / "examples/ci" / name).read_text(encoding="utf-8"))


def test_github(checkout: tuple[Path, dict[str, str]]) -> None:
    work, environment = checkout
    job = example("github.yml")["jobs"]["bench"]
    summary = work.parent / "summary.md"
    environment = job["env"] | environment
    environment |= {"GITHUB_BASE_REF": "main", "GITHUB_STEP_SUMMARY": str(summary), "PROGRAM": "python train.py 0.01"}
    for step in job["steps"]:
        if "run" in step and step["name"] != "Install":
            ran(step["run"], work, environment)
    assert "**train**: " in summary.read_text()
    assert "| run | commit |" in summary.read_text()
    assert json.loads((work / "benchmark.json").read_text())[0]["unit"] == "samples/s"
    assert (work / "history.svg").exists()
    base, head = (json.loads((work / name).read_text()) for name in ("baseline.json", "bench.json"))
    assert base["session"] == head["session"] != "" and base["commit"] != head["commit"]
    ran("git ls-remote --exit-code origin refs/heads/bench", work, environment)


def test_gitlab(checkout: tuple[Path, dict[str, str]]) -> None:
    work, environment = checkout
    job = example("gitlab.yml")["bench"]
    environment = job["variables"] | environment
    environment |= {"CI_MERGE_REQUEST_TARGET_BRANCH_NAME": "main", "PROGRAM": "python train.py 0.01"}
    for command in job["script"]:
        ran(command, work, environment)
    assert (work / "bench.md").read_text().startswith("**train**: ")
    assert "<testcase" in (work / "bench.xml").read_text()
    assert len(list((work / "runs").glob("train/*.json"))) == 1
