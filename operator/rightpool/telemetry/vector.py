"""An answer of Prometheus: rows of labels and a number."""

import math
from typing import Final, NamedTuple

_TEXT: Final = {str}


class BadAnswer(Exception):
    """What came back is not what was asked for."""


class Row(NamedTuple):
    """One element of an instant vector. A tuple: of ten thousand jobs there are some 200,000 in every reading."""

    labels: dict[str, str]
    value: float


def rows_of(result: object) -> list[Row]:
    """The rows of a query's result. Values that are not finite are left out: NaN says that there is nothing to say."""
    if not isinstance(result, list):
        raise BadAnswer("the answer is not a vector")
    rows = []
    for element in result:
        try:
            labels, (_, text) = element["metric"], element["value"]
            if not {type(text), *map(type, labels.values())} <= _TEXT:
                raise BadAnswer("a label or a value of the answer is not text")
            value = float(text)
        except ValueError:
            raise BadAnswer("a value of the answer is not a number") from None
        except (TypeError, KeyError, AttributeError):
            raise BadAnswer("an element of the answer is not a sample") from None
        if math.isfinite(value):
            rows.append(Row(labels, value))
    return rows
