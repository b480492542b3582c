"""Openings: the free chips of one pool by node or slice, and what pods of a size find there.

Eight nodes with one free chip each are no room for a pod of eight chips.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from heapq import heapify, heappop, heappush, nsmallest

from rightpool.hardware.pool import OpenNode, Pool

Labels = frozenset[tuple[str, str]]
EVERY_NODE: Labels = frozenset()


class Openings:
    """Free chips of one pool in one cycle, by node; `take` uses them up and `give` gives them back.

    A node that an autoscaler would add counts as an empty one with any labels. Pods go where they leave the least
    over, which is what keeps room for large ones.
    """

    __slots__ = ("_by_free", "_counts", "_free", "_fresh", "_known", "_labels", "_made", "_pods", "unit", "whole")

    def __init__(self, pool: Pool) -> None:
        self.unit = pool.unit
        self.whole = pool.slice is not None
        nodes = sorted(pool.open_nodes or _packed(pool), key=lambda node: node.name)
        self._free = {node.name: node.free for node in nodes}
        self._labels = {node.name: node.labels for node in nodes}
        self._known = bool(pool.node_labels)
        self._fresh = pool.growable // self.unit
        self._made = 0
        self._by_free: dict[int, list[str]] = {}
        for name, free in self._free.items():
            self._by_free.setdefault(free, []).append(name)
        for names in self._by_free.values():
            heapify(names)
        self._counts: dict[Labels, dict[int, int]] = {}
        self._pods: dict[tuple[int, Labels], int] = {}

    def pods(self, each: int, selected: Labels = EVERY_NODE, extra: Mapping[str, int] | None = None) -> int:
        """How many pods of `each` chips find room. extra: chips by node that are the asker's own."""
        found = self._pods.get((each, selected))
        if found is None:
            found = self._fresh * (self.unit // each)
            found += sum(count * (free // each) for free, count in self._histogram(selected).items())
            self._pods[each, selected] = found
        for name, chips in (extra or {}).items():
            free = self._free.get(name, 0) if self._is_selected(name, selected) else 0
            found += (free + chips) // each - free // each
        return found

    def take(
        self, pods: int, each: int, selected: Labels = EVERY_NODE, extra: Mapping[str, int] | None = None
    ) -> dict[str, int]:
        """Chips by node that are used up for so many pods, as far as there is room; of `extra` nothing is."""
        taken: dict[str, int] = {}
        own = dict(extra or {})
        for name in sorted(own, key=lambda name: (-own[name], name)):
            free = self._free.get(name, 0) if self._is_selected(name, selected) else 0
            here = min(pods, (free + own[name]) // each)
            pods -= here
            self._use(name, max(0, here * each - own[name]), taken)
        while pods > 0:
            tightest = self._tightest(each, selected)
            if tightest is None:
                if self._fresh == 0 or each > self.unit:
                    break
                self._fresh -= 1
                self._made += 1
                tightest = f"+{self._made}"
                self._labels[tightest] = selected
                self._set(tightest, self.unit)
            here = min(pods, self._free[tightest] // each)
            pods -= here
            self._use(tightest, here * each, taken)
        return taken

    def keep(self, nodes: int, extra: Mapping[str, int], selected: Labels) -> dict[str, int]:
        """Use up all that is free on so many nodes: those on which the most is, with what is the asker's own."""
        names = [name for name in self._free if self._is_selected(name, selected)]
        names.sort(key=lambda name: (-self._free[name] - extra.get(name, 0), name))
        kept: dict[str, int] = {}
        for name in names[:nodes]:
            self._use(name, self._free[name], kept)
        return kept

    def give(self, taken: Mapping[str, int]) -> None:
        """Give back what `take` or `keep` has used up."""
        for name, chips in taken.items():
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

    def _is_selected(self, name: str, selected: Labels) -> bool:
        return not selected or not self._known or selected <= self._labels.get(name, selected)

    def _histogram(self, selected: Labels) -> dict[int, int]:
        """Nodes by free chips."""
        counts = self._counts.get(selected)
        if counts is None:
            counts = self._counts[selected] = {}
            for name, free in self._free.items():
                if self._is_selected(name, selected):
                    counts[free] = counts.get(free, 0) + 1
        return counts

    def _tightest(self, each: int, selected: Labels) -> str | None:
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
                found = name if self._is_selected(name, selected) else None
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
        for selected, counts in self._counts.items():
            if self._is_selected(name, selected):
                if before is not None:
                    counts[before] -= 1
                counts[free] = counts.get(free, 0) + 1


def _packed(pool: Pool) -> Iterable[OpenNode]:
    """Nodes for free chips of which only the number is known: as few as can be."""
    groups = pool.node_labels or {EVERY_NODE: pool.free}
    for group, (labels, free) in enumerate(sorted(groups.items(), key=lambda item: sorted(item[0]))):
        for number in range(-(-free // pool.unit)):
            yield OpenNode(f"~{group}.{number}", min(pool.unit, free - number * pool.unit), labels)
