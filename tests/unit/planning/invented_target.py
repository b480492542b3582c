"""A target that nobody has declared yet, `targets.minThroughput`: its module, its row in the registry and its field.

Run by itself, it prints what becomes of jobs that declare it: registries are read when their readers are imported.
"""

from __future__ import annotations

import json
from typing import Any

from rightpool.api.conditions import Reason
from rightpool.api.profiledjob import ProfiledJobSpec
from rightpool.api.targets import Targets
from rightpool.api.value_object import value_object
from rightpool.planning.judge.yardstick import Yardstick
from rightpool.planning.offers.offers import Offers, OneOffer
from rightpool.planning.offers.rejection import RejectionReason, TargetMissed
from rightpool.planning.offers.targets import registry
from rightpool.planning.offers.targets.target import SAME, JobTarget
from rightpool.prediction.columns import Floats

# --- api/profiledjob.py ----------------------------------------------------------------------------------------------


class WiderTargets(Targets):
    """With one field more."""

    min_throughput: float | None = None


class WiderSpec(ProfiledJobSpec):
    """With these targets."""

    targets: WiderTargets = WiderTargets()


# --- planning/offers/targets/throughput.py ---------------------------------------------------------------------------


@value_object
class TooSlow(TargetMissed):
    """Fewer samples a second than are asked for."""

    reason = RejectionReason.SUSPECTED
    rate: float
    least: float

    def text(self) -> str:
        return f"{self.rate:.0f} samples/s, below targets.minThroughput {self.least:.0f}"


class Throughput(JobTarget):
    """At least so many samples a second. Its reasons are lent: the API's own are listed in api/conditions.py."""

    field = "min_throughput"
    reason = RejectionReason.SUSPECTED
    missed = Reason.CHIP_IDLE
    unreachable = Reason.UNHEALTHY
    yardstick = Yardstick.TIME

    def needed(self, rows: Offers) -> Floats:
        return rows.limit(self.field)

    def relaxed(self, here: Offers) -> Floats:
        return here.rate / (1.0 + SAME)

    def explain(self, offer: OneOffer) -> TargetMissed:
        return TooSlow(offer.rate, offer.limit(self.field))


# --- planning/offers/targets/registry.py -----------------------------------------------------------------------------


registry.TARGETS = (*registry.TARGETS, Throughput())  # type: ignore[misc]


def main() -> None:
    """One job where it is missed and can be repaired, one where it can't, one that would leave it to save money."""
    from rightpool.api.placement import Placement
    from rightpool.reporting.conditions.context import Context
    from rightpool.reporting.conditions.targets import targets_met
    from rightpool.reporting.decision_texts import decision_text
    from tests.unit.planning.jobs import NOW, judged, running, spec
    from tests.unit.prediction.fixtures import A10G, A100

    def found(least: float, where: str, rate: float) -> dict[str, Any]:
        made = spec().model_dump(by_alias=True) | {"targets": {"minThroughput": least}}
        job = running(Placement(where, 4, 1), rate, made=WiderSpec.model_validate(made))
        assessment = judged(job, {"a100": A100, "a10g": A10G})
        condition, decision = targets_met(job, Context(assessment, None, True, NOW)), assessment.decision
        return {
            "decision": [decision.action, decision.reason],
            "pool": None if decision.target is None else decision.target.pool,
            "condition": [condition.status, condition.reason, condition.text()],
            "text": decision_text(job, assessment, NOW),
            "too slow": [each.placement.pool for each in assessment.candidates if isinstance(each.rejection, TooSlow)],
            "judged by": registry.yardstick_of(decision.reason).name,
        }

    cases = {"holds": (900.0, "a100", 1000.0), "missed": (500.0, "a10g", 300.0), "far": (1e6, "a100", 1000.0)}
    print(json.dumps({name: found(*case) for name, case in cases.items()}))


if __name__ == "__main__":
    main()
