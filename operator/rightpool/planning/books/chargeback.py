"""Chargeback: what a namespace's jobs have spent and saved, by day, team, pool and capacity type, and by day and job.
It outlives the jobs, and so does the ledger of their moves.

A job's own account is a total. What has been added to it since it was last looked at is booked on where the job is, so
that the sum over all rows is the sum over all accounts. How much of each account is booked is kept beside the rows and
written with them in one object: whatever is lost with a process is booked by the next one, and nothing twice.
"""

from __future__ import annotations

import csv
import io
import json
import zlib
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from heapq import nlargest
from typing import Final, NamedTuple

from rightpool.planning.books.booked_moves import BookedMoves
from rightpool.planning.books.charge import EARLIER, Charge, csv_rows
from rightpool.planning.books.job_charges import JobCharges
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
