"""What a job or a server must achieve: `spec.targets`."""

from __future__ import annotations

from typing import Annotated

from pydantic import WithJsonSchema

from rightpool.api.choices import BudgetAction, Objective
from rightpool.api.latency import Latency
from rightpool.api.model import ApiModel
from rightpool.api.quantities import TIME_SCHEMA, Money, Ratio
from rightpool.api.units import UnixTime


class Targets(ApiModel):
    """What the job must achieve."""

    objective: Objective = Objective.MINIMIZE_COST
    """What is made best among the placements that meet all targets."""

    min_scaling_efficiency: Ratio | None = None
    """Least share of perfect scaling, throughput / (chips × throughput of one chip), such as "0.85"."""

    min_model_flops_utilization: Ratio | None = None
    """Least model FLOPs utilization, FLOP/s of the model / (chips × peak dense FLOP/s at the job's precision), such as
    "0.35". Needs `progress.flopsPerSample`, unless the profiler counts the FLOPs of the program's step."""

    max_cost_per_hour: Money | None = None
    """Most dollars an hour, such as "40"."""

    max_cost_per_million_samples: Money | None = None
    """Most dollars for a million samples, such as "1.20"."""

    budget: Money | None = None
    """Most dollars for the whole job, such as "500"."""

    budget_action: BudgetAction = BudgetAction.WARN
    """What happens when the budget is spent. Warn: an Event and a condition say so, and the job runs on. Suspend: the
    job saves and is stopped, until the budget is raised."""

    deadline: Annotated[UnixTime, WithJsonSchema(TIME_SCHEMA)] | None = None
    """When the job must be done, such as 2026-12-01T00:00:00Z. Needs `progress.totalSamples`."""

    latency: Latency | None = None
    """How soon a server must answer. Needs `workload.server.metrics`."""

    time_to_first_token: Latency | None = None
    """How soon a server that makes tokens must send the first one. With either target of tokens the server is sized
    and moved by these, and `latency` is watched. Needs `workload.server.metrics`."""

    inter_token_latency: Latency | None = None
    """How soon after one token the next one must come. Needs `workload.server.metrics`."""
