"""How candidates are drawn."""

from __future__ import annotations

from collections.abc import Sequence

from rightpool.api.placement import Placement
from rightpool.planning.offers.candidate import Candidate


def with_kinds(
    current: Candidate | None, candidates: Sequence[Candidate], target: Placement | None
) -> list[tuple[str, Candidate]]:
    """Each with how it is drawn: now, target, eligible or rejected. The current one comes first."""
    found = [] if current is None else [("now", current)]
    for each in candidates:
        kind = "target" if each.placement == target else "eligible" if each.eligible else "rejected"
        found.append((kind, each))
    return found
