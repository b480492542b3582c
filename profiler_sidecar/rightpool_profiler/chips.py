"""The chips of this pod as its processes see them, by UUID: several processes report the same ones."""

from collections import defaultdict
from typing import Final

from rightpool import contract
from rightpool_profiler.exposition import Sample
from rightpool_profiler.report import Chip
from rightpool_profiler.window import Window

_RATIOS: Final = {
    "busy": contract.CHIP_BUSY,
    "compute_active": contract.CHIP_COMPUTE_ACTIVE,
    "matrix_active": contract.CHIP_MATRIX_ACTIVE,
    "memory_bandwidth": contract.CHIP_MEMORY_BANDWIDTH,
    "occupancy": contract.CHIP_OCCUPANCY,
}


class Chips:
    """Gauges are averaged over the interval (memory: its peak); counters only grow."""

    def __init__(self, interval: float, limit: int) -> None:
        self._limit = limit
        self._gauges: dict[tuple[str, str], dict[str, Window]] = defaultdict(
            lambda: defaultdict(lambda: Window(interval))
        )
        self._latest: dict[str, Chip] = {}
        self._energy: dict[str, float] = {}
        self._errors: dict[tuple[str, str], float] = {}
        self._links: dict[tuple[str, tuple[str, str]], float] = {}
        self._links_before: dict[tuple[tuple[int, int], str, tuple[str, str]], float] = {}

    def add(self, process: tuple[int, int], chip: Chip, now: float) -> None:
        """Take one reading that `process` has made."""
        if chip.uuid not in self._latest and len(self._latest) >= self._limit:
            return
        self._latest[chip.uuid] = chip
        for name, ratio in chip.ratios.items():
            self._gauges[chip.uuid, _RATIOS[name]][""].add(now, ratio)
        for metric, value in ((contract.CHIP_MEMORY_USED, chip.memory_used), (contract.CHIP_POWER, chip.power)):
            if value is not None:
                self._gauges[chip.uuid, metric][""].add(now, value)
        for reason, active in chip.throttle.items():
            self._gauges[chip.uuid, contract.CHIP_THROTTLE][reason].add(now, float(active))
        if chip.energy is not None:
            self._energy[chip.uuid] = max(chip.energy, self._energy.get(chip.uuid, 0.0))
        for kind, count in chip.errors.items():
            self._errors[chip.uuid, kind] = max(count, self._errors.get((chip.uuid, kind), 0.0))
        for link, moved in chip.links.items():
            self._move(process, chip.uuid, link, moved)

    def _move(self, process: tuple[int, int], uuid: str, link: tuple[str, str], moved: float) -> None:
        """Bytes are counted by each agent from its own start."""
        before = self._links_before.get((process, uuid, link), 0.0)
        if len(self._links_before) > 1024:
            self._links_before.clear()
        self._links_before[process, uuid, link] = moved
        if moved >= before:
            self._links[uuid, link] = self._links.get((uuid, link), 0.0) + moved - before

    def samples(self, now: float) -> list[Sample]:
        """What can be said about the chips at this moment."""
        found: list[Sample] = []
        for (uuid, metric), windows in self._gauges.items():
            for reason, window in windows.items():
                value = window.peak(now) if metric == contract.CHIP_MEMORY_USED else window.mean(now)
                if value is None:
                    continue
                labels = {contract.LABEL_CHIP: uuid, **({contract.LABEL_REASON: reason} if reason else {})}
                found.append(Sample(metric, labels, value))
                if metric == contract.CHIP_MEMORY_USED and (total := self._latest[uuid].memory_total) is not None:
                    found.append(Sample(contract.CHIP_MEMORY_TOTAL, labels, total))
        for uuid, joules in self._energy.items():
            found.append(Sample(contract.CHIP_ENERGY, {contract.LABEL_CHIP: uuid}, joules))
        for (uuid, kind), count in self._errors.items():
            found.append(Sample(contract.CHIP_ERRORS, {contract.LABEL_CHIP: uuid, "kind": kind}, count))
        for (uuid, (link, direction)), moved in self._links.items():
            labels = {contract.LABEL_CHIP: uuid, "link": link, "direction": direction}
            found.append(Sample(contract.LINK_BYTES, labels, moved))
        return found
