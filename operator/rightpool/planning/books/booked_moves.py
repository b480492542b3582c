"""The ledger of a namespace: what its newest decisions promised and delivered. It outlives the jobs, so that what they
have shown of chips is not lost with them."""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from operator import attrgetter
from typing import Any, Final

from rightpool.api.ledger import LedgerEntry, Outcome
from rightpool.planning.jobs.booked_move import BookedMove
from rightpool.planning.jobs.job import Job

MOST_MOVES: Final = 200
"""Decisions that are kept of a namespace, the newest ones."""
_MESSAGE: Final = 300  # characters
# What becomes known of a move after its end. Its message does not: a status drops that of all but its newest entries.
_LATE: Final = attrgetter("realised_throughput", "lost_seconds", "cost")


_Key = tuple[float, str, str]  # when it was over, uid and decision id: in the order of time


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
