"""The choice of a pool: the operator's own evaluation, gates included, against what was measured on every chip."""

from __future__ import annotations

import math
from typing import Final

from benchmarks.scored import pool, profile
from rightpool.api.placement import Placement
from rightpool.api.policy import PlacementPolicySpec
from rightpool.api.profiledjob import ProfiledJobSpec
from rightpool.api.revision import Revision
from rightpool.api.state import JobState
from rightpool.api.traits import ModelTraits
from rightpool.planning.allocate.room import Room
from rightpool.planning.jobs.fleet import Fleet
from rightpool.planning.jobs.job import Job, JobKey, Observed
from rightpool.planning.jobs.revision_state import RevisionState
from rightpool.planning.offers.evaluate import evaluate
from rightpool.planning.offers.rejection import RejectionReason
from rightpool.planning.offers.select import select
from rightpool.prediction.predictor import Predictor
from rightpool.profiles.sample import Field
from tools.fit.throughput import Work

NOW: Final = 1_800_000_000.0
# No gate: the operator weighs what a move brings against what it costs and risks. Here the best is asked for.
_WEIGHED: Final = frozenset(
    {
        RejectionReason.NOT_BETTER,
        RejectionReason.BELOW_MIN_SAVINGS,
        RejectionReason.UNCERTAIN,
        RejectionReason.DOES_NOT_PAY_BACK,
    }
)
_SPEC: Final = ProfiledJobSpec.model_validate(
    {
        "workload": {"job": {"chipsPerReplica": 1, "template": {"spec": {"containers": [{"name": "main"}]}}}},
        "elasticity": {"minChips": 1, "maxChips": 1, "batch": "PerChip"},
        "adaptation": {"mode": "Auto"},
    }
)


def chosen_chips(predictor: Predictor, work: Work) -> dict[str, str]:
    """By the chip that the work runs on: the one that the operator takes for the cheapest, of those its gates let
    through. Among the chips that have a price.

    Memory in use is not published. The work ran on all of its chips, so it is what fits the smallest of them.
    """
    chips = {chip.key: chip for chip in work.comparison.chips if chip.list_price.on_demand is not None}
    pools = {made.name: made for key, chip in chips.items() for made in (pool(key.lower(), chip, 1),)}
    keys = {key.lower(): key for key in chips}
    used = 0.7 * min(chip.memory_bytes for chip in work.comparison.chips)
    jobs: dict[JobKey, Job] = {}
    for key in chips:
        here = Placement(key.lower(), 1, 1)
        readings = {Field.MEMORY_USED: used}
        made = profile(1, math.exp(work.rates[key]), readings, ModelTraits(precision=work.precision))
        name = JobKey("b", key.lower())
        ref = Revision(1, here, "h", 1, 1, NOW - 86_400.0, chips[key].list_price.on_demand, NOW - 86_400.0)
        jobs[name] = Job(
            key=name,
            spec=_SPEC,
            uid=key,
            generation=1,
            created_at=NOW - 86_400.0,
            workload_hash="h",
            state=JobState(revision=ref),
            observed=Observed(revisions={1: RevisionState(1, True, active=1, running=1)}, profile=made),
        )
    fleet = Fleet(jobs, pools, PlacementPolicySpec(), NOW)
    evaluated = evaluate(fleet, predictor)
    found = {}
    for key in chips:
        job = jobs[JobKey("b", key.lower())]
        mine = evaluated[job.key]
        assessment = select(job, mine, fleet.policy, Room(pools, ()).fits(job, mine.places))
        costs = {keys[job.state.revision.placement.pool]: math.inf} if job.state.revision else {}
        for candidate in (*assessment.candidates, *(one for one in (assessment.current,) if one is not None)):
            cost = candidate.cost_per_million
            if cost is not None and (candidate.rejection is None or candidate.rejection.reason in _WEIGHED):
                costs[keys[candidate.placement.pool]] = cost.median
        found[key] = min(costs, key=lambda chip: (costs[chip], chip))
    return found
