"""How the ranks of a traced program compare: who communicates while nothing is computed, and who never waits.

The answer is as short for a thousand ranks as for two.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import replace
from statistics import mean, median
from typing import Final

from rightpool.api.trace import MAX_FAILURES, TraceFailure, TraceRanks, TraceReason, TraceSpread, TraceState
from rightpool.planning.jobs.trace_answer import PodTrace, RankTrace, TraceAnswer
from rightpool.profiles.ranks import MOSTLY_SKEW, SKEW, WAITS_FOR_INPUT

_WAITING: Final = "ExposedCommunication"
_LOADING: Final = "Input"
_LONGEST_MESSAGE: Final = 200


def with_ranks(known: TraceAnswer, pods: Mapping[str, PodTrace], missing: Mapping[str, TraceFailure]) -> TraceAnswer:
    """The answer with what there is of all ranks. Its state stays.

    pods: the answers that are over, by pod. missing: why there is none, by pod.
    """
    captured = sorted(
        ((one, name) for name, pod in pods.items() for one in pod.ranks if one.summary is not None),
        key=lambda item: (item[0].rank, item[1]),
    )
    failures = sorted(
        [*missing.values(), *(failure for name, pod in pods.items() for failure in _failures(name, pod))],
        key=lambda failure: (failure.rank is None, failure.rank or 0, failure.pod),
    )
    ranks = TraceRanks(
        captured=len(captured),
        failed=len(failures),
        pods=len({name for _, name in captured}),
        program=max((pod.world for pod in pods.values() if pod.world is not None), default=None),
        failures=tuple(failures[:MAX_FAILURES]),
    )
    if not captured:
        return replace(known, ranks=ranks)
    shares = _shares(one for one, _ in captured)
    slow = never_waiting(shares.get(_WAITING, {}), shares.get(_LOADING, {}))
    shown, pod = next((item for item in captured if item[0].rank == slow), captured[0])
    return replace(
        known,
        pod=pod,
        size_bytes=sum(one.size_bytes or 0 for one, _ in captured),
        sha256=digest_of_all((one.rank, one.sha256 or "") for one, _ in captured),
        summary=shown.summary,
        ranks=replace(
            ranks,
            shown=shown.rank,
            straggler=slow,
            parts=tuple(_spread(part, found) for part, found in shares.items()),
        ),
    )


def digest_of_all(digests: Iterable[tuple[int, str]]) -> str:
    """SHA-256 of a line for each rank and the digest of its file, in order."""
    lines = (f"{rank} {digest}\n" for rank, digest in sorted(digests))
    return hashlib.sha256("".join(lines).encode()).hexdigest()


def never_waiting(waiting: Mapping[int, float], loading: Mapping[int, float]) -> int | None:
    """The rank that never waits, where the others wait for it; None where nobody stands out.

    waiting, loading: the share of its time that each rank communicates alone, and waits for data. Ranks that all wait
    for data take turns in being late.
    """
    if len(waiting) < 2 or (loading and median(loading.values()) >= WAITS_FOR_INPUT):
        return None
    usual = mean(waiting.values())
    rank = min(waiting, key=lambda one: (waiting[one], one))
    if usual - waiting[rank] < SKEW or waiting[rank] > (1.0 - MOSTLY_SKEW) * usual:
        return None
    return rank


def _shares(captured: Iterable[RankTrace]) -> dict[str, dict[int, float]]:
    """By part and rank. A part that a trace does not have, such as launches of a CPU, is not known of its rank."""
    shares: dict[str, dict[int, float]] = {}
    for one in captured:
        for found in () if one.summary is None else one.summary.parts:
            shares.setdefault(found.part, {})[one.rank] = found.share
    return shares


def _spread(part: str, shares: Mapping[int, float]) -> TraceSpread:
    least = min(shares, key=lambda rank: (shares[rank], rank))
    most = max(shares, key=lambda rank: (shares[rank], -rank))
    return TraceSpread(part, shares[least], least, median(shares.values()), shares[most], most)


def _failures(name: str, pod: PodTrace) -> Iterable[TraceFailure]:
    if not pod.ranks and pod.state is TraceState.FAILED:
        yield failure(name, pod.reason or TraceReason.CAPTURE_FAILED, pod.message)
    for one in pod.ranks:
        if one.reason is not None:
            yield failure(name, one.reason, one.message, one.rank)


def failure(pod: str, reason: TraceReason, message: str, rank: int | None = None) -> TraceFailure:
    """What is said of a rank, or of a pod, without a trace."""
    return TraceFailure(pod, reason, message[:_LONGEST_MESSAGE], rank)
