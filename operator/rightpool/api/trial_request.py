"""A trial that a user has asked for by the annotation rightpool.dev/trial, and what became of the request."""

from __future__ import annotations

import hashlib
import re
from operator import not_
from typing import Annotated, Final

from pydantic import Field

from rightpool.api.record import Record
from rightpool.api.units import Count, UnixTime
from rightpool.api.value_object import value_object

_ID: Final = r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,61}[A-Za-z0-9])?"
_VALUE: Final = re.compile(rf"({_ID})(?::([a-z0-9](?:[a-z0-9.-]{{0,251}}[a-z0-9])?)?)?(?::([0-9]{{1,5}}))?")


@value_object
class TrialRequest:
    """What the annotation asks for."""

    id: str
    """Of the request. That of a value that can't be read is made of its digest, so that it is refused once."""

    pool: str | None = None
    """Where to try; None where it may tell most."""

    seconds: float | None = None
    """That are measured; None for as many as `spec.trial.duration` allows."""

    valid: bool = True
    """Whether the value could be read."""


@value_object
class TrialAnswer(Record):
    """What became of the newest request."""

    id: str
    """Of the request."""

    at: UnixTime
    """When it was answered."""

    number: Count = 0
    """N of the ProfiledJob that has begun; 0 where none has."""

    refused: Annotated[str, Field(exclude_if=not_)] = ""
    """Why none has begun."""


def read_trial_request(value: str) -> TrialRequest:
    """The annotation's value, ID, ID:POOL, ID:POOL:SECONDS or ID::SECONDS."""
    match = _VALUE.fullmatch(value.strip())
    if match is None or match[3] == "0":
        digest = hashlib.sha256(value.encode("utf-8", "replace")).hexdigest()
        return TrialRequest(f"invalid-{digest[:12]}", valid=False)
    return TrialRequest(match[1], match[2], None if match[3] is None else float(match[3]))
