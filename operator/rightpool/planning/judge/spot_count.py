"""The count of what jobs meet on spot capacity: for how long they are there, and how often their pods are taken."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field, replace
from typing import Final

from rightpool.api.interruption import TAKEN
from rightpool.api.placement import CapacityType
from rightpool.api.spot_use import MAX_SPOT_USES, SpotUse
from rightpool.api.units import HOUR
from rightpool.api.value_object import value_object
from rightpool.hardware.spot_rate import aged, interruptions_a_day
from rightpool.planning.jobs.job import Job, JobKey
from rightpool.planning.jobs.tenant import tenant_of

# Of a time in which nobody looked, nothing is known.
_LONGEST_CYCLE: Final = 300.0
# What is kept with a pool changes this often at most, and where a rate is another one by this share or as much again
# was seen: every evaluation rests on it.
_SHORTEST: Final = 600.0
_NEWS: Final = 0.05

SpotUses = Mapping[str, Sequence[SpotUse]]
"""By pool."""


@value_object
class SpotCount:
    """What was counted up to one moment. It is held in memory, begun with what the pools have kept: a job is counted in
    the cycle in which it is first seen interrupted, and never again for that."""

    at: float | None = None
    """Unix seconds; None before the first cycle."""
    uses: Mapping[str, Mapping[str, SpotUse]] = field(default_factory=dict)
    """By pool and tenant."""
    interrupted: frozenset[JobKey] = frozenset()
    """Jobs whose pods were taken away, and have not caught up."""

    def after(self, jobs: Iterable[Job], kept: SpotUses, now: float) -> SpotCount:
        """With what has come since. kept: by the pools, those that are gone left out."""
        on_spot = [job for job in jobs if _on_spot(job)]
        interrupted = frozenset(job.key for job in on_spot if _interrupted(job))
        seconds = 0.0 if self.at is None else min(max(now - self.at, 0.0), _LONGEST_CYCLE)
        found = {pool: _newest(self.uses.get(pool, {}), uses) for pool, uses in kept.items()}
        begun: set[tuple[str, str]] = set()
        for job in on_spot:
            assert job.state.revision is not None
            pool, tenant = job.state.revision.placement.pool, tenant_of(job)
            new = self.at is not None and job.key in interrupted - self.interrupted
            holds = job.child is not None and job.child.holding > 0
            if pool not in found or not (new or holds):
                continue
            use = aged(found[pool].get(tenant) or SpotUse(tenant, now), now)
            first = holds and (pool, tenant) not in begun
            if first:
                begun.add((pool, tenant))
            found[pool][tenant] = replace(
                use,
                interruptions=use.interruptions + new,
                hours=use.hours + holds * seconds / HOUR,
                span=use.span + first * seconds / HOUR,
            )
        return SpotCount(now, found, interrupted)

    def to_keep(self, kept: SpotUses) -> dict[str, tuple[SpotUse, ...]]:
        """What pools are to keep of it: what they have where there is hardly any news."""
        found: dict[str, tuple[SpotUse, ...]] = {}
        for pool, uses in kept.items():
            known = tuple(uses)
            seen = sorted(self.uses.get(pool, {}).values(), key=lambda use: (-use.span, use.tenant))[:MAX_SPOT_USES]
            found[pool] = tuple(sorted(seen, key=lambda use: use.tenant)) if _news(known, seen) else known
        return found


def _newest(counted: Mapping[str, SpotUse], kept: Sequence[SpotUse]) -> dict[str, SpotUse]:
    """By tenant, what was counted up to later: another operator may count those whose jobs this one does not see."""
    found = {use.tenant: use for use in kept}
    return found | {
        tenant: use for tenant, use in counted.items() if tenant not in found or use.as_of >= found[tenant].as_of
    }


def _on_spot(job: Job) -> bool:
    revision = job.state.revision
    return (
        revision is not None
        and revision.placement.capacity is CapacityType.SPOT
        and job.state.finished is None
        and not job.deleting
    )


def _interrupted(job: Job) -> bool:
    return job.state.interruption is not None and job.state.interruption.id == TAKEN


def _news(known: Sequence[SpotUse], seen: Sequence[SpotUse]) -> bool:
    """Whether what was seen tells more than what is known, after long enough."""
    before, now = {use.tenant: use for use in known}, max((use.as_of for use in seen), default=0.0)
    if not seen or now - max((use.as_of for use in known), default=-_SHORTEST) < _SHORTEST:
        return False
    for use in seen:
        earlier = before.get(use.tenant)
        if earlier is None:
            return True
        rates = [interruptions_a_day([one], 1.0, one.tenant, now) for one in (earlier, use)]
        if abs(rates[1] - rates[0]) > _NEWS * rates[0]:
            return True
    return False
