"""What a migration says where it is written down: why it was decided on, and what it delivered."""

from typing import Final

from rightpool.api.conditions import Reason
from rightpool.api.migration import Migration
from rightpool.api.work_unit import WorkUnit
from rightpool.planning.evaluate.assessment import Assessment
from rightpool.planning.job import Job
from rightpool.planning.migration.verification import Verdict, Verification
from rightpool.reporting.decision_texts import decision_text
from rightpool.reporting.rejection_texts import place
from rightpool.reporting.wording import dollars, number

# By how much what is believed differs from what was measured, where it is said.
LIKELY: Final = 0.02

_FOR_GOOD: Final = {
    Reason.PLACEMENT_DISALLOWED: "where it was is not allowed any more",
    Reason.MAX_COST_PER_HOUR_EXCEEDED: "where it was, targets.maxCostPerHour does not hold",
    Reason.MIN_SCALING_EFFICIENCY_MISSED: "where it was, targets.minScalingEfficiency does not hold",
}


class MigrationTexts:
    """The words that the state machine writes down, as `planning.migration.words.Words`."""

    __slots__ = ()

    def decided(self, job: Job, assessment: Assessment, now: float) -> str:
        """Why a migration begins."""
        return decision_text(job, assessment, now)

    def stays(self, migration: Migration, why: Reason) -> str:
        """Why a job that is worse off does not go back."""
        where = place(migration.source.placement)
        return {
            Reason.SOURCE_NOT_HELD: f"it stays: {where} were not held for a way back, since others waited for them",
            Reason.NO_ROOM_TO_RETURN: f"it stays: there is no room for {where}, where it came from",
            Reason.RETURN_DOES_NOT_PAY: "it stays: over the time left it loses less than a restart would cost",
        }[why]

    def verified(self, migration: Migration, result: Verification) -> str:
        """What a move delivered, against what it promised and what was before."""
        delivered = _delivered(migration, result)
        if result.likely is None or result.ratio is None:
            return f"{delivered}; there is no baseline to compare with"
        # What was measured in a few windows is not all that counts.
        likely = "likely " if abs(result.likely - result.ratio) >= LIKELY else ""
        if result.verdict is Verdict.WORSE:
            worse = f"{likely}{result.likely - 1:.0%} worse than before"
            return f"{delivered}: {worse}, beyond the {result.tolerance:.0%} that such spans may differ"
        if result.verdict is Verdict.BETTER:
            tail = "" if result.reason is Reason.DELIVERED else ", less than promised, yet better than before"
            return f"{delivered}: {likely}{1 - result.likely:.0%} better than before{tail}"
        why = _FOR_GOOD.get(migration.reason)
        if why is not None:
            return f"{delivered}; it stays: {why}"
        kept = "not surely better or worse than before the move; it stays, since moving back would cost again"
        return f"{delivered}: {kept}"


def _delivered(migration: Migration, result: Verification) -> str:
    text = f"measured {number(result.throughput)} {result.unit.plural}/s"
    if result.cost_per_million is not None:
        text += f" at {dollars(result.cost_per_million)} per million"
        if result.unit is not WorkUnit.SAMPLES:
            text += f" {result.unit.plural}"
    if migration.predicted is not None:
        predicted = migration.predicted
        text += f"; predicted {number(predicted.median)} ({number(predicted.low)}–{number(predicted.high)})"
        if migration.predicted_cost is not None:
            text += f" at {dollars(migration.predicted_cost.median)}"
    if migration.baseline is not None:
        text += f"; before {number(migration.baseline)}"
        if migration.baseline_cost is not None:
            text += f" at {dollars(migration.baseline_cost)}"
    return text
