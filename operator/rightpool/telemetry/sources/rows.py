"""An answer of Prometheus: rows of labels and a number."""

import math
from typing import Final


class BadAnswer(Exception):
    """What came back is not what was asked for."""


# The labels and the value of one element of an instant vector. Plain: of ten thousand jobs there are some 180,000 in
# every reading.
Row = tuple[dict[str, str], float]

_TEXT: Final = {str}


def rows_of(result: object) -> list[Row]:
    """The rows of a query's result. Values that are not finite are left out: NaN says that there is nothing to say."""
    if not isinstance(result, list):
        raise BadAnswer("the answer is not a vector")
    rows: list[Row] = []
    for element in result:
        try:
            labels, (at, text) = element["metric"], element["value"]
            value = float(text)
            if not math.isfinite(at):
                raise BadAnswer("a time in the answer is not finite")
            if type(text) is not str or not _TEXT.issuperset(map(type, labels.values())):
                raise BadAnswer("a label or a value of the answer is not text")
        except ValueError:
            raise BadAnswer("a value of the answer is not a number") from None
        except (TypeError, KeyError, AttributeError, OverflowError):
            raise BadAnswer("an element of the answer is not a sample") from None
        if math.isfinite(value):
            rows.append((labels, value))
    return rows
