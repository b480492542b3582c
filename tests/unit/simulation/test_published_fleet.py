"""The fleet of a published simulator, against what was published of it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from benchmarks.fleet.application import applications
from benchmarks.fleet.exact import fixed


def test_jobs_on_fixed_placements_end_at_the_second_that_was_published() -> None:
    shared = os.environ.get("RIGHTPOOL_SHARED")
    folder = Path(shared or "") / "data" / "sia"
    if shared is None or not folder.is_dir():
        pytest.skip("RIGHTPOOL_SHARED does not name a folder with data/sia")
    exact = fixed(folder, applications(folder))
    assert (exact.jobs, exact.off) == (80, 0)
