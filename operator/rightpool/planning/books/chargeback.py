"""Chargeback: what a namespace's jobs have spent and saved, by day, team, pool and capacity type, and by day and job.
It outlives the jobs, and so does the ledger of their moves.

A job's own account is a total. What has been added to it since it was last looked at is booked on where the job is, so
that the sum over all rows is the sum over all accounts. How much of each account is booked is kept beside the rows and
written with them in one object: whatever is lost with a process is booked by the next one, and nothing twice.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
import zlib
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime
from heapq import nlargest
from operator import attrgetter
from typing import Any, Final, NamedTuple

from rightpool.api.ledger import LedgerEntry, Outcome
from rightpool.planning.books.charge import EARLIER, Charge, csv_rows
from rightpool.planning.jobs.booked_move import BookedMove
from rightpool.planning.jobs.job import Job
from rightpool.planning.work.progress import progress_of

DAYS: Final = 62
"""Days that are kept apart. Older ones are one row for each team, pool and capacity type."""
KEYS: Final = 64
"""Rows of one day; what is more is one row, OTHER."""
MOST_JOBS: Final = 10_000
"""Jobs of a namespace that are booked at once: an object of the API server holds no more."""
OTHER: Final = "other"

COLUMNS: Final = (
    *("day", "team", "pool", "capacity"),
    *("spent", "saved", "lost", "chipSeconds", "usefulChipSeconds", "savedVariance"),
)

JOBS_A_DAY: Final = 64
"""Jobs of one day that are stored apart, those that have spent most; the others are one row, OTHER_JOBS."""
OTHER_JOBS: Final = "(others)"
"""No object can have this name."""

_JOB_COLUMNS: Final = ("day", "job", "spent", "saved", "lost", "chipSeconds", "usefulChipSeconds", "savedVariance")

MOST_MOVES: Final = 200
"""Decisions that are kept of a namespace, the newest ones."""
_MESSAGE: Final = 300  # characters
# What becomes known of a move after its end. Its message does not: a status drops that of all but its newest entries.
_LATE: Final = attrgetter("realised_throughput", "lost_seconds", "cost")


_Key = tuple[float, str, str]  # when it was over, uid and decision id: in the order of time


class ChargeKey(NamedTuple):
    """What is charged apart."""

    team: str
    """By the job's label; empty where it has none."""
    pool: str
    """Name of the AcceleratorPool whose chips were held."""
    capacity: str
    """On-demand or spot."""


class Booked(NamedTuple):
    """How much of a job's account is in the rows."""

    spent: float = 0.0
    """Dollars."""
    saved: float = 0.0
    """Dollars, negative where moves lost."""
    chip_seconds: float = 0.0
    """For which its pods held chips."""
    useful_seconds: float = 0.0
    """Of those, what its work would have taken without loading, waiting and repeating."""
    saved_variance: float = 0.0
    """Of saved, square dollars."""


@dataclass(slots=True)
class JobCharges:
    """The jobs of one namespace. Two of the same name, one after the other, are one."""

    rows: dict[str, dict[str, Charge]] = field(default_factory=dict)
    """By day, YYYY-MM-DD, and name. Of the newest day all jobs are known until the process ends."""

    def add(self, day: str, job: str, charge: Charge) -> None:
        """Charge a job on a day."""
        if day not in self.rows:
            for earlier in self.rows:
                self.rows[earlier] = _bounded(self.rows[earlier])
        rows = self.rows.setdefault(day, {})
        rows[job] = rows[job].plus(charge) if job in rows else charge

    def age(self, oldest: str) -> None:
        """Days before `oldest` become one."""
        for day in [day for day in self.rows if day != EARLIER and day < oldest]:
            earlier = self.rows.setdefault(EARLIER, {})
            for job, charge in self.rows.pop(day).items():
                earlier[job] = earlier.get(job, Charge()).plus(charge)
            self.rows[EARLIER] = _bounded(earlier)

    def totals(self, since: date | None = None) -> dict[str, Charge]:
        """Sums by job over days, from `since` on; over all where it is None."""
        sums: dict[str, Charge] = {}
        for day, rows in self.rows.items():
            if since is not None and (day == EARLIER or day < since.isoformat()):
                continue
            for job, charge in rows.items():
                sums[job] = sums.get(job, Charge()).plus(charge)
        return sums

    def stored(self) -> bytes:
        """As CSV, compressed by gzip."""
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(_JOB_COLUMNS)
        for day in sorted(self.rows):
            for job, charge in sorted(_bounded(self.rows[day]).items()):
                writer.writerow((day, job, *charge.texts()))
        return gzip.compress(text.getvalue().encode(), 6, mtime=0)

    @classmethod
    def read(cls, stored: bytes) -> JobCharges:
        """What was stored. Raises ValueError where it can't be read."""
        try:
            table = gzip.decompress(stored).decode()
        except (OSError, EOFError, zlib.error) as error:
            raise ValueError(f"the jobs can't be read: {error}") from error
        made = cls()
        for row in csv_rows(table, _JOB_COLUMNS):
            made.rows.setdefault(row["day"], {})[row["job"]] = Charge(*(float(row[name]) for name in _JOB_COLUMNS[2:]))
        return made


