"""benchmarks/bench: its repository, and what it reads of `bench compare`."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from benchmarks.bench.__main__ import compare, sets_of_pairs
from benchmarks.bench.history import BETTER, SAME, WORSE, History, check_out, make
from benchmarks.bench.on_chips import JAX_ON_CHIPS, TORCH_ON_CHIPS
from benchmarks.bench.on_processor import ON_PROCESSOR
from tests.unit.cli.test_bench import in_turns


@pytest.mark.parametrize(
    ("history", "number"),
    [(ON_PROCESSOR, 12), (TORCH_ON_CHIPS, 7), (JAX_ON_CHIPS, 7)],
    ids=["processor", "torch", "jax"],
)
def test_each_commit_but_the_first_changes_one_file(tmp_path: Path, history: History, number: int) -> None:
    commits = make(tmp_path, history)
    assert len(set(commits)) == number
    verdicts = [one.verdict for one in history.commits]
    assert verdicts.count(WORSE) == 3 and verdicts.count(BETTER) == 1
    for truth, commit in zip(history.commits, commits[1:], strict=True):
        changed = ["git", "diff", "--name-only", f"{commit}^", commit]
        assert subprocess.run(changed, cwd=tmp_path, capture_output=True, text=True).stdout == f"{truth.file}\n"
        check_out(tmp_path, commit)
        for path in tmp_path.glob("*.py"):
            compile(path.read_text(), path.name, "exec")


@pytest.mark.parametrize(("ratio", "verdict"), [(1.0, SAME), (0.5, WORSE), (2.0, BETTER)])
def test_sets_of_pairs_are_compared(tmp_path: Path, ratio: float, verdict: str) -> None:
    files = [Path(path) for path in in_turns(tmp_path, ratio, 0.003, 5)]
    found = [compare(one) for one in sets_of_pairs(files, 3, 7)]
    assert [one.verdict for one in found] == [verdict] * 7
    assert all(one.why.startswith("samples/s changed by ") for one in found)
