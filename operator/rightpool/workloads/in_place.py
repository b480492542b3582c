"""Changes in place: how an object that its user has made becomes another Revision, and what it was before.

It is stopped and noted to be held in one write, and changed and resumed in another; between the two its pods end. Every
write is computed from the object as it is. Only what is held is ever resumed, and what its user changes meanwhile
stays as he has changed it.

What is in a queue its queue stops and starts. While it runs, its pods have what the queue gives them of nodes, so that
what it was is noted once it is stopped, and nothing that differs until then is taken for an edit.
"""

from __future__ import annotations

import copy
import hashlib
import json
from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any, Final, NamedTuple

from rightpool.api.placement import Placement
from rightpool.api.revision import Revision
from rightpool.contract import LABEL_REVISION
from rightpool.hardware.pool import Pool
from rightpool.planning.jobs.revision_state import Undoing
from rightpool.workloads.field_managers import manager_of
from rightpool.workloads.kinds.kind import Kind, Unable, adoption_of
from rightpool.workloads.names import ANNOTATION_HELD, ANNOTATION_ORIGINAL, LABEL_QUEUE
from rightpool.workloads.placed import held_at, texts

Body = dict[str, Any]

_DIGITS: Final = 8
_OF_REPOSITORIES: Final = ("argoproj.io", "fluxcd.io")
_OF_NODES: Final = ("nodeSelector", "tolerations", "schedulingGates")


class Original(NamedTuple):
    """What an object was before it was first changed."""

    placement: Placement
    """Where it was, and how big."""

    selector: Mapping[str, str]
    """The node selector of that pool: what of it the object has names the pool, and goes with it."""

    fields: Mapping[str, Any]
    """By JSON pointer, the value of each field that may be changed; None where it had none."""

    left: Mapping[str, str]
    """Digest of each of these fields as it was left. Where one is another now, somebody else has changed it."""

    @property
    def text(self) -> str:
        """As the object's annotation has it."""
        wire = {**self._asdict(), "placement": self.placement.to_dict()}
        return json.dumps(wire, sort_keys=True, separators=(",", ":"))


def original_of(kind: Kind[Any], body: Mapping[str, Any]) -> Original | None:
    """What the object was, by its annotation; None where it has none that can be read.

    Anybody who may edit the object writes into it what he likes, so that it counts where it speaks of the fields that
    can be changed, and of no others, and each is what the API server would take.
    """
    text = _annotations(body).get(ANNOTATION_ORIGINAL)
    if text is None:
        return None
    try:
        wire = json.loads(text)
        original = Original(
            Placement.from_dict(wire["placement"]), dict(wire["selector"]), dict(wire["fields"]), dict(wire["left"])
        )
    except (ValueError, TypeError, KeyError):
        return None
    part = adoption_of(kind)
    known = original.left.keys() == original.fields.keys() == part.settings(body).keys()
    shaped = all(value is None or part.shaped(pointer, value) for pointer, value in original.fields.items())
    return original if known and shaped and texts(original.selector) and texts(original.left) else None


def with_original(kind: Kind[Any], body: Mapping[str, Any], text: str | None) -> Body:
    """The object with this note of what it was, where it has lost its own."""
    result = copy.deepcopy(dict(body))
    if text is not None and original_of(kind, body) is None:
        _annotate(result, ANNOTATION_ORIGINAL, text)
    return result


def edited(kind: Kind[Any], body: Mapping[str, Any]) -> bool:
    """Whether what was left of the object is not what it is now: its user's change, or that of a tool of his."""
    return queue_of(body) is None and _differs(kind, body)


def undone(kind: Kind[Any], body: Mapping[str, Any]) -> Undoing | None:
    """Who has taken back what the operator has changed of the object, and of which field; None where nobody has."""
    original = original_of(kind, body)
    if queue_of(body) is not None:
        return None
    if original is not None and edited(kind, body):
        now = _digests(adoption_of(kind).settings(body))
        pointer = next(one for one in sorted(now) if now[one] != original.left[one])
    elif is_held(body) and not kind.observe(body).suspended:
        pointer = _pointer(kind.suspension(True, Placement("", 1, 1), 1))
    else:
        return None
    return Undoing(manager_of(body, pointer), pointer)


def queue_of(body: Mapping[str, Any]) -> str | None:
    """The queue that says when the object runs; None where it is in none."""
    return ((body.get("metadata") or {}).get("labels") or {}).get(LABEL_QUEUE) or None


