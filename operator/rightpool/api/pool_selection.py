"""Where a ProfiledJob may run: spec.placement, and the pools that it selects."""

from __future__ import annotations

from typing import Annotated, Final

from pydantic import ConfigDict, Field

from rightpool.api.choices import Capacity
from rightpool.api.labels import LabelSelector
from rightpool.api.model import SET, ApiModel, keyed_by
from rightpool.api.quantities import Memory
from rightpool.api.rules import Rule, validations
from rightpool.api.variant import MAX_VARIANTS, Variant

MAX_POOLS: Final = 64

PoolName = Annotated[
    str,
    Field(
        min_length=1,
        max_length=63,
        json_schema_extra=validations(
            Rule(
                "self.matches(r'^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$')",
                "must be the name of one AcceleratorPool, without wildcards: write each name, or use pools.selector",
            )
        ),
    ),
]


class PoolSelection(ApiModel):
    """Which AcceleratorPools may be used. All conditions that are given must hold."""

    model_config = ConfigDict(
        json_schema_extra=validations(
            Rule(
                "!has(self.allow) || !has(self.deny) || !self.allow.exists(p, p in self.deny)",
                "must not name a pool that allow names too: remove it from one of the two",
                field=".deny",
                expression="'must not name ' + self.allow.filter(p, p in self.deny)[0] + "
                "', which allow names too: remove it from one of the two'",
            )
        )
    )

    allow: tuple[PoolName, ...] = Field(default=(), max_length=MAX_POOLS, json_schema_extra=SET)
    """Names of the pools that may be used. Empty: every pool. Before the job was measured, pools are tried in this
    order."""

    deny: tuple[PoolName, ...] = Field(default=(), max_length=MAX_POOLS, json_schema_extra=SET)
    """Names of the pools that must not be used."""

    selector: LabelSelector | None = None
    """Labels that a pool must carry."""


class PlacementSpec(ApiModel):
    """Where the job may run."""

    pools: PoolSelection = Field(default_factory=PoolSelection)
    """Which AcceleratorPools may be used."""

    capacity: Capacity = Capacity.ON_DEMAND
    """Kind of capacity. Spot is cheaper and can be taken away at any time; Any takes what is best."""

    variants: tuple[Variant, ...] = Field(default=(), max_length=MAX_VARIANTS, json_schema_extra=keyed_by("vendor"))
    """What differs where the job runs on another vendor's chips, such as the image. It is let onto the chips of each
    vendor that has a variant."""

    memory_per_chip: Memory | None = None
    """Accelerator memory that the program needs on each chip, such as 14Gi; of a server that generates tokens, without
    its key-value cache. Measured while it runs; given here, pools with too little are left out before the first
    start."""
