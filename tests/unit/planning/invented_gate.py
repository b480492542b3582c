"""A gate that nobody asks for: a job goes nowhere where a chip has less than a third of the memory that it has now.

Its type, its function and its row in the table are all of it. Run by itself, it prints what becomes of a job: the table
is read when its readers are imported.
"""

from __future__ import annotations

import json

from rightpool.api.value_object import value_object
from rightpool.planning.offers import gates
from rightpool.planning.offers.offers import Offers
from rightpool.planning.offers.rejection import RejectionReason, RuledOut
from rightpool.prediction.columns import Bools

# --- planning/offers/rejection.py ------------------------------------------------------------------------------------


@value_object
class MuchSmaller(RuledOut):
    """A chip with little memory. Its reason is lent: the API's own are listed in `RejectionReason`."""

    reason = RejectionReason.SUSPECTED
    pool: str

    def text(self) -> str:
        return f"chips of {self.pool} have less than a third of the memory of now"


# --- planning/offers/gates.py ----------------------------------------------------------------------------------------


def _much_smaller(rows: Offers) -> Bools:
    return rows.memory * 3.0 < rows.home_memory


gates.GATES = (  # type: ignore[misc]
    *gates.GATES,
    gates.Gate(MuchSmaller.reason, _much_smaller, lambda offer: MuchSmaller(offer.pool.name)),
)


def main() -> None:
    """The verdict on each other pool, and what the job does."""
    from rightpool.planning.offers.rejection import Compared
    from rightpool.reporting.candidate_texts import verdict_text
    from tests.unit.planning.jobs import judged, running

    assessment = judged(running())
    target = assessment.decision.target
    ruled_out = {
        each.placement.pool: [each.rejection.reason, verdict_text(each)]
        for each in assessment.candidates
        if each.rejection is not None and not isinstance(each.rejection, Compared)
    }
    print(json.dumps({"goes to": None if target is None else target.pool, "ruled out": ruled_out}))


if __name__ == "__main__":
    main()
