"""Partitions of a Slurm cluster with their chips, as Slurm or its user writes them down.

Slurm names a chip as the site has configured it: by the driver's name, as AutoDetect does, or shorter, such as a100.
Of a name that several chips may have none is guessed.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Final

from pydantic import BaseModel, ConfigDict, Field, field_validator
from pydantic.alias_generators import to_camel

from rightpool.api.value_object import value_object
from rightpool.cli.typed_file import FileProblem, read_typed
from rightpool.hardware.accelerator import Accelerator
from rightpool.hardware.catalog import Catalog, UnknownAcceleratorError

# States, and flags beside them, in which a node gets no job until somebody mends it.
_BROKEN: Final = frozenset({"DOWN", "DRAIN", "ERROR", "FAIL", "FUTURE", "INVALID_REG", "NOT_RESPONDING", "UNKNOWN"})
# One of a list, such as gpu:a100:8. Where it is, (S:0-1), is taken away before.
_GRES: Final = re.compile(r"(gpu(?::([^:,]+))?):(\d+)")
_MAKERS: Final = frozenset({"nvidia", "tesla", "geforce", "amd", "instinct", "quadro"})
_PART: Final = "-MIG-"
_GPU: Final = "gpu"
_SHOWN: Final = 4
_Count = Annotated[int, Field(ge=1)]


@value_object
class Partition:
    """One that has nodes with these chips, or several, of which sbatch takes the one where a job starts first."""

    name: str
    """Of its row: as sbatch takes it, and with the chips where others have the same name."""
    partition: str
    """As sbatch takes it, with commas between."""
    gres: str
    """As sbatch names its chips, less their number: gpu:a100, or gpu."""
    chip: Accelerator
    """What they are."""
    chips_per_node: int
    """Chips of one node."""
    nodes: int
    """That can have jobs, in the largest of them."""


class _Listed(BaseModel):
    """Of a file by hand."""

    model_config = ConfigDict(extra="forbid", alias_generator=to_camel)

    chip: str
    gres: Annotated[str, Field(pattern=r"^gpu(:[^:,\s]+)?$")] = "gpu"
    nodes: _Count
    chips_per_node: _Count


class _Node(BaseModel):
    """Of `sinfo --json` up to Slurm 22.05, and of `scontrol show nodes --json`."""

    partitions: tuple[str, ...] = ()
    gres: str | None = None
    state: str | tuple[str, ...] = ()
    state_flags: tuple[str, ...] = ()

    @property
    def states(self) -> set[str]:
        base = [self.state] if isinstance(self.state, str) else self.state
        return {state.upper() for state in (*base, *self.state_flags)}


class _Named(BaseModel):
    name: str


class _States(BaseModel):
    state: tuple[str, ...] = ()


class _Total(BaseModel):
    total: int = 0


class _Gres(BaseModel):
    total: str | None = None


class _Group(BaseModel):
    """Of `sinfo --json` since Slurm 23.02: nodes of a partition that are alike."""

    partition: _Named
    node: _States = Field(default_factory=_States)
    nodes: _Total
    gres: _Gres = Field(default_factory=_Gres)


class _Inventory(BaseModel):
    partitions: Mapping[str, _Listed] = Field(default_factory=dict)
    nodes: tuple[_Node, ...] = ()
    sinfo: tuple[_Group, ...] = ()

    @field_validator("partitions", mode="before")
    @classmethod
    def _named(cls, partitions: object) -> object:
        if isinstance(partitions, list):  # of `scontrol show partitions --json`
            raise ValueError("these are partitions without their nodes: give what `sinfo --json` prints")
        return partitions

    def counted(self) -> dict[tuple[str, str], Counter[int]]:
        """By partition and GRES, how many nodes have how many chips."""
        found: dict[tuple[str, str], Counter[int]] = defaultdict(Counter)
        for name, listed in self.partitions.items():
            found[name, listed.gres][listed.chips_per_node] += listed.nodes
        for node in self.nodes:
            if not node.states & _BROKEN:
                for name in node.partitions:
                    _count(found, name, node.gres, 1)
        for group in self.sinfo:
            if not _BROKEN & {state.upper() for state in group.node.state}:
                _count(found, group.partition.name, group.gres.total, group.nodes.total)
        return found


def _count(found: dict[tuple[str, str], Counter[int]], name: str, gres: str | None, nodes: int) -> None:
    for match in _GRES.finditer(re.sub(r"\([^)]*\)", "", gres or "")):
        if (chips := int(match[3])) and nodes:
            found[name, match[1]][chips] += nodes


def read_inventory(
    path: Path, chips: Mapping[str, str], catalog: Catalog
) -> tuple[tuple[Partition, ...], tuple[str, ...]]:
    """The partitions that have chips of the catalog, and sentences about others. chips: keys of the catalog by the name
    that Slurm has for a chip; gpu where it has none. Raises FileProblem."""
    inventory = read_typed(path, _Inventory, "inventory of Slurm")
    counted = inventory.counted()
    if not counted:
        raise FileProblem(f"{path} is no inventory of Slurm: it has no node with GPUs that can have jobs")
    places: dict[tuple[str, str, int], Partition] = {}
    notes = []
    for (name, gres), nodes in counted.items():
        chips_per_node, count = nodes.most_common(1)[0]
        listed = inventory.partitions.get(name)
        try:
            chip = _chip(gres, chips, catalog) if listed is None else catalog.get(listed.chip)
        except UnknownAcceleratorError as error:
            where = "--chip" if listed is None else f"{path}: partitions.{name}.chip"
            raise FileProblem(f"{where}: {error}") from error
        except _Ambiguous as error:
            raise FileProblem(f"{path}: partition {name}: {error}") from error
        if chip is None:
            notes.append(f"partition {name} is left out: the catalog has no {gres}; say what it is by --chip NAME=KEY")
            continue
        place = gres, chip.key, chips_per_node
        if (before := places.get(place)) is not None:
            name, count = f"{before.partition},{name}", max(before.nodes, count)
        places[place] = Partition(f"{name} {gres}", name, gres, chip, chips_per_node, count)
    kinds = Counter(one.partition for one in places.values())
    alone = (replace(one, name=one.partition) if kinds[one.partition] == 1 else one for one in places.values())
    return tuple(alone), tuple(notes)


class _Ambiguous(Exception):
    """Several chips may be called so; the message asks which one it is."""


def _chip(gres: str, chips: Mapping[str, str], catalog: Catalog) -> Accelerator | None:
    """None where the catalog has none that may be called so. Raises UnknownAcceleratorError, of `chips`."""
    kind = gres.partition(":")[2] or _GPU
    keys = [chips[kind]] if kind in chips else _keys(kind, catalog)
    if len(keys) > 1:
        raise _Ambiguous(f"is {gres} {' or '.join(keys[:_SHOWN])}? say it by --chip {kind}=KEY")
    return catalog.get(keys[0]) if keys else None


def _keys(kind: str, catalog: Catalog) -> list[str]:
    """Of chips that may be called so."""
    words = _words(kind)
    named = {
        row.accelerator
        for rows in catalog.labels.values()
        for row in rows
        if _words(row.value) == words and "*" not in row.value
    }
    short = {
        key
        for key in catalog.accelerators
        if words and _PART not in key and _words(key)[0] == words[0] and set(words) <= set(_words(key))
    }
    return sorted(named | short)


def _words(name: str) -> list[str]:
    return [word for word in re.split(r"[^a-z0-9.]+", name.lower()) if word and word not in _MAKERS]
