"""A new gate needs only its type, its function and its row in the table."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]


def test_it_rules_out_what_it_is_about_and_says_so_in_its_words() -> None:
    command = [sys.executable, "-m", "tests.unit.planning.invented_gate"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    found = json.loads(done.stdout)
    assert found["ruled out"]["a10g"] == ["PoolSuspected", "chips of a10g have less than a third of the memory of now"]
    assert found["goes to"] != "a10g"