def _bounded(rows: dict[str, Charge]) -> dict[str, Charge]:
    """The jobs that have spent most, and the sum of the others."""
    named = len(rows) - (OTHER_JOBS in rows)
    if named <= JOBS_A_DAY:
        return rows
    ranked = ((charge.spent, charge.chip_seconds, job) for job, charge in rows.items() if job != OTHER_JOBS)
    kept = {job: rows[job] for _, _, job in nlargest(JOBS_A_DAY, ranked)}
    kept[OTHER_JOBS] = Charge().plus(*(charge for job, charge in rows.items() if job not in kept))
    return kept


@dataclass(slots=True)
class BookedMoves:
    """Decisions that were carried out, or undone. Those that were given up before anything was touched are left out."""

    kept: dict[_Key, BookedMove] = field(default_factory=dict)
    """The newest MOST_MOVES."""
    _full: _Key | None = None
    """The oldest one, once there are MOST_MOVES."""

    def __iter__(self) -> Iterator[BookedMove]:
        return iter(self.kept.values())

    def book(self, job: Job) -> bool:
        """What is new in the job's history. Whether there was anything."""
        added = False
        profile = job.observed.profile
        precision = None if profile is None else profile.traits.precision
        for entry in reversed(job.state.history):
            if entry.outcome is Outcome.HELD:
                continue
            key = (entry.finished_at, job.uid, entry.id)
            if self._full is not None and key < self._full:
                break
            known = self.kept.get(key)
            if known is not None and _LATE(known.entry) == _LATE(entry):
                continue
            message = entry.message or ("" if known is None else known.entry.message)
            if len(message) > _MESSAGE:
                message = f"{message[: _MESSAGE - 1]}…"
            then = precision if known is None or known.precision is None else known.precision
            self.kept[key] = BookedMove(job.key.name, job.uid, replace(entry, message=message), job.key.namespace, then)
            added = True
        if added and len(self.kept) >= MOST_MOVES:
            self.kept = dict(sorted(self.kept.items())[-MOST_MOVES:])
            self._full = next(iter(self.kept))
        return added

    def stored(self) -> bytes:
        """One JSON object a line, compressed by gzip."""
        lines = (json.dumps(_body(move), separators=(",", ":")) for _, move in sorted(self.kept.items()))
        return gzip.compress("\n".join(lines).encode(), 6, mtime=0)

    @classmethod
    def read(cls, stored: bytes) -> BookedMoves:
        """What was stored. Raises ValueError where it can't be read."""
        made = cls()
        try:
            for line in gzip.decompress(stored).splitlines():
                body = json.loads(line)
                entry, precision = LedgerEntry.from_dict(body["entry"]), body.get("precision")
                move = BookedMove(
                    str(body["job"]),
                    str(body["uid"]),
                    entry,
                    str(body["namespace"]),
                    None if precision is None else str(precision),
                )
                made.kept[move.entry.finished_at, move.uid, move.entry.id] = move
        except (OSError, EOFError, zlib.error, KeyError, TypeError) as error:
            raise ValueError(f"the moves can't be read: {error}") from error
        return made


def _body(move: BookedMove) -> dict[str, Any]:
    body = {"job": move.job, "uid": move.uid, "namespace": move.namespace, "entry": move.entry.to_dict()}
    return body if move.precision is None else {**body, "precision": move.precision}


