"""The ConfigMaps that hold the records of ended jobs: parts, numbered as they are begun, each of so many records."""

from __future__ import annotations

import base64
import gzip
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from rightpool.api.ended_job import BadLine, EndedJob, read_ended_jobs
from rightpool.contract import LABEL_ENDED_JOBS

ENDED_PREFIX: Final = "rightpool-ended-jobs."
RECORDS: Final = "records.jsonl.gz"
MAX_UNPACKED: Final = 32_000_000
"""Bytes. What unpacks to more was not written by an operator."""


@dataclass(slots=True)
class EndedJobsPart:
    """Some records, as they are stored."""

    lines: list[str] = field(default_factory=list)
    """Of them all."""
    uids: set[str] = field(default_factory=set)
    """Of their jobs."""
    size: int = 0
    """Bytes of the lines."""
    newest: float = 0.0
    """Unix seconds of the newest end."""

    def add(self, record: EndedJob) -> None:
        """One more."""
        self.lines.append(record.line)
        self.size += len(self.lines[-1]) + 1
        self.uids.add(record.uid)
        self.newest = max(self.newest, record.ended)

    def full(self, records: int, size: int) -> bool:
        """Whether it has so many records, or so many bytes."""
        return len(self.lines) >= records or self.size >= size


def part_number(body: Mapping[str, Any]) -> int | None:
    """The number of the part that such an object holds; None where it does not say."""
    text = ((body.get("metadata") or {}).get("labels") or {}).get(LABEL_ENDED_JOBS)
    return int(text) if isinstance(text, str) and text.isdecimal() and len(text) < 10 else None


def part_object(own: str, number: int, part: EndedJobsPart, version: str | None) -> dict[str, Any]:
    """The object that holds a part. own: the operator's namespace."""
    about: dict[str, Any] = {
        "name": f"{ENDED_PREFIX}{number}",
        "namespace": own,
        "labels": {LABEL_ENDED_JOBS: str(number)},
    }
    if version is not None:
        about["resourceVersion"] = version
    packed = gzip.compress("\n".join(part.lines).encode(), mtime=0)
    return {"metadata": about, "binaryData": {RECORDS: base64.b64encode(packed).decode()}}


def lines_of(body: Mapping[str, Any]) -> list[str]:
    """The lines that such an object holds. Raises ValueError where they can't be read."""
    packed = (body.get("binaryData") or {}).get(RECORDS)
    if packed is None:
        raise ValueError(f"binaryData has no {RECORDS}")
    try:
        unpacker = zlib.decompressobj(wbits=31)
        text = unpacker.decompress(base64.b64decode(packed, validate=True), MAX_UNPACKED).decode()
        if not unpacker.eof:
            raise ValueError(f"{RECORDS} is cut off, or unpacks to more than {MAX_UNPACKED // 10**6} MB")
    except zlib.error as error:
        raise ValueError(f"{RECORDS} is no gzip: {error}") from error
    return text.splitlines()


def read_records(body: Mapping[str, Any]) -> tuple[list[EndedJob], list[BadLine]]:
    """The records of such an object, and the lines that are none. Raises ValueError where none can be read."""
    return read_ended_jobs(lines_of(body))


def read_part(body: Mapping[str, Any]) -> EndedJobsPart:
    """The same to go on with: what is no record is left out. Raises ValueError where none can be read."""
    part = EndedJobsPart()
    for record in read_records(body)[0]:
        part.add(record)
    return part
