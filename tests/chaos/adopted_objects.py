"""Invariants of objects that users have made themselves, and that are adopted.

Checked at every event:
    lost field         what the object was, with what its note says put back, is nothing that its user has written
    deleted            an object is gone that its user has not deleted
Checked for how long they last:
    left suspended     an object is suspended, and not by its user
At the end:
    lost edit          what the object was is not what its user has written last
"""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

from rightpool.workloads.in_place import edited, original_of, put_back
from rightpool.workloads.kinds.registry import KINDS

Body = Mapping[str, Any]
Found = tuple[str, Body, str]

JOB: Final = KINDS["job"]


class AdoptedObjects:
    """By uid, what users have written, and what is there."""

    def __init__(self) -> None:
        self._versions: dict[str, list[Body]] = {}  # specs, the newest last
        self._suspended: set[str] = set()
        self._removed: set[str] = set()
        self._there: dict[str, Body] = {}

    def at(self, namespace: str, name: str) -> Body | None:
        """The object of this name, as it is there."""
        abouts = ((body["metadata"], body) for body in self._there.values())
        return next((body for about, body in abouts if (about["namespace"], about["name"]) == (namespace, name)), None)

    def wrote(self, body: Body) -> None:
        """What its user has made or edited, as it was stored. Who writes it as he has read it, or takes back what he
        has edited since, edits nothing: what the operator had changed by then is no wish of his, and is put back."""
        original = None if edited(JOB, body) else original_of(JOB, body)
        wish = _spec(body if original is None else put_back(body, original))
        self._versions.setdefault(body["metadata"]["uid"], []).append(wish)

    def suspended(self, body: Body, suspended: bool) -> None:
        """Before its user writes that."""
        (self._suspended.add if suspended else self._suspended.discard)(body["metadata"]["uid"])

    def removed(self, body: Body) -> None:
        """Before its user deletes it."""
        self._removed.add(body["metadata"]["uid"])

    def observe(self, kind: str, body: Body) -> Iterator[Found]:
        """What is wrong with an object at one event: an invariant, the object, and words."""
        uid = body["metadata"]["uid"]
        if kind == "DELETED":
            # Of an object that loses its label the watch says so, too.
            known = self._there.pop(uid, None) is not None and uid in self._versions
            if known and uid not in self._removed:
                yield "deleted", body, "the object is gone, and its user has not deleted it"
            return
        self._there[uid] = body
        versions = self._versions.get(uid)
        if versions is not None and not any(spec in versions for spec in _before(body)):
            difference = json.dumps(_spec(body))[:600]
            yield "lost field", body, f"the object is none that its user has written: {difference}"

    def lasting(self) -> Iterator[tuple[str, Found]]:
        """What must not last, by uid."""
        for uid, body in self._there.items():
            if uid in self._versions and body["spec"].get("suspend") and uid not in self._suspended:
                yield uid, ("left suspended", body, "the object is suspended, and not by its user")

    def lost(self) -> Iterator[Found]:
        """What is wrong where nothing changes any more."""
        for uid, body in self._there.items():
            versions = self._versions.get(uid)
            if versions is not None and versions[-1] not in _before(body):
                difference = f"{json.dumps(_spec(body))[:600]}, not {json.dumps(versions[-1])[:600]}"
                yield "lost edit", body, f"the object is not what its user has written last: {difference}"


def _before(body: Body) -> tuple[Body, ...]:
    """What the object may have been before the operator changed it: as it is, or as its note says."""
    original = original_of(JOB, body)
    return (_spec(body),) if original is None else (_spec(body), _spec(put_back(body, original)))


def _spec(body: Body) -> Body:
    """Without whether it is suspended."""
    return {key: copy.deepcopy(value) for key, value in body["spec"].items() if key != "suspend"}
