"""An Estimate: a predicted positive quantity, lognormal, with the part of its doubt that it shares with others."""

from __future__ import annotations

import math
from collections.abc import Mapping
from operator import not_
from typing import Annotated, Any, Final

from pydantic import (
    Field,
    GetJsonSchemaHandler,
    PlainSerializer,
    PlainValidator,
    SerializerFunctionWrapHandler,
    WithJsonSchema,
    model_serializer,
)
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from rightpool.api.model import ATOMIC
from rightpool.api.premise import Premises
from rightpool.api.record import Record
from rightpool.api.units import Quantity, write_quantity
from rightpool.api.value_object import value_object

Z80: Final = 1.2815515655446004
"""Standard normal quantile of the 80% interval's upper end."""

WINDOW: Final = "window"
"""The source of doubt that all predictions from one profile share: how far its rate may be off."""

Loadings = tuple[tuple[str, float], ...]
"""Names of sources of doubt, each with its loading."""


def normal_cdf(z: float) -> float:
    """P(Z ≤ z) of a standard normal."""
    return 0.5 * math.erfc(-z / math.sqrt(2.0))


def _read_loadings(body: Any) -> Loadings:
    if not isinstance(body, Mapping):
        raise ValueError("must be numbers by name")
    loadings = tuple((str(name), float(text)) for name, text in sorted(body.items()))
    if not all(math.isfinite(loading) for _, loading in loadings):
        raise ValueError("must be finite numbers")
    return loadings


def _write_loadings(loadings: Loadings) -> dict[str, str]:
    return {name: write_quantity(loading) for name, loading in loadings}


@value_object
class Estimate(Record):
    """A predicted number with its 80% interval. Its logarithm is normal.

    Two Estimates that name the same source of doubt err together, and what they share cancels when they are compared.
    The loadings' squares are part of sd²; what is left is this Estimate's own. A model with a joint posterior gives its
    columns here.
    """

    median: Quantity
    """As likely to be exceeded as not. 0 only where it is certain, as the cost of chips that cost nothing."""

    sd: Quantity
    """Standard deviation of the natural logarithm. 0: measured, without doubt."""

    basis: Annotated[Premises, Field(exclude_if=not_, json_schema_extra=ATOMIC)] = ()
    """What it was derived from."""

    shared: Annotated[
        Loadings,
        PlainValidator(_read_loadings),
        PlainSerializer(_write_loadings),
        WithJsonSchema({"type": "object", "additionalProperties": {"type": "string"}}),
        Field(exclude_if=not_),
    ] = ()
    """Sources of doubt, each an independent standard normal, with its loading on the logarithm."""

    @property
    def low(self) -> float:
        """10th percentile."""
        return self.median * math.exp(-Z80 * self.sd)

    @property
    def high(self) -> float:
        """90th percentile."""
        return self.median * math.exp(Z80 * self.sd)

    def times(self, factor: float) -> Estimate:
        """The product with a factor that is known."""
        return Estimate(self.median * factor, self.sd, self.basis, self.shared)

    def at_most(self, most: float) -> Estimate:
        """What of it counts where nothing above this does."""
        return self if self.median <= most else Estimate(most, self.sd, self.basis, self.shared)

    def reciprocal(self, numerator: float) -> Estimate:
        """numerator / X, with nothing shared and no basis of its own: to compare two reciprocals, or explain one, take
        what they are reciprocals of."""
        return Estimate(numerator / self.median, self.sd)

    def probability_above(self, threshold: float) -> float:
        """P(X > threshold)."""
        if threshold <= 0:
            return 1.0
        if self.sd == 0:
            return 1.0 if self.median > threshold else 0.0
        return normal_cdf((math.log(self.median) - math.log(threshold)) / self.sd)

    @model_serializer(mode="wrap")
    def _with_interval(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """The interval is written for readers. It follows from what is written beside it, digit by digit."""
        body: dict[str, Any] = handler(self)
        written = Estimate(float(body["median"]), float(body["sd"]))
        return {
            "median": body.pop("median"),
            "low": write_quantity(written.low),
            "high": write_quantity(written.high),
            **body,
        }

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        document = handler.resolve_ref_schema(handler(schema))
        median, *others = document["properties"].items()
        low = {"type": "string", "description": "Exceeded with 90% probability."}
        high = {"type": "string", "description": "Exceeded with 10% probability."}
        document["properties"] = dict([median, ("low", low), ("high", high), *others])
        return document
