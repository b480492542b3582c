"""Log lines, for machines and for people."""

from __future__ import annotations

import json
import logging
import sys
from typing import Any

import pytest

from rightpool.cli.logs import formatter, set_up_logging
from rightpool.planning.jobs.job import JobKey
from rightpool.settings import LogFormat


def record(message: str, *arguments: object, level: int = logging.INFO, **extra: Any) -> logging.LogRecord:
    made = logging.getLogger("rightpool.runtime.loop").makeRecord(
        "rightpool.runtime.loop", level, "loop.py", 1, message, arguments, None, extra=extra
    )
    made.created = 1_700_000_000.25
    return made


def failed(message: str) -> logging.LogRecord:
    made = record(message, level=logging.ERROR)
    try:
        raise ValueError("wrong")
    except ValueError:
        made.exc_info = sys.exc_info()
    return made


def parsed(made: logging.LogRecord) -> dict[str, Any]:
    line = formatter(LogFormat.JSON).format(made)
    assert "\n" not in line
    found: dict[str, Any] = json.loads(line)
    return found


def test_json_line() -> None:
    assert parsed(record("created %s", "bert-r1", job=JobKey("research", "bert"), chips=4, share=0.5, done=True)) == {
        "time": "2023-11-14T22:13:20.250Z",
        "level": "info",
        "logger": "rightpool.runtime.loop",
        "message": "created bert-r1",
        "job": "research/bert",
        "chips": 4,
        "share": 0.5,
        "done": True,
    }


def test_non_ascii_text_is_not_escaped() -> None:
    assert "größer" in formatter(LogFormat.JSON).format(record("größer"))


def test_a_stack_trace_is_a_field() -> None:
    found = parsed(failed("the cycle failed"))
    assert found["message"] == "the cycle failed"
    assert found["stack"].endswith("ValueError: wrong")
    assert set(found) == {"time", "level", "logger", "message", "stack"}


def test_text_line() -> None:
    text = formatter(LogFormat.TEXT)
    line = text.format(record("created bert-r1", job=JobKey("research", "bert"), pool="a10g", chips=4))
    assert line == "22:13:20.250 INFO    research/bert: created bert-r1 (pool=a10g chips=4)"
    assert text.format(record("leader")) == "22:13:20.250 INFO    leader"
    assert text.format(failed("wrong")).splitlines()[-1] == "ValueError: wrong"


def test_libraries_log_warnings_only(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    root = logging.getLogger()
    before = root.handlers[:], root.level
    names = ("kopf", "urllib3", "kubernetes", "asyncio", "aiohttp")
    levels = {name: logging.getLogger(name).level for name in names}
    try:
        set_up_logging(LogFormat.TEXT, "INFO")
        logging.getLogger("rightpool.x").info("ours")
        logging.getLogger("kopf.activities").info("theirs")
        logging.getLogger("kopf.activities").warning("their warning")
    finally:
        root.handlers[:], root.level = before
        for name, level in levels.items():
            logging.getLogger(name).setLevel(level)
    output = capsys.readouterr().err
    assert "ours" in output and "their warning" in output and "theirs" not in output
