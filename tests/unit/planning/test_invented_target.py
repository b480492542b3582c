"""A new target needs only its module, its row in the registry, and its field."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def found() -> dict[str, Any]:
    """What becomes of jobs that declare it."""
    command = [sys.executable, "-m", "tests.unit.planning.invented_target"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def test_it_rules_out_what_misses_it(found: dict[str, Any]) -> None:
    assert found["holds"]["condition"][:2] == ["True", "TargetsHold"]
    assert found["holds"]["too slow"] and found["holds"]["pool"] is None, "a slower pool would have cost less"


def test_it_is_repaired_where_that_can_be_and_judged_by_what_it_was_for(found: dict[str, Any]) -> None:
    assert (found["missed"]["decision"], found["missed"]["pool"]) == (["Move", "ChipIdle"], "a100")
    assert found["missed"]["condition"] == ["False", "ChipIdle", "300 samples/s, below targets.minThroughput 500"]
    assert found["missed"]["judged by"] == "TIME"


def test_where_nothing_holds_it_the_job_stays_and_says_so(found: dict[str, Any]) -> None:
    assert found["far"]["decision"] == ["Hold", "Unhealthy"]
    assert "samples/s, below targets.minThroughput 1000000; no other placement holds" in found["far"]["text"]
