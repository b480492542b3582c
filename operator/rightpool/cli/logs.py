"""Log lines: one JSON object each, for machines, or plain text for a terminal."""

from __future__ import annotations

import logging
import sys
from datetime import UTC, datetime
from typing import Any, Final

from pythonjsonlogger.core import RESERVED_ATTRS, merge_record_extra
from pythonjsonlogger.json import JsonFormatter

from rightpool.settings import LogFormat

# Libraries that log every request or every watch.
_VERBOSE: Final = ("kopf", "kubernetes", "asyncio", "aiohttp")


def set_up_logging(form: LogFormat, level: str) -> None:
    """Configure logging of the whole process, on standard error."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(formatter(form))
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level)
    for name in _VERBOSE:
        logging.getLogger(name).setLevel(max(logging.WARNING, logging.getLevelName(level)))
    # It warns at every try while something is unreachable. Whoever asked says so once.
    logging.getLogger("urllib3").setLevel(logging.ERROR)


def formatter(form: LogFormat) -> logging.Formatter:
    """A formatter with time, level, message, the fields of `extra`, and the stack trace of an exception."""
    if form is LogFormat.TEXT:
        return _Text()
    names = {"name": "logger", "exc_info": "stack"}
    return _Json("{name}{message}", style="{", rename_fields=names, json_default=str, json_ensure_ascii=False)


def _moment(record: logging.LogRecord) -> str:
    return datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


class _Json(JsonFormatter):
    def add_fields(self, log_data: dict[str, Any], record: logging.LogRecord, message_dict: dict[str, Any]) -> None:
        log_data.update(time=_moment(record), level=record.levelname.lower())
        super().add_fields(log_data, record, message_dict)
        if "job" in log_data:
            log_data["job"] = str(log_data["job"])  # its key is a tuple, which JSON would have as a list


class _Text(logging.Formatter):
    """12:00:01.250 INFO    research/bert: created bert-r1 (pool=a10g chips=4)"""

    def format(self, record: logging.LogRecord) -> str:
        more = merge_record_extra(record, {}, RESERVED_ATTRS)
        job = more.pop("job", None)
        about = " ".join(f"{key}={value}" for key, value in more.items())
        text = f"{_moment(record)[11:23]} {record.levelname:7} {f'{job}: ' if job else ''}{record.getMessage()}"
        if about:
            text += f" ({about})"
        if record.exc_info:
            text += "\n" + self.formatException(record.exc_info)
        return text
