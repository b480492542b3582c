"""What the operator remembers of a job."""

from __future__ import annotations

from dataclasses import field
from operator import not_
from typing import Annotated, Final

from pydantic import BeforeValidator, Field
from pydantic.json_schema import SkipJsonSchema

from rightpool.api.account import Account
from rightpool.api.adopted_object import AdoptedObject
from rightpool.api.avoided import MAX_AVOIDED, AvoidedPlacement
from rightpool.api.interruption import Interruption
from rightpool.api.ledger import MAX_HISTORY, LedgerEntry
from rightpool.api.migration import Migration
from rightpool.api.model import ATOMIC
from rightpool.api.pause import Pause
from rightpool.api.program_edit import MAX_IMAGE, ProgramEdit
from rightpool.api.progress import JobProgress
from rightpool.api.record import PACKED, Record
from rightpool.api.recovery import Recovery
from rightpool.api.rescue import Rescue
from rightpool.api.revision import Revision
from rightpool.api.trace import Trace
from rightpool.api.trial_request import TrialAnswer
from rightpool.api.trial_run import TrialRun
from rightpool.api.trials_day import TrialsDay
from rightpool.api.tried import MAX_TRIED, Tried
from rightpool.api.units import Count, Dollars, UnixTime
from rightpool.api.value_object import value_object
from rightpool.api.variation import Variation

MAX_DISRUPTIONS: Final = 8


def _nothing(_: object) -> None:
    return None


def _is_empty(account: Account) -> bool:
    return account.empty


@value_object
class JobState(Record):
    """The part of a job's status that the operator goes on from. Nothing else is remembered from cycle to cycle."""

    revision: Annotated[Revision | None, Field(alias="placement")] = None
    """Where the job runs and how big it is. Absent before its first start."""

    adopted: AdoptedObject | None = None
    """The object that `spec.workloadRef` names. Absent before it was found running."""

    account: Annotated[Account, Field(alias="cost", exclude_if=_is_empty)] = field(default_factory=Account)
    """What the job costs."""

    progress: Annotated[JobProgress | None, PACKED] = None
    """What the job has done."""

    interruption: Annotated[Interruption | None, PACKED] = None
    """Time without progress that is not over."""

    migration: Migration | None = None
    """The decision that is being carried out."""

    pause: Pause | None = None
    """Why the job is stopped, or will be as soon as it has saved."""

    rescue: Rescue | None = None
    """The save that was asked for because pods are about to be lost. Absent where none are."""

    disruptions: Annotated[tuple[UnixTime, ...], Field(max_length=MAX_DISRUPTIONS, exclude_if=not_), PACKED] = ()
    """When Kubernetes began to evict or preempt a pod of the Revision, of several pods: the last eight times. What its
    peers fail at then is no failure of the program. Absent: none."""

    recovery: Recovery | None = None
    """How long the job was without progress when Kubernetes last took pods away, or its program failed. Absent: neither
    did."""

    trace: Trace | None = None
    """The newest trace that was asked for by the annotation rightpool.dev/trace."""

    trial: TrialRun | None = None
    """The trial that is under way. Absent where none is."""

    trials: Annotated[Count, Field(exclude_if=not_)] = 0
    """Trials so far. Absent: none."""

    trials_cost: Annotated[Dollars, Field(exclude_if=not_)] = 0.0
    """Dollars for the chips of all trials that are over, whatever ended them. Absent: none."""

    trials_day: Annotated[TrialsDay | None, PACKED] = None
    """The last day in which a trial was over."""

    trial_answer: Annotated[TrialAnswer | None, PACKED] = None
    """What became of the newest trial that was asked for by the annotation rightpool.dev/trial."""

    tried: Annotated[tuple[Tried, ...], Field(max_length=MAX_TRIED, exclude_if=not_), PACKED] = ()
    """What the last eight trials have measured, the newest last. Absent: none."""

    moves: Count = 0
    """Moves that the operator chose and carried out; an edit by the user is none."""

    decisions: Annotated[Count, Field(alias="ledgerCount")] = 0
    """Decisions so far; the next one is d-<ledgerCount+1>."""

    last_move_at: UnixTime | None = None
    """When the last move was over."""

    avoid: Annotated[tuple[AvoidedPlacement, ...], Field(max_length=MAX_AVOIDED), PACKED] = ()
    """Places where a move of this job had to be rolled back, or where it did not start."""

    history: Annotated[tuple[LedgerEntry, ...], Field(max_length=MAX_HISTORY, json_schema_extra=ATOMIC)] = ()
    """The last seven decisions, the newest last."""

    image: Annotated[str | None, Field(max_length=MAX_IMAGE), PACKED] = None
    """Image of the container with the chips that the Revision was made from, as messages name it. Absent: not known."""

    edit: Annotated[ProgramEdit | None, PACKED] = None
    """The last edit of what the job runs, and how that compares with what ran before. Absent: none was measured."""

    variation: Annotated[Variation | None, PACKED] = None
    """How the job's rate varies by itself, from window to window."""

    finished: Annotated[str | None, BeforeValidator(_nothing), Field(exclude=True), SkipJsonSchema()] = None
    """Completed or Failed, once terminal. Not on the wire: the conditions say so."""

    @property
    def edit_to_judge(self) -> ProgramEdit | None:
        """The edit whose program runs now and has no verdict yet; None also where it was taken back."""
        edit, here = self.edit, self.revision
        if edit is None or edit.judged or here is None or edit.workload_hash == here.workload_hash:
            return None
        return edit

    @property
    def judged_edit(self) -> ProgramEdit | None:
        """The edit that has a verdict, where that is of what runs now."""
        edit, here = self.edit, self.revision
        return edit if edit is not None and here is not None and edit.judged == here.workload_hash else None
