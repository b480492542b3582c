"""What each job has used, day by day: the part of a namespace's books that names jobs, and outlives them."""

from __future__ import annotations

import csv
import gzip
import io
import zlib
from dataclasses import dataclass, field
from datetime import date
from heapq import nlargest
from typing import Final

from rightpool.planning.books.charge import EARLIER, Charge, csv_rows

JOBS_A_DAY: Final = 64
"""Jobs of one day that are stored apart, those that have spent most; the others are one row, OTHER_JOBS."""
OTHER_JOBS: Final = "(others)"
"""No object can have this name."""

_COLUMNS: Final = ("day", "job", "spent", "saved", "lost", "chipSeconds", "usefulChipSeconds", "savedVariance")


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
        writer.writerow(_COLUMNS)
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
        for row in csv_rows(table, _COLUMNS):
            made.rows.setdefault(row["day"], {})[row["job"]] = Charge(*(float(row[name]) for name in _COLUMNS[2:]))
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
