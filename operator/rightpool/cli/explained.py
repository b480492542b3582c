"""What commands and the page show of a job: what is known, the decision, and what serving would take.

How serving is computed is not here (serving.py): its libraries take 0.2 s to load.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from enum import StrEnum

from rightpool.api.policy import PlacementPolicySpec
from rightpool.api.units import HOUR
from rightpool.api.value_object import value_object
from rightpool.cli.decided import Decided, decided
from rightpool.hardware.pool import Pool
from rightpool.planning.jobs.job import Job
from rightpool.planning.offers.assessment import Assessment
from rightpool.planning.offers.candidate import Candidate
from rightpool.planning.offers.evidence import Outbid
from rightpool.planning.work.forecast import Forecast, forecast
from rightpool.prediction.cost import MILLION
from rightpool.reporting.stored_job import StoredJob


class ServingVerdict(StrEnum):
    """Whether a placement would serve, or why that is not known. Part of the documents, never renamed."""

    HOLDS = "Holds"
    RATE_UNKNOWN = "RateUnknown"  # nothing is measured, or no rate can be predicted there
    STEPS_NOT_REQUESTS = "StepsNotRequests"  # measured in steps, and it is not known how many samples one has
    BATCH_UNKNOWN = "BatchUnknown"  # neither the program nor its steps tell it
    RULED_OUT = "RuledOut"  # a gate of planning says that the job can't run there
    TOO_SLOW_ALONE = "TooSlowAlone"  # one request by itself takes longer than the limit, or may
    POOL_TOO_SMALL = "PoolTooSmall"  # fewer replicas than needed fit: they would get more than they serve


@value_object
class Demand:
    """What is to be served."""

    requests: float
    """A second, of all replicas together."""
    limit: float
    """Seconds within which 99 of 100 are answered."""


@value_object
class ServedRange:
    """A number as likely to be exceeded as not, with its 80% interval."""

    low: float
    """10th percentile."""
    median: float
    """50th."""
    high: float
    """90th; infinite where there is none."""

    @property
    def document(self) -> dict[str, float | None]:
        """For programs."""
        values = {"median": self.median, "low": self.low, "high": self.high}
        return {name: value if math.isfinite(value) else None for name, value in values.items()}


@value_object
class ServingCandidate:
    """What serving would take at one placement. Numbers are None where the verdict says why."""

    candidate: Candidate
    """The placement of one replica, with its rate and price."""
    verdict: ServingVerdict
    """Whether it would serve."""
    servable: ServedRange | None = None
    """Requests a second of one replica within the limit."""
    needed: int | None = None
    """Replicas, so that the limit holds with 90%."""
    half: ServedRange | None = None
    """Seconds within which half of the requests are answered."""
    tail: ServedRange | None = None
    """Seconds for 99 of 100."""
    alone: ServedRange | None = None
    """Seconds that a request takes by itself."""
    probability: float | None = None
    """That the limit holds."""
    reach: int | None = None
    """Chips that the pool can ever give."""

    def cost(self) -> float | None:
        """Dollars an hour of all replicas."""
        if self.candidate.cost_per_hour is None or self.needed is None:
            return None
        return self.candidate.cost_per_hour * self.needed

    def cost_of_million(self, demand: Demand) -> float | None:
        """Dollars for a million requests."""
        cost = self.cost()
        return None if cost is None else cost / HOUR / demand.requests * MILLION


@value_object
class Serving:
    """The answer for a job."""

    demand: Demand
    """What was asked."""
    batch: int | None
    """Requests of a full batch of the measured program; None where unknown."""
    fixed: tuple[float, float] | None
    """Lowest and highest share of a step that is taken not to grow with its batch."""
    refusal: ServingVerdict | None
    """Why nothing is known of any placement; None where something is."""
    candidates: tuple[ServingCandidate, ...]
    """The cheapest that holds first."""


@value_object
class Explanation:
    """Everything that is shown of one job."""

    stored: StoredJob
    """As it was read."""
    job: Job
    """The same with the recorded profile, and what its pods show."""
    assessment: Assessment
    """What is evaluated now, from what was read."""
    pools: Mapping[str, Pool]
    """By name."""
    policy: PlacementPolicySpec
    """That of the cluster, or the defaults where there is none."""
    now: float
    """Unix seconds."""
    notes: tuple[str, ...]
    """What could not be looked at, as sentences."""
    outbid: Outbid | None = None
    """Why others get what is worth most to it, where the fleet's plan decides that."""
    serving: Serving | None = None
    """What serving requests would take at every placement, where that is asked."""

    @property
    def rest(self) -> Forecast:
        """Of the job where it is."""
        current = self.assessment.current
        measured = self.job.observed.profile is not None and self.job.observed.profile.complete
        return forecast(self.job, current.throughput if current is not None and measured else None, self.now)

    @property
    def decisions(self) -> tuple[Decided, Decided | None]:
        """The operator's decision, and what it would be if evaluated now, where that is another one."""
        return decided(self.stored, self.job, self.assessment, self.now)
