"""A job that was not measured, in its evaluation."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rightpool.api.placement import Placement
from rightpool.planning.offers.candidate import Candidate
from rightpool.planning.offers.evaluation import Evaluated
from rightpool.planning.offers.rejection import Rejection
from rightpool.prediction.columns import Ints


@dataclass(frozen=True, slots=True)
class UnmeasuredOptions:
    """Where jobs could be for which nothing was measured, in the order in which it would be tried."""

    option: Ints
    """A placement of the register."""
    gate: Ints
    """What rules it out, by the register's codes."""
    wanted: tuple[int, ...] = ()
    """Entries that would be acted on."""
    places: tuple[Placement, ...] = ()
    """Where they are."""


NOTHING = UnmeasuredOptions(np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64))


@dataclass(frozen=True, slots=True, eq=False)
class UnmeasuredJob(Evaluated):
    """Its entries by prices and specifications alone."""

    options: UnmeasuredOptions = NOTHING
    """Where it could be."""
    shown: bool = False
    """Whether where it is counts as a candidate nevertheless."""
    disallowed: Rejection | None = None
    """Why the user does not allow where it is."""

    @property
    def wanted(self) -> tuple[int, ...]:
        """Those that pass all gates."""
        return self.options.wanted

    @property
    def places(self) -> tuple[Placement, ...]:
        """Where they are."""
        return self.options.places

    @property
    def entries(self) -> range:
        """In the order in which they would be tried."""
        return range(len(self.options.option))

    def placement(self, entry: int) -> Placement:
        """By its number in the register."""
        return self.evaluation.register.placements[int(self.options.option[entry])]

    def made_current(self) -> Candidate | None:
        """Its placement, where it is shown."""
        revision = self.job.state.revision
        return self._candidate(revision.placement, self.disallowed) if self.shown and revision is not None else None

    def candidate(self, entry: int) -> Candidate:
        """With what rules it out."""
        return self._candidate(self.placement(entry), self.evaluation.register.kept(int(self.options.gate[entry])))

    def _candidate(self, placement: Placement, rejection: Rejection | None) -> Candidate:
        vendor, home = self.vendors(placement)
        price = self.price(placement)
        chip = self.chip(placement)
        return Candidate(
            placement, None, price, None, rejection=rejection, vendor=vendor, chip=chip, template_vendor=home
        )
