"""Counts are those of pytest, and never empty without a failure."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from tools.suite.results import FAILURE_LINES, FAILURE_WIDTH, Result, counts, failures, run_again, table, tail, total


@pytest.mark.parametrize(
    ("output", "status", "expected"),
    [
        ("....\n4 passed in 0.12s\n", 0, {"passed": 4}),
        (
            "== 2 failed, 3 passed, 1 skipped, 4 warnings, 1 error in 83.20s (0:01:23) ==\n",
            1,
            {"failed": 2, "passed": 3, "skipped": 1, "error": 1},
        ),
        ("1 passed in 1s\n...\n2 passed in 2.0s\n", 0, {"passed": 2}),
        ("3 passed in 1.0s\n", 1, {"passed": 3, "failed": 1}),  # such as an error when the session ends
        ("no tests ran in 0.01s\n", 5, {"failed": 1}),
        ("All checks passed!\n", 0, {"passed": 1}),
        ("Found 3 errors in 1 file\n", 1, {"failed": 1}),
        ("", -9, {"failed": 1}),
    ],
)
def test_counts(output: str, status: int, expected: dict[str, int]) -> None:
    assert counts(output, status) == Counter(expected)


def test_counts_of_a_real_run(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(
        "import pytest\n"
        "def test_one(): pass\n"
        "def test_two(): assert False\n"
        "@pytest.mark.skip\ndef test_three(): pass\n"
        "@pytest.fixture\ndef broken(): raise ValueError\n"
        "def test_four(broken): pass\n"
    )
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    assert counts(done.stdout, done.returncode) == Counter(passed=1, failed=1, skipped=1, error=1)


def test_the_last_line_sums_them_up() -> None:
    results = [Result("a", 1, Counter(passed=3, skipped=1)), Result("b", 2, Counter(passed=1, failed=1, error=1))]
    assert total(results) == "4 passed, 2 failed"
    assert total([]) == "0 passed, 0 failed"


def test_the_table_has_a_line_for_each_part() -> None:
    text = table(
        [
            Result("unit", 61.2, Counter(passed=3), cpu=99.6),
            Result("faults", 5, Counter(failed=1), "interrupted"),
            Result("chart", 7, run_again(Counter(passed=2, error=3), Counter(passed=3))),
            Result("stories", 7, run_again(Counter(passed=2, failed=1, error=2), Counter(passed=2, failed=1))),
        ]
    )
    assert [line.split() for line in text.splitlines()[1:]] == [
        ["unit", "ok", "61", "s", "100", "s", "3", "passed"],
        ["faults", "FAILED", "5", "s", "0", "s", "1", "failed;", "interrupted"],
        ["chart", "UNSTEADY", "7", "s", "0", "s", "5", "passed,", "3", "unsteady"],
        ["stories", "FAILED", "7", "s", "0", "s", "1", "failed,", "4", "passed,", "2", "unsteady"],
    ]


def test_the_tail_of_a_log(tmp_path: Path) -> None:
    (tmp_path / "log").write_text("\n".join(map(str, range(100))))
    assert tail(tmp_path / "log").splitlines() == [str(n) for n in range(40, 100)]
    assert tail(tmp_path / "none") == "(it wrote nothing)"


def test_the_failures_of_a_log_are_those_it_names(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("a\nFAILED one - assert False\nERROR two\n1 failed, 1 error in 2s\n")
    assert failures(log) == "FAILED one - assert False\nERROR two"
    log.write_text("\n".join(f"FAILED {n} {'x' * 1000}" for n in range(FAILURE_LINES + 5)))
    *lines, last = failures(log).splitlines()
    assert len(lines) == FAILURE_LINES and all(len(line) == FAILURE_WIDTH for line in lines)
    assert last == "and 5 more"


def test_the_failures_of_a_log_that_names_none_are_its_end(tmp_path: Path) -> None:
    (tmp_path / "log").write_text("\n".join(map(str, range(100))))
    assert failures(tmp_path / "log").splitlines() == [str(n) for n in range(100 - FAILURE_LINES, 100)]
    assert failures(tmp_path / "none") == "(it wrote nothing)"