def why_unable(kind: Kind[Any], body: Mapping[str, Any]) -> str | None:
    """Why the object may not be stopped and changed; None where it may."""
    about, queue = body.get("metadata") or {}, queue_of(body)
    if queue is not None and not adoption_of(kind).queues:
        name = kind.resource.kind
        return f"Kueue keeps a {name} in queue {queue} as it is: remove the label {LABEL_QUEUE}"
    manager = next((one for one in about.get("ownerReferences") or () if one.get("controller")), None)
    if manager is not None:
        return f"{manager.get('kind')} {manager.get('name')} controls it, and would undo the change: adopt that instead"
    return None


def held(kind: Kind[Any], body: Mapping[str, Any], here: Revision, pool: Pool | None) -> Body:
    """The object stopped, with a note of what it was. here: the Revision that it is. pool: that of it, where it is
    known. What is suspended already is its user's to resume, and stays as it is. What is in a queue is only noted to be
    held: its queue stops it. Raises Unable."""
    reason, queued = why_unable(kind, body), queue_of(body) is not None
    if reason is not None:
        raise Unable(reason)
    stopped = copy.deepcopy(dict(body))
    if kind.observe(body).suspended and not queued:
        return stopped
    if edited(kind, body):
        _annotate(stopped, ANNOTATION_ORIGINAL, _as_it_is(kind, body, here.placement, pool).text)
    _annotate(stopped, ANNOTATION_HELD, json.dumps(here.placement.to_dict(), sort_keys=True))
    return stopped if queued else _suspended(kind, stopped, True, here.placement)


def moved(kind: Kind[Any], body: Mapping[str, Any], ref: Revision, pool: Pool | None) -> Body:
    """The object that is held, as this Revision and resumed. At the placement that it came from it is what it was.

    What was edited meanwhile is resumed as it is. Raises Unable, and InvalidTemplate where the pool contradicts it.
    """
    original = original_of(kind, body)
    if not is_held(body) or not kind.observe(body).suspended or original is None or edited(kind, body):
        return resumed(kind, body)
    result = _changed(kind, body, original, ref, pool)
    _annotate(result, ANNOTATION_HELD, None)
    return _suspended(kind, result, False, ref.placement)


def turned(
    kind: Kind[Any], body: Mapping[str, Any], here: Revision, left: Pool | None, ref: Revision, pool: Pool | None
) -> Body:
    """The object as this Revision, while it runs. here: the Revision that it is. left, pool: those of the two. Raises
    Unable, and InvalidTemplate where the pool contradicts it."""
    reason = why_unable(kind, body)
    if reason is not None:
        raise Unable(reason)
    original = original_of(kind, body)
    if original is None or edited(kind, body):
        original = _as_it_is(kind, body, here.placement, left)
    return _changed(kind, body, original, ref, pool)


def why_kept(body: Mapping[str, Any]) -> str | None:
    """Why the object may not be deleted and made anew; None where it may. Whoever keeps it in a repository would make
    his own."""
    about = body.get("metadata") or {}
    marks = {**(about.get("labels") or {}), **(about.get("annotations") or {})}
    tool = next((name for name in sorted(marks) if name.partition("/")[0].endswith(_OF_REPOSITORIES)), None)
    if tool is not None:
        return f"{tool} says that a repository has it"
    if queue_of(body) is not None or about.get("finalizers") or about.get("ownerReferences"):
        return "it has a queue, an owner or finalizers"
    return None


def manifest_of(kind: Kind[Any], body: Mapping[str, Any]) -> str:
    """The object as JSON, as it is to be made anew."""
    identity = {"apiVersion": kind.resource.api_version, "kind": kind.resource.kind}
    return json.dumps({**identity, **adoption_of(kind).anew(body)}, sort_keys=True, separators=(",", ":"))


def remade(kind: Kind[Any], body: Mapping[str, Any], ref: Revision, pool: Pool | None) -> Body:
    """The object that is held, as this Revision. It stays held. Raises Unable, and InvalidTemplate."""
    original = original_of(kind, body)
    return dict(body) if original is None else _changed(kind, body, original, ref, pool)


