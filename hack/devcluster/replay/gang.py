"""A gang: the pods of one Revision, which do every step together, and their progress.

Synchronous training has one speed. The gang therefore has one odometer, integrated from the speed since the last
change, and a pod reports the progress since it joined. There is no timer: ten thousand pods cost nothing between
requests.
"""

import math
from bisect import bisect_left
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final
from zlib import crc32

from devcluster.replay.faults import NONE, Faults
from devcluster.replay.pod import PREFIX, GangKey, SimulatedPod
from devcluster.replay.table import NoRow, Row

# Upper bounds in seconds, those of the real sidecar.
BUCKETS: Final = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 60.0, 120.0)
WARM_UP_SPEED: Final = 0.25  # share of the speed during the warm-up
NOISE: Final = 0.01
_NOISE_PERIOD: Final = 47.0  # seconds; a prime, so that no scrape interval is a divisor of it
_IDLE_POWER: Final = 0.25  # share of its power that a chip draws while it waits

Lookup = Callable[[str, str, int], Row]


@dataclass(frozen=True, slots=True)
class Odometer:
    """Sums since the gang's first step.

    seconds: spent stepping; stepped: until the last whole step was done. joules: of one chip. buckets: whole steps by
    duration.
    """

    steps: float = 0.0
    seconds: float = 0.0
    stepped: float = 0.0
    joules: float = 0.0
    buckets: tuple[int, ...] = (0,) * (len(BUCKETS) + 1)

    def since(self, then: "Odometer") -> "Odometer":
        """The difference to an earlier reading; a step in progress at that time counts as whole."""
        if not then.seconds:
            return self
        return Odometer(
            self.steps - int(then.steps),
            self.seconds - then.seconds,
            self.stepped - then.stepped,
            self.joules - then.joules,
            tuple(now - before for now, before in zip(self.buckets, then.buckets, strict=True)),
        )


@dataclass(frozen=True, slots=True)
class Speed:
    """How the gang steps.

    samples_per_second: of the whole gang, warmed up, without noise. exposed, input_wait: shares of the step. work: the
    speed against the row's. watts: of one chip; 0 where the row does not say.
    """

    row: Row
    samples_per_second: float
    exposed: float
    input_wait: float
    work: float
    watts: float

    @property
    def steps_per_second(self) -> float:
        return self.samples_per_second / (self.row.batch_per_chip * self.row.chips)


def speed_of(row: Row, throughput: float, link: float) -> Speed:
    """The speed of a row with faults: the step takes 1/throughput as long, its exposed communication also 1/link."""
    stretch = 1 - row.exposed_communication + row.exposed_communication / link
    work = throughput / stretch
    return Speed(
        row=row,
        samples_per_second=row.samples_per_second * work,
        exposed=row.exposed_communication / link / stretch,
        input_wait=row.input_wait / stretch,
        work=work,
        watts=(row.power_watts or 0.0) * (_IDLE_POWER + (1 - _IDLE_POWER) * min(1.0, work)),
    )


class Conflict(Exception):
    """A checkpoint can't be requested now. The message is the sidecar's answer."""


@dataclass(frozen=True, slots=True)
class SaveRequest:
    """at: Unix seconds. due: when the save completes; None: never."""

    id: str
    at: float
    due: float | None


