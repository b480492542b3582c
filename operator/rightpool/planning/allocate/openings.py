"""Openings: the free chips of one pool by node or slice, and what pods of a size find there.

Eight nodes with one free chip each are no room for a pod of eight chips.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from heapq import heapify, heappop, heappush, nsmallest

from rightpool.hardware.node_needs import NO_NEEDS, NodeNeeds, NodeShape
from rightpool.hardware.pool import OpenNode, Pool

_Kinds = frozenset[int]
"""Which kinds of nodes will do: those of one shape are of one kind. Jobs of many needs have few such sets."""


class Openings:
    """Free chips of one pool in one cycle, by node; `take` uses them up and `give` gives them back.

    A node that an autoscaler would add counts as an empty one with the labels that are asked for. Pods go where
    they leave the least over, which is what keeps room for large ones.
    """

    __slots__ = (
        "_by_free",
        "_counts",
        "_free",
        "_fresh",
        "_kind",
        "_kinds",
        "_made",
        "_numbers",
        "_pods",
        "_suitable",
        "unit",
        "whole",
    )

    def __init__(self, pool: Pool) -> None:
        self.unit = pool.unit
        self.whole = pool.slice is not None
        nodes = sorted(pool.open_nodes or _packed(pool), key=lambda node: node.name)
        self._free = {node.name: node.free for node in nodes}
        self._numbers: dict[tuple[NodeShape | None, bool], int] = {}
        self._kinds: list[tuple[NodeShape | None, bool]] = []  # with whether it is of nodes that would be added
        self._kind = {node.name: self._number(node.shape) for node in nodes}
        self._suitable: dict[NodeNeeds, _Kinds] = {}
        self._fresh = pool.growable // self.unit
        self._made = 0
        self._by_free: dict[int, list[str]] = {}
        for name, free in self._free.items():
            self._by_free.setdefault(free, []).append(name)
        for names in self._by_free.values():
            heapify(names)
        self._counts: dict[_Kinds, dict[int, int]] = {}
        self._pods: dict[tuple[int, _Kinds], int] = {}

    def copy(self) -> Openings:
        """The same, to be used up by itself."""
        other = object.__new__(Openings)
        other.unit, other.whole, other._fresh, other._made = self.unit, self.whole, self._fresh, self._made
        other._free, other._kind, other._suitable = dict(self._free), dict(self._kind), dict(self._suitable)
        other._numbers, other._kinds = dict(self._numbers), list(self._kinds)
        other._by_free = {free: list(names) for free, names in self._by_free.items()}
        other._counts, other._pods = {}, {}
        return other

    @property
    def nodes(self) -> tuple[OpenNode, ...]:
        """The nodes that are there and have free chips, by name."""
        named = sorted((name, free) for name, free in self._free.items() if free)
        return tuple(OpenNode(name, free, self._kinds[self._kind[name]][0]) for name, free in named)

    @property
    def growable(self) -> int:
        """Chips of nodes that can still be added."""
        return self._fresh * self.unit

    def free(self) -> dict[str, int]:
        """Free chips by node; those of nodes that can be added under `+`."""
        found = {name: chips for name, chips in self._free.items() if chips}
        return found | {"+": self.growable} if self._fresh else found

    def pods(self, each: int, needs: NodeNeeds = NO_NEEDS, extra: Mapping[str, int] | None = None) -> int:
        """How many pods of `each` chips find room. extra: chips by node that are the asker's own."""
        kinds = self._suiting(needs)
        found = self._pods.get((each, kinds))
        if found is None:
            found = self._fresh * (self.unit // each)
            found += sum(count * (free // each) for free, count in self._histogram(kinds).items())
            self._pods[each, kinds] = found
        for name, chips in (extra or {}).items():
            free = self._free.get(name, 0) if self._kind.get(name) in kinds else 0
            found += (free + chips) // each - free // each
        return found

    def take(
        self, pods: int, each: int, needs: NodeNeeds = NO_NEEDS, extra: Mapping[str, int] | None = None
    ) -> dict[str, int]:
        """Chips by node that are used up for so many pods, as far as there is room; of `extra` nothing is."""
        taken: dict[str, int] = {}
        own = dict(extra or {})
        kinds = self._suiting(needs)
        for name in sorted(own, key=lambda name: (-own[name], name)):
            free = self._free.get(name, 0) if self._kind.get(name) in kinds else 0
            here = min(pods, (free + own[name]) // each)
            pods -= here
            self._use(name, max(0, here * each - own[name]), taken)
        while pods > 0:
            tightest = self._tightest(each, kinds)
            if tightest is None:
                if self._fresh == 0 or each > self.unit:
                    break
                self._fresh -= 1
                self._made += 1
                tightest = f"+{self._made}"
                self._kind[tightest] = self._number(NodeShape(frozenset(needs.labels)), added=True)
                kinds = self._suiting(needs)
                self._set(tightest, self.unit)
            here = min(pods, self._free[tightest] // each)
            pods -= here
            self._use(tightest, here * each, taken)
        return taken

    def keep(
        self, nodes: int, extra: Mapping[str, int], needs: NodeNeeds, before: frozenset[str] = frozenset()
    ) -> dict[str, int]:
        """Use up all that is free on so many nodes: those kept before, then those on which the most is, with what is
        the asker's own."""
        kinds = self._suiting(needs)
        names = [name for name in self._free if self._kind[name] in kinds]
        names.sort(key=lambda name: (name not in before, -self._free[name] - extra.get(name, 0), name))
        kept = dict.fromkeys(names[:nodes], 0)
        for name in names[:nodes]:
            self._use(name, self._free[name], kept)
        return kept

    def give(self, taken: Mapping[str, int]) -> None:
        """Give back what `take` or `keep` has used up, or what pods hold. Of nodes without free chips nothing else is
        known."""
        for name, chips in taken.items():
            if name not in self._kind:
                self._kind[name] = self._number(None)
                self._forget()
            self._set(name, self._free.get(name, 0) + chips)

    def spread(self, chips: int) -> dict[str, int]:
        """Where chips in use may be whose nodes are not known: on nodes that are partly free, then on full ones."""
        found: dict[str, int] = {}
        for free in range(self.unit - 1, 0, -1):
            names = {name for name in self._by_free.get(free, ()) if self._free[name] == free}
            for name in nsmallest(-(-chips // (self.unit - free)), names):
                found[name] = min(self.unit - free, chips)
                chips -= found[name]
        number = 0
        while chips > 0:
            found[f"?{number}"] = min(self.unit, chips)
            chips -= self.unit
            number += 1
        return found

    # --- counts ------------------------------------------------------------------------------------------------------

    def _number(self, shape: NodeShape | None, *, added: bool = False) -> int:
        """The kind of nodes of a shape."""
        kind = shape, added
        if kind not in self._numbers:
            self._numbers[kind] = len(self._kinds)
            self._kinds.append(kind)
            if added:  # what was counted without it
                self._forget()
        return self._numbers[kind]

    def _forget(self) -> None:
        self._suitable.clear()
        self._counts.clear()
        self._pods.clear()

    def _suiting(self, needs: NodeNeeds) -> _Kinds:
        """The kinds of nodes that have what is needed. Of what is not known everything is."""
        found = self._suitable.get(needs)
        if found is None:
            found = self._suitable[needs] = frozenset(
                number
                for number, (shape, added) in enumerate(self._kinds)
                if shape is None or (not needs.unselected(shape.labels) if added else needs.fit(shape))
            )
        return found

    def _histogram(self, kinds: _Kinds) -> dict[int, int]:
        """Nodes by free chips."""
        counts = self._counts.get(kinds)
        if counts is None:
            counts = self._counts[kinds] = {}
            for name, free in self._free.items():
                if self._kind[name] in kinds:
                    counts[free] = counts.get(free, 0) + 1
        return counts

    def _tightest(self, each: int, kinds: _Kinds) -> str | None:
        """The node with the least free chips that hold one pod."""
        for free in sorted(self._by_free):
            if free < each:
                continue
            names, passed = self._by_free[free], []
            found = None
            while names and found is None:
                name = heappop(names)
                if self._free[name] != free:
                    continue  # its free chips have changed since
                passed.append(name)
                found = name if self._kind[name] in kinds else None
            for name in passed:
                heappush(names, name)
            if not names:
                del self._by_free[free]
            if found is not None:
                return found
        return None

    def _use(self, name: str, chips: int, taken: dict[str, int]) -> None:
        if chips > 0:
            taken[name] = taken.get(name, 0) + chips
            self._set(name, self._free[name] - chips)

    def _set(self, name: str, free: int) -> None:
        before = self._free.get(name)
        self._free[name] = free
        self._pods.clear()
        heappush(self._by_free.setdefault(free, []), name)
        for kinds, counts in self._counts.items():
            if self._kind[name] in kinds:
                if before is not None:
                    counts[before] -= 1
                counts[free] = counts.get(free, 0) + 1


def _packed(pool: Pool) -> Iterable[OpenNode]:
    """Nodes for free chips of which only the number is known: as few as can be."""
    known = sorted(pool.shapes.items(), key=lambda item: (sorted(item[0].labels), *item[0][1:]))
    groups: list[tuple[NodeShape | None, int]] = [*known] or [(None, pool.free)]
    for group, (shape, free) in enumerate(groups):
        for number in range(-(-free // pool.unit)):
            yield OpenNode(f"~{group}.{number}", min(pool.unit, free - number * pool.unit), shape)