def requeued(
    kind: Kind[Any], body: Mapping[str, Any], ref: Revision, left: Mapping[str, Pool], pool: Pool | None
) -> Body:
    """The object that its queue has stopped, as this Revision. It stays stopped, and noted to be held, until its queue
    has read it. What it is now is what it was, where it was not changed before or its user has edited it since.

    Kueue does not see another node selector, and would start the object where it was. It sees a toleration, so that
    the pods of each Revision have one of their own. left: pools by name. Raises Unable, and InvalidTemplate where the
    pool contradicts it.
    """
    original, here = original_of(kind, body), held_at(body) or ref.placement
    if _annotations(body).get(LABEL_REVISION) == str(ref.revision) and not _differs(kind, body):
        return dict(body)  # Trainer writes times into what was changed
    if original is None or _differs(kind, body):
        original = _as_it_is(kind, body, here, left.get(here.pool))
    mark = {"key": LABEL_REVISION, "operator": "Equal", "value": str(ref.revision)}
    marked = None if pool is None else replace(pool, tolerations=(*pool.tolerations, mark))
    return _changed(kind, body, original, ref, marked)


def marks(value: Any) -> set[str]:
    """Of which Revisions there are tolerations in a part of an object."""
    if isinstance(value, list):
        return set().union(*map(marks, value))
    if not isinstance(value, Mapping):
        return set()
    if value.get("key") == LABEL_REVISION:
        return {str(value.get("value"))}
    return set().union(*map(marks, value.values()))


def unqueued(body: Mapping[str, Any], *, nodes: bool = True) -> Body:
    """The object without what its queue gives its pods while they run. nodes: also of what they ask of nodes. What they
    do so themselves can't be told apart from that, and is left to the queue."""
    return {**body, "spec": _unqueued(body.get("spec") or {}, _OF_NODES if nodes else ())}


def resumed(kind: Kind[Any], body: Mapping[str, Any]) -> Body:
    """The object without the note that it is held, and running if it was held. What it was is forgotten where it was
    edited since: what its user has made of it is what it was, next time."""
    result = copy.deepcopy(dict(body))
    if original_of(kind, body) is not None and edited(kind, body):
        _annotate(result, ANNOTATION_ORIGINAL, None)
    if not is_held(body):
        return result
    _annotate(result, ANNOTATION_HELD, None)
    if queue_of(body) is not None:
        return result
    return _suspended(kind, result, False, held_at(body) or Placement("", 1, 1))


def let_go(kind: Kind[Any], body: Mapping[str, Any]) -> Body:
    """The object where it is, running if it was held. Where it is what it was, nothing of the operator is left on it;
    else the note of that is, so that it can be put back by hand."""
    result, original = resumed(kind, body), original_of(kind, body)
    if original is None or edited(kind, body) or original.left == _digests(original.fields):
        for name in (ANNOTATION_ORIGINAL, LABEL_REVISION):
            _annotate(result, name, None)
    return result


def is_held(body: Mapping[str, Any]) -> bool:
    """Whether the operator has suspended it."""
    return ANNOTATION_HELD in _annotations(body)


def put_back(body: Mapping[str, Any], original: Original) -> Body:
    """The object with the fields that it had before it was first changed."""
    result = copy.deepcopy(dict(body))
    for pointer, value in original.fields.items():
        put(result, pointer, value)
    return result


def put(body: Body, pointer: str, value: Any) -> None:
    """Set the field at a JSON pointer; None: remove it. A pointer into what is not there changes nothing."""
    *parents, last = _parts(pointer)
    target: Any = body
    for part, inner in zip(parents, _parts(pointer)[1:], strict=True):
        if isinstance(target, list):
            if not (part.isdecimal() and int(part) < len(target)):
                return
            target = target[int(part)]
        else:
            if part not in target and (value is None or inner.isdecimal()):
                return
            target = target.setdefault(part, {})
    if value is None:
        target.pop(last, None)
    else:
        target[last] = copy.deepcopy(value)


def at(body: Mapping[str, Any], pointer: str) -> Any:
    """The value at a JSON pointer; None where there is none."""
    value: Any = body
    for part in _parts(pointer):
        if isinstance(value, list):
            value = value[int(part)] if part.isdecimal() and int(part) < len(value) else None
        else:
            value = value.get(part) if isinstance(value, Mapping) else None
    return value


