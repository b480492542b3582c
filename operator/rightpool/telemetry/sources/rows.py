"""An answer of Prometheus: rows of labels and a number."""

import math
from collections.abc import Iterator, Sequence
from typing import Final, TypedDict

import msgspec


class BadAnswer(Exception):
    """What came back is not what was asked for."""


# The labels and the value of one element of an instant vector. Plain: of ten thousand jobs there are some 180,000 in
# every reading.
Row = tuple[dict[str, str], float]


class _Point(msgspec.Struct, array_like=True, frozen=True, gc=False):
    at: float
    """Unix seconds of the query."""
    text: str
    """The value; a number is written as text, because JSON has no NaN."""


class _Element(msgspec.Struct, frozen=True, gc=False, rename={"labels": "metric", "point": "value"}):
    """An element of an instant vector, as it is on the wire."""

    labels: dict[str, str]
    point: _Point


class _Data(TypedDict):
    result: list[msgspec.Raw]


class Answer(TypedDict):
    """The answer to an instant query, with its elements as they are on the wire."""

    data: _Data


# Typed, because a decoder that knows what comes takes half the time of one that does not.
_ANSWER: Final = msgspec.json.Decoder(Answer)
_ELEMENT: Final = msgspec.json.Decoder(_Element)


def vector_of(body: bytes) -> Answer:
    """The answer in a body. Raises ValueError where it is none."""
    return _ANSWER.decode(body)


def rows_of(elements: Sequence[msgspec.Raw]) -> Iterator[Row]:
    """The rows of a query's result. Values that are not finite are left out: NaN says that there is nothing to say.

    One at a time: all of ten thousand jobs would take ten times the memory of the answer. Raises BadAnswer at an
    element that can't be read.
    """
    decode = _ELEMENT.decode
    for raw in elements:
        try:
            element = decode(raw)
            value = float(element.point.text)
        except ValueError as error:
            raise BadAnswer(f"an element of the answer is no sample: {error}") from None
        if math.isfinite(value):
            yield element.labels, value
