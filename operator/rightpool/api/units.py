"""Times, money and numbers of a status: floats in code, few digits in text on the wire.

The API carries no floats: 0.1 has no exact binary form, and clients in other languages would round it differently. What
is written loses digits once: reading it and writing it again gives the same text. What can't be below 0 is written as 0
where it is, such as the time between moments of two operators whose clocks differ. All other bounds hold on reading
alone: a status is the operator's own to write, and a condition reports what another writer has made of it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import UTC, datetime
from functools import lru_cache
from typing import Annotated, Any, Final

from pydantic import Field, GetCoreSchemaHandler, GetJsonSchemaHandler, PlainSerializer, PlainValidator, WithJsonSchema
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, core_schema

from rightpool.api.quantities import format_quantity, format_ratio

HOUR: Final = 3600.0
DAY: Final = 24.0 * HOUR

MAX_COUNT: Final = 10**9
"""Beyond what counts in a status can be."""

LAST_MOMENT: Final = datetime(9999, 12, 31, tzinfo=UTC).timestamp()
"""Unix seconds of the last day that can be written as a time."""

DIGITS: Final = 6
"""Of what the operator goes on computing with: half a millionth is far below what a window can tell."""

NO_MONEY: Final = "0.00"

_TEXT: Final = WithJsonSchema({"type": "string"})
_MOMENT: Final = WithJsonSchema({"type": "string", "format": "date-time"})
# A status that is written often must not round away what was spent since the last time.
_MONEY_PLACES: Final = 8


def read_unix_time(text: Any) -> float:
    """RFC 3339 as Unix seconds."""
    if not isinstance(text, str):
        raise ValueError("must be a time in RFC 3339, such as 2026-12-01T00:00:00Z")
    return _moment(text)


def unix_time_of(text: Any) -> float | None:
    """The same of what others write; None where it can't be read."""
    try:
        return read_unix_time(text)
    except ValueError:
        return None


@lru_cache(maxsize=1024)  # most of a status's times are the same, and those of a fleet are of few cycles
def _moment(text: str) -> float:
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        raise ValueError("needs a time zone, such as the Z of 2026-12-01T00:00:00Z")
    return moment.timestamp()


def _rfc3339(seconds: float) -> str:
    moment = datetime.fromtimestamp(seconds, UTC)
    return moment.isoformat(timespec="milliseconds" if moment.microsecond else "seconds").replace("+00:00", "Z")


@lru_cache(maxsize=1024)  # most times of a fleet's statuses are those of one cycle
def write_unix_time(seconds: float) -> str:
    """RFC 3339, to the nearest millisecond."""
    return _rfc3339(round(seconds, 3))


def write_unix_time_up(seconds: float) -> str:
    """RFC 3339, to the next millisecond."""
    milliseconds = -(-round(seconds * 1e6) // 1000)
    return _rfc3339(milliseconds / 1000)


def read_whole_unix_time(text: Any) -> float:
    """RFC 3339 as Unix seconds, the last whole one."""
    return float(math.floor(read_unix_time(text)))


def write_whole_unix_time(seconds: float) -> str:
    """RFC 3339, to the last whole second by a clock of milliseconds, as other times are written."""
    return _rfc3339(math.floor(round(seconds, 3)))


def write_money(amount: float) -> str:
    """Dollars with cents, and up to eight decimals: 12.5 → "12.50"."""
    whole, fraction = f"{amount:.{_MONEY_PLACES}f}".split(".")
    fraction = fraction.rstrip("0").ljust(2, "0")
    return f"{whole}.{fraction}" if int(whole) or int(fraction) else NO_MONEY


def write_seconds(value: float) -> str:
    """Seconds with up to three decimals: 12.5 → "12.5"."""
    return f"{value:.3f}".rstrip("0").rstrip(".")


def write_quantity(value: float) -> str:
    """Six significant digits."""
    return format_quantity(value, DIGITS)


def _least_zero(write: Callable[[float], str]) -> PlainSerializer:
    """Writes what is 0 or more. What is no number stays none: it was not measured as 0."""
    return PlainSerializer(lambda value: write(0.0 if value < 0.0 else value), return_type=str)


def _number(lowest: float | None = None) -> Any:
    return Field(ge=lowest, allow_inf_nan=False)


UnixTime = Annotated[float, PlainValidator(read_unix_time), PlainSerializer(write_unix_time, return_type=str), _MOMENT]
"""Unix seconds; RFC 3339 on the wire."""

UnixTimeUp = Annotated[
    float, PlainValidator(read_unix_time), PlainSerializer(write_unix_time_up, return_type=str), _MOMENT
]
"""The same, written never earlier than it is: a save that is read back must not look older than itself, or the very
same save would look like a newer one."""

WholeUnixTime = Annotated[
    float, PlainValidator(read_whole_unix_time), PlainSerializer(write_whole_unix_time, return_type=str), _MOMENT
]
"""The same, to the last whole second: what is not after something else is still not after it, nor in the future."""

Quantity = Annotated[float, _number(0), _least_zero(write_quantity), _TEXT]
"""A number, 0 or more, that the operator goes on computing with: six digits."""

SignedQuantity = Annotated[float, _number(), PlainSerializer(write_quantity, return_type=str), _TEXT]
"""The same, which may be below 0."""

Figure = Annotated[float, _number(0), _least_zero(format_quantity), _TEXT]
"""A measured number, 0 or more: three digits."""

Share = Annotated[float, _number(), PlainSerializer(format_ratio, return_type=str), _TEXT]
"""A part of a whole, 1 being all of it: two decimals."""

Dollars = Annotated[float, _number(0), _least_zero(write_money), _TEXT]
"""Dollars, 0 or more: eight decimals."""

Balance = Annotated[float, _number(), PlainSerializer(write_money, return_type=str), _TEXT]
"""Dollars, which may be below 0."""

Seconds = Annotated[float, _number(0), _least_zero(write_seconds), _TEXT]
"""A duration that is added up, 0 or more: milliseconds."""

Total = Annotated[int, Field(ge=0, le=10**18), WithJsonSchema({"type": "integer", "format": "int64", "minimum": 0})]
"""A whole number that may be very large."""

Count = Annotated[int, Field(ge=0, lt=MAX_COUNT), WithJsonSchema({"type": "integer"})]
"""A whole number that the operator counts with."""

Size = Annotated[int, Field(ge=1, lt=MAX_COUNT), WithJsonSchema({"type": "integer", "minimum": 1})]
"""A count that is 1 or more."""


class Word:
    """Marks an enumeration of which the schema names no members: a newer operator may know more of them."""

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.custom_error_schema(
            handler(source), custom_error_type="unknown_word", custom_error_message="is no word that is known here"
        )

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        return {"type": "string"}


WORD: Final = Word()