class Gang:
    """One Revision's pods. Times are Unix seconds, and each call's `now` is no earlier than the last one's."""

    def __init__(self, key: GangKey) -> None:
        self.pods: Mapping[str, SimulatedPod] = {}
        self.faults: Mapping[str, Faults] = {}
        self.speed: Speed | None = (
            None  # the present speed, or the last one of a stopped gang; None: not started, or no row
        )
        self.problem: str | None = None  # why nothing can be exported
        self.formed_at: float | None = None  # since when all pods run; None: not all run
        self.epoch = 0  # changes whenever anything above does
        self._base = Odometer()
        self._base_at = 0.0  # the odometer stood at _base then
        self._joined: dict[str, Odometer] = {}
        self._phase = 2 * math.pi * unit(f"{key.namespace}/{key.job}/{key.revision}")
        self._saved_at: float | None = None
        self._request: SaveRequest | None = None

    # --- membership --------------------------------------------------------------------------------------------------

    def update(
        self,
        now: float,
        pods: Mapping[str, SimulatedPod],
        faults: Mapping[str, Faults],
        accelerators: Mapping[str, str | None],
        lookup: Lookup,
    ) -> None:
        """Its pods, by uid, are now these, with these faults (the pool's and the pod's own together, by uid) on nodes
        with these accelerators (by name of the node)."""
        self.odometer(now)
        self.saved_at(now)
        for uid in pods:
            self._joined.setdefault(uid, self._base)
        self._joined = {uid: self._joined[uid] for uid in pods}
        self.pods, self.faults = pods, faults
        self.epoch += 1
        self.problem = None
        was_stepping, self.formed_at = self.formed_at is not None, None
        live = [pod for pod in pods.values() if not pod.ended]
        try:
            for pod in live:
                if pod.play.problem is not None:
                    raise NoRow(f"{pod}: {pod.play.problem}")
            if live and len(live) >= max(pod.world or 1 for pod in live) and all(pod.running for pod in live):
                self.speed = self._speed(live, accelerators, lookup)
                self.formed_at = max(pod.started or now for pod in live)
                # A process that starts later must compute the same progress.
                self._base_at = now if was_stepping else max(self.formed_at, self._base_at)
        except NoRow as error:
            self.problem, self.speed = str(error), None

    def _speed(self, live: list[SimulatedPod], accelerators: Mapping[str, str | None], lookup: Lookup) -> Speed:
        workloads = {pod.play.workload for pod in live}
        chips = {accelerators.get(pod.node or "") for pod in live}
        workload, accelerator = next(iter(workloads)), next(iter(chips))
        if len(workloads) > 1 or len(chips) > 1:
            raise NoRow("no row for several workloads, or several kinds of accelerator, at once")
        if workload is None:
            raise NoRow(f"no workload: the annotation {PREFIX}workload is missing")
        if accelerator is None:
            raise NoRow(f"no row for {workload}: the labels of node {live[0].node} name no accelerator")
        row = lookup(workload, accelerator, sum(pod.chips for pod in live))
        faults = [self.faults.get(pod.uid, NONE) for pod in live]
        # The slowest pod determines the speed.
        return speed_of(row, min(fault.throughput for fault in faults), min(fault.link for fault in faults))

    # --- the odometer ------------------------------------------------------------------------------------------------

    def odometer(self, now: float) -> Odometer:
        """The progress until `now`. Whole steps keep the bucket in which they were first counted."""
        if self.speed is None or self.formed_at is None or now <= self._base_at:
            return self._base
        base, start = self._base, self._base_at
        warm = min(max(start, self.formed_at + self._warm_up()), now)
        pace = WARM_UP_SPEED * self._noisy(start, warm) + self._noisy(warm, now)
        steps = base.steps + self.speed.steps_per_second * pace
        seconds = now - start
        stepped, buckets = base.stepped, base.buckets
        done = int(steps) - int(base.steps)
        if done:
            step_seconds = seconds / (steps - base.steps)
            stepped = max(stepped, base.seconds + seconds - (steps - int(steps)) * step_seconds)
            filled = list(buckets)
            filled[bisect_left(BUCKETS, step_seconds)] += done
            buckets = tuple(filled)
        self._base = Odometer(steps, base.seconds + seconds, stepped, base.joules + self.speed.watts * seconds, buckets)
        self._base_at = now
        return self._base

    def since_joining(self, uid: str, now: float) -> Odometer:
        """The progress since a pod joined."""
        return self.odometer(now).since(self._joined[uid])

    def _warm_up(self) -> float:
        return max((pod.play.warm_up for pod in self.pods.values()), default=0.0)

    def _noisy(self, start: float, end: float) -> float:
        """Seconds from start to end with a slow wave of 1% that depends only on the clock and the gang's name."""
        turn = 2 * math.pi / _NOISE_PERIOD
        wave = math.cos(turn * start + self._phase) - math.cos(turn * end + self._phase)
        return end - start + NOISE * wave / turn

    # --- checkpoints -------------------------------------------------------------------------------------------------

    def ask_save(self, identity: str, mode: str, now: float) -> str:
        """Request a save with this id. A repeated request returns its state. mode: spec.checkpoint.mode."""
        if mode == "None":
            raise Conflict("this job does not checkpoint")
        if self._request is None or self._request.id != identity:
            if self.formed_at is None or self.odometer(now).steps < 1:
                raise Conflict("no training process has been seen")
            delay = self._save_delay() if mode == "Signal" else None
            self._request = SaveRequest(identity, now, None if delay is None else now + delay)
        return self.save_state(mode, now)

    def save_state(self, mode: str, now: float) -> str:
        """The state of the newest request."""
        saved = self.saved_at(now)
        if self._request is None:
            return "none"
        if saved is not None and saved >= self._request.at:
            return "saved"
        return "waiting" if mode == "Periodic" else "signalled"

    def saved_at(self, now: float) -> float | None:
        """When the newest save completed, requested or periodic; None: there was none."""
        if self._request is not None and self._request.due is not None and self._request.due <= now:
            self._saved_at = max(self._request.due, self._saved_at or 0.0)
        every = min((pod.play.checkpoint_every or math.inf for pod in self.pods.values()), default=math.inf)
        if self.formed_at is not None and now - self.formed_at >= every:
            latest = self.formed_at + every * math.floor((now - self.formed_at) / every)
            self._saved_at = max(latest, self._saved_at or 0.0)
        return self._saved_at

    @property
    def save_request(self) -> SaveRequest | None:
        return self._request

    def save_seconds(self) -> float | None:
        """How long a save blocks the program."""
        return self._save_delay()

    def _save_delay(self) -> float | None:
        delays = [pod.play.checkpoint_delay for pod in self.pods.values()]
        return None if not delays or None in delays else max(delay for delay in delays if delay is not None)


def unit(text: str) -> float:
    """A hash between 0 and 1, the same in every process, unlike Python's hash."""
    return crc32(text.encode()) / 2**32
