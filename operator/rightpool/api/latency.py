"""How soon a server must answer: `targets.latency`."""

from __future__ import annotations

from typing import Annotated, Final, NamedTuple, Self

from pydantic import ConfigDict, model_validator

from rightpool.api.model import ApiModel
from rightpool.api.quantities import Duration, lasting
from rightpool.api.rules import Rule, validations

_LIMIT: Final = lasting("1ms", "50ms", longest="1h")


class Percentile(NamedTuple):
    """A share of requests, and how soon they must be answered."""

    name: str
    """As users write it: p99."""
    share: float
    """Of the requests, 0 to 1."""
    seconds: float
    """Within which they must be answered, from when they come in."""


class Latency(ApiModel):
    """How soon most requests must be answered, from when they come in. One percentile."""

    model_config = ConfigDict(
        json_schema_extra=validations(
            Rule(
                "[has(self.p90), has(self.p95), has(self.p99)].exists_one(one, one)",
                "must name one percentile: write p99: 50ms alone, or p95 or p90 in its place",
            )
        )
    )

    p90: Annotated[Duration, _LIMIT] | None = None
    """Time within which 90% of the requests are answered."""

    p95: Annotated[Duration, _LIMIT] | None = None
    """Time within which 95% of the requests are answered."""

    p99: Annotated[Duration, _LIMIT] | None = None
    """Time within which 99% of the requests are answered, such as 50ms."""

    @property
    def percentile(self) -> Percentile:
        """The one that is named."""
        (one,) = self._named()
        return one

    @model_validator(mode="after")
    def _one(self) -> Self:
        """An object that admission has not seen is refused here."""
        if len(self._named()) != 1:
            raise ValueError("one percentile must be named: write p99: 50ms alone, or p95 or p90 in its place")
        return self

    def _named(self) -> list[Percentile]:
        named = (("p90", self.p90), ("p95", self.p95), ("p99", self.p99))
        return [Percentile(name, int(name[1:]) / 100, one.total_seconds()) for name, one in named if one is not None]
