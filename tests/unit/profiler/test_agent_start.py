"""The start of a program that does not train: the agent brings next to nothing into it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from rightpool import contract
from rightpool_profiler.install import install

# The agent, and what it needs to see an import of a framework.
BROUGHT = frozenset({"rightpool_agent", "rightpool_agent.imports"})
# Parts of the import system, which the interpreter has anyway, and two small modules of the standard library.
LIGHT = frozenset({"importlib", "importlib._bootstrap", "importlib._bootstrap_external", "warnings", "__future__"})


def modules(program: str, environment: dict[str, str]) -> set[str]:
    """What is imported once the program has run."""
    bare = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "RIGHTPOOL"))}
    code = f"{program}\nimport sys, json\nprint(json.dumps(sorted(sys.modules)))"
    done = subprocess.run(
        [sys.executable, "-c", code], env={**bare, **environment}, check=True, capture_output=True, text=True
    )
    found: list[str] = json.loads(done.stdout)
    return set(found)


@pytest.mark.parametrize("program", ["", "import http.client, csv, sqlite3", "import numpy"])
def test_a_program_that_does_not_train_imports_nothing_heavy(program: str, tmp_path: Path) -> None:
    install(tmp_path)
    agent = {"PYTHONPATH": str(tmp_path / "agent"), contract.ENV_SHARED_DIR: str(tmp_path)}
    found, without = modules(program, agent), modules(program, {})
    assert found >= BROUGHT, "the agent has started"
    assert found - without <= BROUGHT | LIGHT
