"""Log lines: one JSON object each, for machines, or plain text for a terminal."""

from __future__ import annotations

import json
import logging
import sys
from datetime import UTC, datetime
from typing import Any, Final

from rightpool.settings import LogFormat

_STANDARD: Final = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}
# Libraries that say what they do for each request or each watch.
_TALKATIVE: Final = ("kopf", "urllib3", "kubernetes", "asyncio", "aiohttp")


def set_up_logging(form: LogFormat, level: str) -> None:
    """For the whole process, on standard error."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter() if form is LogFormat.JSON else TextFormatter())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level)
    for name in _TALKATIVE:
        logging.getLogger(name).setLevel(max(logging.WARNING, logging.getLevelName(level)))


def extras(record: logging.LogRecord) -> dict[str, Any]:
    """What was given as `extra`: the job, the decision, the evidence."""
    return {key: value for key, value in vars(record).items() if key not in _STANDARD and not key.startswith("_")}


def _moment(record: logging.LogRecord) -> str:
    return datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


class JsonFormatter(logging.Formatter):
    """time, level, logger, message, what was given as extra, and a stack trace where there is one."""

    def format(self, record: logging.LogRecord) -> str:
        line = {
            "time": _moment(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            **{key: value if isinstance(value, int | float) else str(value) for key, value in extras(record).items()},
        }
        if record.exc_info:
            line["stack"] = self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=False)


class TextFormatter(logging.Formatter):
    """The same for a person: 12:00:01.250 INFO research/bert: created bert-r1 (pool=a10g chips=4)."""

    def format(self, record: logging.LogRecord) -> str:
        more = extras(record)
        job = more.pop("job", None)
        about = " ".join(f"{key}={value}" for key, value in more.items())
        text = f"{_moment(record)[11:23]} {record.levelname:7} {f'{job}: ' if job else ''}{record.getMessage()}"
        if about:
            text += f" ({about})"
        if record.exc_info:
            text += "\n" + self.formatException(record.exc_info)
        return text
