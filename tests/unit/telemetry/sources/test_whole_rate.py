"""Rates over ranges that scrapes do not cover are no rates, by `promtool test rules`."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from devcluster import deps
from rightpool.telemetry.sources.whole_rate import whole_rate

RATE, EVERY, RANGE = 2440, 10, 40
OLD = 60  # scrapes before anything happens
GAP = 27  # scrapes that are missed: four and a half minutes


def check_rates(tmp_path: Path, values: str, scrapes: list[int], on: str) -> None:
    """Compare with what is right after so many scrapes: RATE, or nothing."""

    def answer(at: int, *, known: bool) -> dict[str, Any]:
        samples = [{"labels": '{pod="p"}', "value": RATE}] if known else []
        expression = f"round(sum by (pod) {whole_rate('samples_total', RANGE, on)})"
        return {"expr": expression, "eval_time": f"{at * EVERY}s", "exp_samples": samples}

    first = scrapes[0]
    tests = [answer(at, known=at in scrapes) for at in range(first - 5, first + 6)]
    # promtool leaves out the newest samples of the last time that it is asked about.
    tests.append({"expr": "vector(0)", "eval_time": f"{(first + 9) * EVERY}s", "exp_samples": [{"value": 0}]})
    series = [{"series": 'samples_total{pod="p"}', "values": values}]
    document = {"tests": [{"interval": f"{EVERY}s", "input_series": series, "promql_expr_test": tests}]}
    path = tmp_path / "rate.yaml"
    path.write_text(yaml.safe_dump(document))
    program = deps.find("promtool")
    assert program is not None, "promtool comes with the Debian package prometheus: python -m devcluster deps"
    result = subprocess.run([program, "test", "rules", str(path)], capture_output=True, text=True, timeout=240)
    assert result.returncode == 0, result.stdout + result.stderr


@pytest.mark.parametrize("on", ["", "pod"])
def test_after_a_gap_there_is_no_rate_until_scrapes_cover_it(tmp_path: Path, on: str) -> None:
    begins = OLD + GAP + 1  # the first scrape after the gap
    after = begins * RATE * EVERY
    values = f"0+{RATE * EVERY}x{OLD} _x{GAP} {after}+{RATE * EVERY}x30"
    check_rates(tmp_path, values, list(range(begins + 3, begins + 20)), on)


def test_a_series_has_no_rate_until_it_is_as_old_as_the_range(tmp_path: Path) -> None:
    check_rates(tmp_path, f"_x{OLD} 0+{RATE * EVERY}x30", list(range(OLD + 4, OLD + 20)), "pod")
