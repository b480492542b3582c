"""Pages as an untrusted pod can serve them, read by the operator."""

from __future__ import annotations

import io
import math
from http.client import HTTPException
from random import Random
from typing import Final

from rightpool.pod_client import Incoming, RequestFailed, answer_of
from rightpool.telemetry import exposition
from rightpool.telemetry.scrape import LARGEST_PAGE
from rightpool.telemetry.sources.sidecar import METRICS
from rightpool.telemetry.sources.sidecar_page import PodPage, page_of, rates
from rightpool_profiler import exposition as writer
from rightpool_profiler.report import Malformed, parse
from rightpool_profiler.state import State
from tests.fuzz.datagrams import report
from tests.fuzz.mutation import damaged, encoded
from tests.fuzz.target import Finding

_LINES: Final = (
    "rightpool_samples_total 1e400",
    "rightpool_samples_total -5",
    "rightpool_samples_total nan",
    "rightpool_samples_total 0x10",
    "rightpool_samples_total ١",
    'rightpool_chip_busy_ratio{chip="a",chip="b"} 1',
    'rightpool_chip_busy_ratio{chip="a\\',
    'rightpool_chip_busy_ratio{chip="' + "a" * 5000 + '"} 1',
    'rightpool_field_quality{field="x",quality="derived"} 1',
    "up 1",
    "# EOF",
    "",
)


class _Connection(io.BytesIO):
    """A socket that brings these bytes."""

    def settimeout(self, seconds: float) -> None:
        """Nothing is waited for."""

    def recv_into(self, buffer: memoryview, size: int) -> int:
        return self.readinto(buffer[:size])


class Pages:
    """Real pages of a sidecar, broken. The operator believes the one before when it works out rates."""

    name = "pages"

    def __init__(self) -> None:
        self._pages = [_page(Random(number), number) for number in range(20)]
        self._before: PodPage | None = None
        self._now = 0.0

    def feed(self, random: Random) -> bool:
        self._now += random.choice((0.0, 1.0, 10.0, 100.0))
        body = damaged(self._body(random), random, random.choice((0, 1, 1, 2)))
        lengths = (str(len(body)),) * 8 + ("0", "x", "")
        head = f"HTTP/1.1 {random.choice(('200 OK',) * 9 + ('500', ''))}\r\nContent-Length: {random.choice(lengths)}"
        answer = f"{head}\r\n\r\n".encode() + body
        if random.random() < 0.1:
            answer = damaged(answer, random, 1)
        try:
            series = exposition.parse(answer_of(Incoming(_Connection(answer), math.inf), (200,), LARGEST_PAGE))
        except (RequestFailed, HTTPException, exposition.BadPage):
            return False
        page = page_of(series, self._now)
        self._believable(series, page)
        self._before = page
        return True

    def check(self) -> None:
        """Nothing is kept but the page before."""

    def _believable(self, series: list[exposition.Series], page: PodPage) -> None:
        for one in series:
            if one.metric not in METRICS or not math.isfinite(one.value):
                raise Finding(f"{one}")
        for metric, rate in rates(self._before, page, 60.0).items():
            if not (math.isfinite(rate) and rate >= 0):
                raise Finding(f"{metric} moves by {rate} a second")

    def _body(self, random: Random) -> bytes:
        lines = random.choice(self._pages).split("\n")
        for _ in range(random.choice((0, 0, 1, 2))):
            at = random.randrange(len(lines))
            choice = random.random()
            if choice < 0.5:
                lines.insert(at, random.choice(_LINES))
            elif choice < 0.8:
                lines.insert(at, lines[random.randrange(len(lines))])
            else:
                name, _, _ = lines[at].rpartition(" ")
                lines[at] = f"{name} {random.choice(('-1', '1e999', 'inf', 'NaN', '', '1 1 1', '0.5', '1e-400'))}"
        return "\n".join(lines).encode()


def _page(random: Random, number: int) -> str:
    state = State(10.0, 4)
    for step in range(1 + number % 3):
        try:
            state.apply(parse(encoded(report(random, 1000.0 + step))), 1000.0 + step, 1.9e9)
        except Malformed:
            continue
    return writer.render(*state.exposition(1003.0))
