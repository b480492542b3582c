"""Which files prove a save, and the newest of them below a directory: a bounded walk.

Without patterns of the user, names that frameworks give to what they save count, at any depth that is looked at. Where
a framework writes one file last, that one stands for all that it completes.
"""

from __future__ import annotations

import heapq
import json
import os
import re
import stat
import time
from typing import Any

_MAX_ENTRIES = 20_000  # directory entries looked at per walk
_MAX_SECONDS = 2.0  # per walk, also where names and patterns are long, or the file system is slow
_DEPTH = 3  # directories below the root
_MAX_DEPTH = 8  # with patterns that name more
_MAX_PATTERNS = 16
_MAX_LENGTH = 256

# Written to under such a name, and renamed when complete.
_TEMPORARY = (".tmp", ".temp", ".part", ".partial", ".incomplete", ".lock", ".swp", "_tmp", "-tmp", "~")
_TEMPORARY_PREFIX = ("tmp-", "tmp_", "tmp.")
# What programs write beside their checkpoints, or into the same directory, and what proves no save.
_NO_SAVE = (".jsonl", ".log", ".out", ".err", ".txt", ".csv", ".tsv", ".html", ".png", ".svg", ".pid", ".sock", ".prof")
_NO_SAVE_PREFIX = ("events.out.tfevents", "nohup")

_SAVES = (
    *(".pt", ".pth", ".ckpt", ".bin", ".safetensors", ".distcp", ".tar", ".nemo"),  # PyTorch, Lightning, Accelerate
    *(".msgpack", ".eqx", ".npz", ".npy", ".zarr", ".pkl", ".pickle", ".joblib"),  # Flax, Equinox, by hand
    *(".h5", ".hdf5", ".keras", ".index", ".pdparams", ".pdopt", ".safetensors.index.json", ".bin.index.json"),
)
_SAVES_NAMED = frozenset(("_checkpoint_metadata", "_metadata", "manifest.ocdbt", "checkpoint"))  # orbax, TensorFlow
_SAVES_PREFIX = ("checkpoint_", "checkpoint-", "ckpt_", "ckpt-")  # of a name without an ending
_SHARD = re.compile(r"-(\d{5})-of-(\d{5})\.(?:safetensors|bin)$")
# Directories that a file beside them completes: DeepSpeed, Megatron.
_COMPLETED_BY = (
    (re.compile(r"global_step\d+$"), "latest"),
    (re.compile(r"iter_\d{7}$"), "latest_checkpointed_iteration.txt"),
)
_TRAINER = re.compile(r"checkpoint-\d+$")


def matches(pattern: str, name: str) -> bool:
    """Whether a name without `/` fits, where `*` is any text and `?` any character. Takes len × len at most."""
    if name.startswith(".") and not pattern.startswith("."):
        return False
    at, star, mark, i = 0, -1, 0, 0
    while i < len(name):
        if at < len(pattern) and pattern[at] == "*":
            star, mark, at = at, i, at + 1
        elif at < len(pattern) and (pattern[at] == "?" or pattern[at] == name[i]):
            at, i = at + 1, i + 1
        elif star >= 0:
            mark += 1
            at, i = star + 1, mark
        else:
            return False
    return pattern[at:].strip("*") == ""


def is_shard(name: str) -> bool:
    """Whether it is a part of a model after which others come."""
    found = _SHARD.search(name)
    return found is not None and found.group(1) != found.group(2)


