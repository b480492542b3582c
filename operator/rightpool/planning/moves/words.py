"""The words that the state machine persists: they are made by who passes them in, of typed reasons and numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from rightpool.api.conditions import Reason
    from rightpool.api.migration import Migration
    from rightpool.planning.jobs.job import Job
    from rightpool.planning.judge.verification import Verification
    from rightpool.planning.moves.setback import Setback
    from rightpool.planning.offers.assessment import Assessment


class Words(Protocol):
    """Sentences for the status and the ledger."""

    def decided(self, job: Job, assessment: Assessment, now: float) -> str:
        """Why a migration begins."""
        ...

    def unsaved(self, job: Job, migration: Migration, why: Reason, now: float, *, leaves: bool) -> str:
        """Why no save came, what is done again and what helps. leaves: whether the migration goes on without it."""
        ...

    def setback(self, setback: Setback) -> str:
        """Why a migration did not get where it was to."""
        ...

    def stays(self, migration: Migration, why: Reason) -> str:
        """Why a job that is worse off does not go back."""
        ...

    def verified(self, migration: Migration, result: Verification) -> str:
        """What a move delivered."""
        ...