def operations(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The JSON patch that makes one object of the other, for exactly the version of it that was read."""
    found = list(_differences(before, after, ""))
    if not found:
        return []
    about = before["metadata"]
    fence = [{"op": "replace", "path": f"/metadata/{key}", "value": about[key]} for key in ("uid", "resourceVersion")]
    return fence + found


def _differences(before: Any, after: Any, path: str) -> list[dict[str, Any]]:
    if before == after:
        return []
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        found = []
        for key in sorted({*before, *after}):
            there = f"{path}/{key.replace('~', '~0').replace('/', '~1')}"
            if key not in after:
                found.append({"op": "remove", "path": there})
            elif key not in before:
                found.append({"op": "add", "path": there, "value": after[key]})
            else:
                found += _differences(before[key], after[key], there)
        return found
    if isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        return [
            one for i, pair in enumerate(zip(before, after, strict=True)) for one in _differences(*pair, f"{path}/{i}")
        ]
    return [{"op": "replace", "path": path, "value": after}]


def _as_it_is(kind: Kind[Any], body: Mapping[str, Any], here: Placement, pool: Pool | None) -> Original:
    """That the object was what it is now. pool: that of its placement, where it is known."""
    fields = adoption_of(kind).settings(body)
    return Original(here, {} if pool is None else dict(pool.node_selector), fields, _digests(fields))


def _changed(kind: Kind[Any], body: Mapping[str, Any], original: Original, ref: Revision, pool: Pool | None) -> Body:
    """The object as this Revision, with the notes of that. At the placement that it came from it is what it was."""
    result = put_back(body, original)
    if ref.placement != original.placement:
        if pool is None:
            raise Unable(f"pool {ref.placement.pool} is not there")
        result = adoption_of(kind).change(_without(result, kind, original), ref, pool)
    _annotate(result, ANNOTATION_ORIGINAL, original._replace(left=_digests(adoption_of(kind).settings(result))).text)
    _annotate(result, LABEL_REVISION, str(ref.revision))
    return result


def _differs(kind: Kind[Any], body: Mapping[str, Any]) -> bool:
    original = original_of(kind, body)
    return original is None or original.left != _digests(adoption_of(kind).settings(body))


def _unqueued(value: Any, names: Collection[str]) -> Any:
    if isinstance(value, list):
        return [
            _unqueued(one, names) for one in value if not _of_queue(isinstance(one, Mapping) and one.get("manager"))
        ]
    if not isinstance(value, Mapping):
        return value
    found = {key: _unqueued(one, names) for key, one in value.items() if key not in names and not _of_queue(key)}
    return {key: one for key, one in found.items() if one or value[key] == one}


def _of_queue(name: Any) -> bool:
    return str(name).startswith(f"{LABEL_QUEUE.partition('/')[0]}/")


def _without(body: Body, kind: Kind[Any], original: Original) -> Body:
    """Without what of the user's node selector names the pool that the object came from."""
    for pointer in adoption_of(kind).settings(body):
        selector = at(body, pointer)
        if pointer.endswith("/nodeSelector") and isinstance(selector, Mapping):
            put(body, pointer, {k: v for k, v in selector.items() if original.selector.get(k) != v} or None)
    return body


def _digests(fields: Mapping[str, Any]) -> dict[str, str]:
    return {pointer: _digest(value) for pointer, value in fields.items()}


def _digest(value: Any) -> str:
    text = json.dumps(value, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:_DIGITS]


def _pointer(fields: Mapping[str, Any]) -> str:
    """To the only field that is set here."""
    ((name, value),) = fields.items()
    return f"/{name}" + (_pointer(value) if isinstance(value, Mapping) else "")


def _parts(pointer: str) -> list[str]:
    return [part.replace("~1", "/").replace("~0", "~") for part in pointer.split("/")[1:]]


def _annotations(body: Mapping[str, Any]) -> Mapping[str, str]:
    return (body.get("metadata") or {}).get("annotations") or {}


def _annotate(body: Body, name: str, value: str | None) -> None:
    about = body.setdefault("metadata", {})
    annotations = {**(about.get("annotations") or {})}
    if value is None:
        annotations.pop(name, None)
    else:
        annotations[name] = value
    if annotations or "annotations" in about:
        about["annotations"] = annotations


def _suspended(kind: Kind[Any], body: Body, suspend: bool, placement: Placement) -> Body:
    return _merged(body, kind.suspension(suspend, placement, kind.observe(body).unit))


def _merged(body: Body, fields: Mapping[str, Any]) -> Body:
    for key, value in fields.items():
        if isinstance(value, Mapping):
            body[key] = _merged({**(body.get(key) or {})}, value)
        else:
            body[key] = value
    return body
