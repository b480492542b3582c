"""The sidecar's tasks: what fails is told once and tried again, later each time, and stops nothing else."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from rightpool_profiler.repeated import LONGEST_PAUSE, repeated


class Stopped(BaseException):
    """Ends the test, as a cancelled task ends."""


async def pauses(outcomes: Iterable[Exception | None]) -> list[float]:
    """Seconds after each of the work's outcomes."""
    found: list[float] = []
    left = iter(outcomes)

    async def work() -> None:
        for outcome in left:
            if outcome is not None:
                raise outcome
            return
        raise Stopped

    async def sleep(seconds: float) -> None:
        found.append(seconds)

    with pytest.raises(Stopped):
        await repeated("asking libtpu", work, 5.0, sleep)
    return found


async def test_what_fails_is_told_once_and_tried_again(capsys: pytest.CaptureFixture[str]) -> None:
    wrong = [ImportError("no module\x1b[2J named tpu_info"), ValueError("other"), None, TypeError("third"), None]
    assert await pauses(wrong) == [10.0, 20.0, 5.0, 10.0, 5.0]
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("rightpool_profiler: asking libtpu: ImportError: no module[2J named tpu_info;")


async def test_pauses_are_bounded() -> None:
    found = await pauses([RuntimeError("for ever")] * 2000)
    assert found == sorted(found) and found[-1] == LONGEST_PAUSE


async def test_without_an_error_nothing_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    assert await pauses([None, None]) == [5.0, 5.0]
    assert capsys.readouterr().err == ""
