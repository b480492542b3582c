"""MLPerf's log lines (`:::MLLOG {…}`, github.com/mlcommons/logging): how many samples a program says that it has
trained on, and when.

Programs count differently. Where lines have a `samples_count` that grows, that is taken; else the `throughput` of
`tracked_stats`, which is of the time since the stretch of training began or was told last: samples a second, of
language models often tokens. What else counts, such as `epoch_num`, is epochs in one program and samples in another.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

_MARK: Final = ":::MLLOG "
_TRACKED: Final = "tracked_stats"
_BEGINS: Final = frozenset({"run_start", "epoch_start", "block_start", "eval_stop"})
_LATEST: Final = 1e11  # Unix seconds


class TrainedStretch(NamedTuple):
    """A time in which a program trains, and does nothing else."""

    begin: float
    """Unix seconds."""
    end: float
    """The same."""
    samples: float
    """Trained on in it."""


@dataclass(slots=True)
class MlperfLog:
    """What the lines so far say."""

    benchmark: str = ""
    """What runs."""
    batch: int | None = None
    """Samples of an optimizer step, of all processes."""
    _counted: list[TrainedStretch] = field(default_factory=list)
    _by_rate: list[TrainedStretch] = field(default_factory=list)
    _began: float | None = None  # training, or the last throughput of it came
    _samples: tuple[float, float] | None = None  # the last count, and when

    @property
    def stretches(self) -> list[TrainedStretch]:
        """One after the other."""
        return self._counted or self._by_rate

    def read(self, lines: Iterable[str]) -> None:
        """More lines, in which others may stand, also before the mark. What is malformed is left out: a program that is
        killed leaves half a line."""
        for line in lines:
            _, mark, text = line.partition(_MARK)
            if not mark:
                continue
            try:
                event = json.loads(text)
            except (ValueError, RecursionError):
                continue
            at = _number(event, "time_ms")
            if at is not None and at / 1e3 < _LATEST:
                self._take(event, at / 1e3)

    def _take(self, event: Mapping[str, Any], at: float) -> None:
        key, value, about = (event.get(name) for name in ("key", "value", "metadata"))
        if key == "submission_benchmark":
            self.benchmark = str(value)
        if key == "global_batch_size" and (size := _number(event, "value")):
            self.batch = int(size)
        rate, count = _number(value, "throughput"), _number(about, "samples_count")
        if key == _TRACKED and rate and self._began is not None and at > self._began:
            self._by_rate.append(TrainedStretch(self._began, at, rate * (at - self._began)))
        if key in _BEGINS or (key == _TRACKED and rate):
            self._began = at
        if count is None or str(key).startswith("eval"):
            return
        if self._samples is not None and count > self._samples[0] and at > self._samples[1]:
            self._counted.append(TrainedStretch(self._samples[1], at, count - self._samples[0]))
        # A stretch begins where it is said to, after an evaluation.
        if self._samples is None or count != self._samples[0] or key in _BEGINS:
            self._samples = count, at


def _number(body: object, name: str) -> float | None:
    value = body.get(name) if isinstance(body, Mapping) else None
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return float(value) if 0.0 <= value <= 1e15 and math.isfinite(value) else None
