"""The ConfigMap that holds the books of a namespace."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any, Final

from rightpool.api.units import read_unix_time, write_unix_time
from rightpool.contract import ANNOTATION_NAMESPACE, LABEL_CHARGEBACK
from rightpool.planning.books.chargeback import BookedMoves, Chargeback, JobCharges

PREFIX: Final = "rightpool-chargeback."
TABLE: Final = "chargeback.csv"
BOOKMARKS: Final = "booked"
JOBS: Final = "jobs.csv.gz"
MOVES: Final = "moves.jsonl.gz"
NEWEST: Final = "newest"


def charged_namespace(body: Mapping[str, Any]) -> str | None:
    """The namespace that such an object is about; None where it does not say."""
    annotations = (body.get("metadata") or {}).get("annotations") or {}
    return annotations.get(ANNOTATION_NAMESPACE) or None


def config_map(own: str, namespace: str, books: Chargeback, version: str | None) -> dict[str, Any]:
    """The object that holds the books of a namespace. own: the operator's namespace."""
    about: dict[str, Any] = {
        "name": PREFIX + namespace,
        "namespace": own,
        "labels": {LABEL_CHARGEBACK: "true"},
        "annotations": {ANNOTATION_NAMESPACE: namespace},
    }
    if version is not None:
        about["resourceVersion"] = version
    packed = {BOOKMARKS: books.bookmarks(), JOBS: books.jobs.stored(), MOVES: books.moves.stored()}
    data = {TABLE: books.table()}
    if books.newest is not None:
        data[NEWEST] = write_unix_time(books.newest)
    return {
        "metadata": about,
        "data": data,
        "binaryData": {name: base64.b64encode(each).decode() for name, each in packed.items()},
    }


def read_books(body: Mapping[str, Any]) -> Chargeback:
    """What such an object holds. Raises ValueError where it can't be read."""
    data = body.get("data") or {}
    table, newest = data.get(TABLE), data.get(NEWEST)
    if table is None:
        raise ValueError(f"data has no {TABLE}")
    packed = {name: base64.b64decode(each) for name, each in (body.get("binaryData") or {}).items()}
    books = Chargeback.read(table, packed.get(BOOKMARKS))
    if JOBS in packed:  # not so in what an older version has stored
        books.jobs = JobCharges.read(packed[JOBS])
    if MOVES in packed:
        books.moves = BookedMoves.read(packed[MOVES])
    books.newest = None if newest is None else read_unix_time(newest)
    return books
