"""One decision that the ledger of a namespace keeps."""

from __future__ import annotations

from typing import NamedTuple

from rightpool.api.ledger import LedgerEntry


class BookedMove(NamedTuple):
    """One decision of a job that may be gone."""

    job: str
    """Its name."""
    uid: str
    """Of the ProfiledJob: another one may have had the name before."""
    entry: LedgerEntry
    """As its ledger had it."""
    namespace: str
    """Where its job was."""
    precision: str | None = None
    """Of the job's arithmetic, such as bf16; None where it was not known."""
