"""What users read of a server's move: how late its requests were, and how many failed."""

from __future__ import annotations

from typing import Final

from rightpool.api.latency import Percentile
from rightpool.api.wording import number
from rightpool.planning.judge.traffic import BatchTimes, TrafficComparison, TrafficVerdict
from rightpool.profiles.served import RequestTime

_OF: Final = {
    RequestTime.WHOLE: "",
    RequestTime.FIRST_TOKEN: "of first tokens ",
    RequestTime.BETWEEN_TOKENS: "of next tokens ",
}


def traffic_text(
    found: TrafficComparison,
    limit: Percentile | None,
    batches: BatchTimes | None,
    time: RequestTime = RequestTime.WHOLE,
) -> str:
    """What the requests show that the new side has answered. batches: its own, where they were promised; time: which
    has the limit."""
    of = f"of {number(found.requests)} requests there"
    if found.verdict is TrafficVerdict.FAILING:
        return f"{found.failed:.1%} {of} failed, more than before: see the server's log"
    if limit is None and batches is not None and batches.logs:
        return (
            f"batches take {batches.longer:.2g} times as long as promised there, and with {batches.spare:.2g} times as "
            "long as where it was"
        )
    if limit is not None and batches is not None and _by_batches(found, batches):
        room = f"the peak has room for {batches.spare:.2g} times"
        what = "batches" if time is RequestTime.WHOLE else "tokens"
        return f"{what} take {batches.longer:.2g} times as long as promised there, and {room}"
    if limit is None or found.late is None:
        return f"{found.failed:.1%} {of} failed"
    before = "" if found.old_late is None else f", where it was {found.old_late:.1%}"
    slow = f"{found.late:.1%} {_OF[time]}{of} took over {number(1000.0 * limit.seconds)} ms"
    return f"{slow}{before}; {limit.name} allows {1.0 - limit.share:.0%}"


def _by_batches(found: TrafficComparison, batches: BatchTimes) -> bool:
    """Whether they are why a move goes on or not, and not how late requests were."""
    return found.verdict is not TrafficVerdict.LATE and bool(batches.logs) and (found.late is None or not batches.fit)
