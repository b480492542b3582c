"""The chips of this pod by UUID, because several processes may report the same chip."""

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
    "clock": contract.CHIP_CLOCK,
    "others": contract.CHIP_OTHERS,
}
_WORKS: Final = 0.001  # of the time, from which on a chip has done something
_LEFT_OUT: Final = 60.0  # seconds after which a chip that has done nothing is called unused
_NOW: Final = ("power_limit", "xid", "repair")  # of the newest reading
_NOW_METRICS: Final = (contract.CHIP_POWER_LIMIT, contract.CHIP_XID, contract.CHIP_REPAIR)


class Chips:
    """Gauges are averaged over the interval (memory: its peak); counters only grow."""

    def __init__(self, interval: float, limit: int) -> None:
        self._limit = limit
        self.busy_is_sampled = False  # busy time is from utilization samples, which say too much
        self._gauges: dict[tuple[str, str], dict[str, Window]] = defaultdict(
            lambda: defaultdict(lambda: Window(interval))
        )
        self._latest: dict[str, Chip] = {}
        self._seen: dict[str, float] = {}  # when a chip's activity was first read
        self._worked: set[str] = set()
        self._energy: dict[str, float] = {}
        self._errors: dict[tuple[str, str], float] = {}
        self._links: dict[tuple[str, tuple[str, str]], float] = {}
        self._links_before: dict[tuple[tuple[int, int], str, tuple[str, str]], float] = {}

    def add(self, process: tuple[int, int], chip: Chip, now: float) -> None:
        """Add a reading of `process`."""
        if chip.uuid not in self._latest and len(self._latest) >= self._limit:
            return
        self._latest[chip.uuid] = chip
        ratios = dict(chip.ratios)
        utilization = ratios.pop("utilization", None)  # whether any kernel was resident, by samples
        if utilization is not None and "busy" not in ratios:
            ratios["busy"] = utilization
            self.busy_is_sampled = True
        if "busy" in ratios:
            self._seen.setdefault(chip.uuid, now)
            if ratios["busy"] > _WORKS:
                self._worked.add(chip.uuid)
        for name, ratio in ratios.items():
            self._gauges[chip.uuid, _RATIOS[name]][""].add(now, ratio)
        for pipe, ratio in chip.pipes.items():
            self._gauges[chip.uuid, contract.CHIP_PIPE][pipe].add(now, ratio)
        for metric, value in (
            (contract.CHIP_MEMORY_USED, chip.memory_used),
            (contract.CHIP_POWER, chip.power),
            (contract.CHIP_TEMPERATURE, chip.temperature),
        ):
            if value is not None:
                self._gauges[chip.uuid, metric][""].add(now, value)
        for reason, active in chip.throttle.items():
            self._gauges[chip.uuid, contract.CHIP_THROTTLE][reason].add(now, float(active))
        self._count(process, chip)

    def _count(self, process: tuple[int, int], chip: Chip) -> None:
        if chip.energy is not None:
            self._energy[chip.uuid] = max(chip.energy, self._energy.get(chip.uuid, 0.0))
        for kind, count in chip.errors.items():
            self._errors[chip.uuid, kind] = max(count, self._errors.get((chip.uuid, kind), 0.0))
        for link, moved in chip.links.items():
            self._move(process, chip.uuid, link, moved)

    def _move(self, process: tuple[int, int], uuid: str, link: tuple[str, str], moved: float) -> None:
        """Add the increments of byte counters, which start at zero in each agent."""
        before = self._links_before.get((process, uuid, link), 0.0)
        if len(self._links_before) > 1024:
            self._links_before.clear()
        self._links_before[process, uuid, link] = moved
        if moved >= before:
            self._links[uuid, link] = self._links.get((uuid, link), 0.0) + moved - before

    def unused(self, now: float) -> int | None:
        """How many have done nothing since they were first read, while others worked; None where that is not known."""
        if len(self._seen) < max(2, len(self._latest)) or not self._worked:
            return None
        return sum(uuid not in self._worked and now - at >= _LEFT_OUT for uuid, at in self._seen.items())

    def samples(self, now: float) -> list[Sample]:
        """The metrics of the chips."""
        found: list[Sample] = []
        for (uuid, metric), windows in self._gauges.items():
            for reason, window in windows.items():
                value = window.peak(now) if metric == contract.CHIP_MEMORY_USED else window.mean(now)
                if value is None:
                    continue
                name = contract.LABEL_PIPE if metric == contract.CHIP_PIPE else contract.LABEL_REASON
                labels = {contract.LABEL_CHIP: uuid, **({name: reason} if reason else {})}
                found.append(Sample(metric, labels, value))
                if metric == contract.CHIP_MEMORY_USED and (total := self._latest[uuid].memory_total) is not None:
                    found.append(Sample(contract.CHIP_MEMORY_TOTAL, labels, total))
        for uuid, chip in self._latest.items():
            facts = {contract.LABEL_NAME: chip.name, contract.LABEL_SHARING: chip.sharing}
            facts[contract.LABEL_RANK] = None if chip.rank is None else str(chip.rank)
            words = {name: fact for name, fact in facts.items() if fact is not None}
            if words:
                found.append(Sample(contract.CHIP_INFO, {contract.LABEL_CHIP: uuid, **words}, 1.0))
            for field, metric in zip(_NOW, _NOW_METRICS, strict=True):
                if (reading := getattr(chip, field)) is not None:
                    found.append(Sample(metric, {contract.LABEL_CHIP: uuid}, reading))
        for uuid, joules in self._energy.items():
            found.append(Sample(contract.CHIP_ENERGY, {contract.LABEL_CHIP: uuid}, joules))
        for (uuid, kind), count in self._errors.items():
            found.append(Sample(contract.CHIP_ERRORS, {contract.LABEL_CHIP: uuid, contract.LABEL_KIND: kind}, count))
        for (uuid, (link, direction)), moved in self._links.items():
            labels = {
                contract.LABEL_CHIP: uuid,
                contract.LABEL_LINK: link,
                contract.LABEL_DIRECTION: direction,
            }
            found.append(Sample(contract.LINK_BYTES, labels, moved))
        return found