class CheckpointFiles:
    """Patterns relative to the directory of checkpoints; none: the names that frameworks use."""

    def __init__(self, patterns: Any = ()) -> None:
        kept = [p for p in patterns if isinstance(p, str) and 0 < len(p) <= _MAX_LENGTH][:_MAX_PATTERNS]
        self._patterns = [[part for part in p.split("/") if part] for p in kept]
        self._patterns = [parts for parts in self._patterns if parts and ".." not in parts]
        deepest = max((_MAX_DEPTH if "**" in parts else len(parts) for parts in self._patterns), default=0)
        self._depth = max(_DEPTH, min(deepest, _MAX_DEPTH))

    @classmethod
    def from_environment(cls) -> CheckpointFiles:
        """As the operator says; what is malformed is as if it were not there."""
        try:
            patterns = json.loads(os.environ.get("RIGHTPOOL_CHECKPOINT_FILES") or "[]")
        except (ValueError, RecursionError):
            patterns = []
        return cls(patterns if isinstance(patterns, list) else [])

    def newest(self, root: str) -> tuple[float, int] | None:
        """(modification time, size) of the newest file under `root` that proves a save; None where there is none."""
        best: tuple[float, int] | None = None
        until = time.monotonic() + _MAX_SECONDS
        left = _MAX_ENTRIES
        queue: list[tuple[float, str, tuple[str, ...]]] = [(0.0, root, ())]
        while queue and left > 0 and time.monotonic() < until:
            _, directory, parts = heapq.heappop(queue)  # the one that changed last
            files, directories, looked = _listing(directory, left, until)
            left -= looked
            for name, entry in self._proofs(parts, files, directories, until):
                found = _stat(entry)
                literal = self._patterns and any(p[-1] == name for p in self._patterns)  # a marker may be empty
                if found is not None and (found[1] > 0 or literal) and (best is None or found > best):
                    best = found
                if time.monotonic() >= until:
                    break
            if len(parts) < self._depth:
                for name, entry in directories.items():
                    changed = _stat(entry)
                    if changed is not None and self._enters(name):
                        heapq.heappush(queue, (-changed[0], entry.path, (*parts, name)))
        if best is None and os.path.isfile(root):
            status = os.stat(root)
            best = (status.st_mtime, status.st_size)
        return best

    def _enters(self, name: str) -> bool:
        if _temporary(name):
            return False
        if name.startswith("."):
            return any(part.startswith(".") for parts in self._patterns for part in parts)
        return bool(self._patterns) or not any(pattern.match(name) for pattern, _ in _COMPLETED_BY)

    def _proofs(
        self, parts: tuple[str, ...], files: dict[str, Any], directories: dict[str, Any], until: float
    ) -> list[tuple[str, Any]]:
        """The files of one directory that prove a save."""
        if self._patterns:
            fitting = []
            for name, entry in files.items():
                if time.monotonic() >= until:
                    break
                if not _temporary(name) and self._fits((*parts, name)):
                    fitting.append((name, entry))
            return fitting
        proofs = {name: entry for name, entry in files.items() if _saves(name)}
        lasts = {}
        for pattern, marker in _COMPLETED_BY:
            if any(pattern.match(name) for name in directories):
                lasts[marker] = files.get(marker)
        if any(name.endswith(".distcp") for name in proofs):  # torch.distributed.checkpoint writes .metadata last
            proofs = {name: entry for name, entry in proofs.items() if not name.endswith(".distcp")}
            lasts[".metadata"] = files.get(".metadata")
        if "training_args.bin" in proofs and parts and _TRAINER.match(parts[-1]):  # Trainer writes its state last
            proofs, lasts = {}, {"trainer_state.json": files.get("trainer_state.json")}
        if any(_SHARD.search(name) for name in proofs):
            proofs = {name: entry for name, entry in proofs.items() if not _SHARD.search(name)}
        proofs.update((name, entry) for name, entry in lasts.items() if entry is not None)
        return list(proofs.items())

    def _fits(self, parts: tuple[str, ...]) -> bool:
        name = parts[-1].lower()
        for pattern in self._patterns:
            last = pattern[-1].lower()
            log = next((ending for ending in _NO_SAVE if name.endswith(ending)), None)
            named = not (log or name.startswith(_NO_SAVE_PREFIX)) or (log and last.endswith(log)) or last == name
            if named and _fits(pattern, parts):
                return True
        return False


def _fits(pattern: list[str], parts: tuple[str, ...]) -> bool:
    """Whether the path or a directory above it fits. `**` stands for any number of directories, also none."""
    reached = {0}
    for part in parts:
        following = set()
        for at in _skipping(pattern, reached):
            if at == len(pattern) or (pattern[at] == "**" and not part.startswith(".")):
                following.add(at)
            elif pattern[at] != "**" and matches(pattern[at], part):
                following.add(at + 1)
        reached = following
    return len(pattern) in _skipping(pattern, reached)


def _skipping(pattern: list[str], reached: set[int]) -> set[int]:
    """These positions, and those after each `**` that may stand for nothing."""
    found = set(reached)
    for at in reached:
        following = at
        while following < len(pattern) and pattern[following] == "**":
            following += 1
            found.add(following)
    return found


def _temporary(name: str) -> bool:
    name = name.lower()
    return name.endswith(_TEMPORARY) or name.startswith(_TEMPORARY_PREFIX) or ".tmp" in name or "checkpoint-tmp" in name


def _saves(name: str) -> bool:
    """Whether frameworks give such a name to what they save."""
    if name.startswith(".") or _temporary(name):
        return False
    name = name.lower()
    if name.endswith(_SAVES) or name in _SAVES_NAMED:
        return True
    return name.startswith(_SAVES_PREFIX) and "." not in name


def _listing(directory: str, most: int, until: float) -> tuple[dict[str, Any], dict[str, Any], int]:
    """(files, directories, how many entries were read); what disappears or can't be read while it is read is left."""
    files: dict[str, Any] = {}
    directories: dict[str, Any] = {}
    looked = 0
    try:
        with os.scandir(directory) as entries:
            for entry in entries:
                looked += 1
                try:
                    (directories if entry.is_dir(follow_symlinks=False) else files)[entry.name] = entry
                except OSError:
                    continue
                if looked >= most or time.monotonic() >= until:
                    break
    except OSError:
        pass
    return files, directories, max(1, looked)


def _stat(entry: Any) -> tuple[float, int] | None:
    """Of a link, what it leads to: the target may be old, or gone."""
    try:
        status = entry.stat()
    except (OSError, ValueError):
        return None
    return (status.st_mtime, status.st_size) if stat.S_ISREG(status.st_mode) or entry.is_dir() else None