@dataclass(slots=True)
class Chargeback:
    """The books of one namespace."""

    rows: dict[str, dict[ChargeKey, Charge]] = field(default_factory=dict)
    """By day, YYYY-MM-DD."""
    jobs: JobCharges = field(default_factory=JobCharges)
    """The same amounts by day and job."""
    moves: BookedMoves = field(default_factory=BookedMoves)
    """What moves promised and delivered."""
    booked: dict[str, Booked] = field(default_factory=dict)
    """By uid of the job."""
    newest: float | None = None
    """Unix seconds up to which the newest entry counts; None where nothing was booked."""

    def book(self, job: Job, team: str, now: float) -> bool:
        """What the job has used since it was last booked. Whether there was anything."""
        revision, account = job.state.revision, job.state.account
        before = self.booked.get(job.uid)
        if revision is None or (before is None and len(self.booked) >= MOST_JOBS):
            return False
        if job.state.finished is None:
            account = account.settled(now)
        progress = job.state.progress if job.state.finished is not None else progress_of(job, now)
        useful = min(0.0 if progress is None else progress.useful_seconds, account.chip_seconds)
        known = before or Booked()
        saved = account.saved - known.saved
        charge = Charge(
            spent=max(0.0, account.spent - known.spent),
            saved=max(0.0, saved),
            lost=max(0.0, -saved),
            saved_variance=account.saved_sd**2 - known.saved_variance,
            chip_seconds=max(0.0, account.chip_seconds - known.chip_seconds),
            useful_seconds=max(0.0, useful - known.useful_seconds),
        )
        if not any(charge):
            return False
        self.booked[job.uid] = Booked(
            max(account.spent, known.spent),
            account.saved,
            max(account.chip_seconds, known.chip_seconds),
            max(useful, known.useful_seconds),
            account.saved_sd**2,
        )
        key = ChargeKey(team, revision.placement.pool, revision.placement.capacity.value)
        day = datetime.fromtimestamp(now, UTC).date().isoformat()
        self._add(day, key, charge)
        self.jobs.add(day, job.key.name, charge)
        self.newest = now
        return True

    def forget(self, alive: Collection[str]) -> bool:
        """Jobs that do not exist any more have nothing left to book; their rows stay. Whether there were any."""
        gone = self.booked.keys() - set(alive)
        for uid in gone:
            del self.booked[uid]
        return bool(gone)

    def age(self, now: float) -> None:
        """Days that are too old become one."""
        oldest = datetime.fromtimestamp(now - DAYS * 86_400.0, UTC).date().isoformat()
        for day in [day for day in self.rows if day != EARLIER and day < oldest]:
            for key, charge in self.rows.pop(day).items():
                self._add(EARLIER, key, charge)
        self.jobs.age(oldest)

    def totals(self, since: date | None = None) -> dict[ChargeKey, Charge]:
        """Sums over days, from `since` on; over all where it is None."""
        sums: dict[ChargeKey, Charge] = {}
        for day, rows in self.rows.items():
            if since is not None and (day == EARLIER or day < since.isoformat()):
                continue
            for key, charge in rows.items():
                sums[key] = sums.get(key, Charge()).plus(charge)
        return sums

    def _add(self, day: str, key: ChargeKey, charge: Charge) -> None:
        rows = self.rows.setdefault(day, {})
        if key not in rows and len(rows) >= KEYS:
            key = ChargeKey(OTHER, OTHER, OTHER)
        rows[key] = rows.get(key, Charge()).plus(charge)

    # --- as it is stored ---------------------------------------------------------------------------------------------

    def table(self) -> str:
        """The rows as CSV, which people can read in the object."""
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(COLUMNS)
        for day in sorted(self.rows):
            for key, charge in sorted(self.rows[day].items()):
                writer.writerow((day, *key, *charge.texts()))
        return text.getvalue()

    def bookmarks(self) -> bytes:
        """How much of each account is booked, compressed."""
        return zlib.compress(json.dumps(self.booked, separators=(",", ":")).encode(), 6)

    @classmethod
    def read(cls, table: str, bookmarks: bytes | None) -> Chargeback:
        """What was stored. Raises ValueError where it can't be read."""
        made = cls()
        for row in csv_rows(table, COLUMNS):
            key = ChargeKey(row["team"], row["pool"], row["capacity"])
            charge = Charge(*(float(row[name]) for name in COLUMNS[4:]))
            days = made.rows.setdefault(row["day"], {})
            days[key] = days.get(key, Charge()).plus(charge)
        if bookmarks:
            try:
                stored = json.loads(zlib.decompress(bookmarks))
                made.booked = {str(uid): Booked(*map(float, amounts)) for uid, amounts in stored.items()}
            except (zlib.error, TypeError, AttributeError) as error:
                raise ValueError(f"the bookmarks can't be read: {error}") from error
        return made


def deleted_moves(books: Iterable[Chargeback], alive: Collection[str], most: int) -> tuple[BookedMove, ...]:
    """Of jobs whose uid is not among those alive, the newest of all namespaces, `most` at most."""
    gone = (move for each in books for move in each.moves if move.uid not in alive)
    return tuple(nlargest(most, gone, key=lambda move: (move.entry.finished_at, move.uid, move.entry.id)))
