"""An answer of Prometheus: rows of labels and a number."""

import math
from dataclasses import dataclass

from rightpool.profiles.sample import RevisionKey


class BadAnswer(Exception):
    """What came back is not what was asked for."""


@dataclass(frozen=True, slots=True)
class Row:
    """One element of an instant vector."""

    labels: dict[str, str]
    value: float

    @property
    def key(self) -> RevisionKey | None:
        """Whose reading it is, None where the labels name no Revision."""
        try:
            return RevisionKey(self.labels["namespace"], self.labels["profiledjob"], int(self.labels["revision"]))
        except (KeyError, ValueError):
            return None


def rows_of(result: object) -> list[Row]:
    """The rows of a query's result. Values that are not finite are left out: NaN says that there is nothing to say."""
    if not isinstance(result, list):
        raise BadAnswer("the answer is not a vector")
    rows = []
    for element in result:
        match element:
            case {"metric": dict(labels), "value": [float() | int(), str(text)]}:
                value = _number(text)
            case _:
                raise BadAnswer("an element of the answer is not a sample")
        if math.isfinite(value):
            rows.append(Row({str(name): str(label) for name, label in labels.items()}, value))
    return rows


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise BadAnswer("a value of the answer is not a number") from None
