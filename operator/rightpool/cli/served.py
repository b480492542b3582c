"""What a server answers, its recorded week, and what it would be in each pool, as `explain` shows them."""

from __future__ import annotations

from typing import Final

from rightpool.api.server import ServerWorkload
from rightpool.api.status import PlaceSize, ServerStatus, TokenStatus
from rightpool.api.wording import dollars, moment, number, pool_of, share
from rightpool.cli.explained import Explanation
from rightpool.cli.table import NOTHING, Column, Page, dollar_cell
from rightpool.planning.jobs.time_limits import Limits
from rightpool.planning.offers.candidate import Candidate
from rightpool.profiles.served import RequestTime
from rightpool.reporting.server_status import p99_text


def print_answers(page: Page, found: Explanation, title: str) -> None:
    """What it answers now, its week, and what a replica takes."""
    page.heading(title)
    server, workload = found.stored.status.server, found.job.spec.workload.server
    if server is None or workload is None:
        page.indented("no requests are counted yet: see the condition Profiled")
        return
    page.pairs(_pairs(found, server, workload))
    if server.week is not None:
        page.indented("each bar is the highest demand in three hours; a dot where nothing is known", "dim")


def _pairs(found: Explanation, server: ServerStatus, workload: ServerWorkload) -> list[tuple[str, str]]:
    pairs, ref = [], found.job.state.revision
    if server.requests_per_second is not None:
        p99 = p99_text(server.p99_at_least, server.p99_at_most)
        pairs.append(
            ("requests", f"{number(server.requests_per_second)} a second{'' if p99 is None else f', p99 {p99}'}")
        )
    if server.late_at_least is not None:
        most = server.late_at_least if server.late_at_most is None else server.late_at_most
        low = "" if most == server.late_at_least else f"{share(server.late_at_least)} to "
        pairs.append(("late", f"{low}{share(most)} of them"))
    if server.tokens is not None:
        pairs.append(("tokens", _tokens_text(server.tokens)))
    if server.week is not None:
        pairs.append(("week", server.week))
    if server.peak is not None:
        pairs.append(("peak", f"{number(server.peak)} requests/s around this time of day"))
    if server.servable_at_least is not None and server.servable_at_most is not None:
        low, high = number(server.servable_at_least), number(server.servable_at_most)
        pairs.append(("a replica", f"takes {low} to {high} requests/s at the peak with the limit kept (80% interval)"))
    held = [f"{number(one.held)} in {one.pool}" for one in server.sides if one.held is not None]
    if held:
        pairs.append(("memory", f"holds so many requests of a replica at once: {', '.join(held)}"))
    if ref is not None:
        needed = "" if server.needed is None else f", {server.needed} needed"
        scale = workload.scale
        allowed = f"{scale.min}" if scale.most == scale.min else f"{scale.min} to {scale.most}"
        bounds = "somebody else scales it" if workload.scaled_elsewhere else f"{allowed} allowed"
        pairs.append(("replicas", f"{ref.placement.replicas}{needed}, {bounds}"))
    return pairs


def _tokens_text(tokens: TokenStatus) -> str:
    first = p99_text(tokens.first_at_least, tokens.first_at_most)
    after = p99_text(tokens.next_at_least, tokens.next_at_most)
    parts = (
        None if tokens.per_second is None else f"{number(tokens.per_second)} a second",
        None if tokens.cost_per_million is None else f"{dollars(tokens.cost_per_million)} a million",
        None if first is None else f"first p99 {first}",
        None if after is None else f"next p99 {after}",
    )
    return ", ".join(part for part in parts if part is not None)


_SHORT: Final = {
    RequestTime.WHOLE: "",
    RequestTime.FIRST_TOKEN: "first token ",
    RequestTime.BETWEEN_TOKENS: "next token ",
}


def server_columns(limits: Limits) -> tuple[Column, ...]:
    """Of the table of pools. limits: those that it is sized for, in the order of their columns."""
    unit = "REQUESTS" if RequestTime.WHOLE in limits else "TOKENS"
    return (
        Column(""),
        Column("POOL"),
        Column("REPLICAS", right=True),
        Column("REQUESTS/S EACH", right=True, drop=3),
        *(Column(f"{_SHORT[time]}{one.name}".upper(), right=True) for time, one in limits.items()),
        Column("P(HELD)", right=True),
        Column("$/H", right=True, drop=1),
        Column(f"$/M {unit}", right=True),
        Column("SAVING", right=True),
        Column("P(BETTER)", right=True, drop=2),
        Column("VERDICT", wraps=True),
    )


def server_row(limits: Limits, mark: str, candidate: Candidate, *, current: bool = False) -> list[str]:
    """One pool."""
    size, cost = candidate.size, candidate.cost_per_million
    verdict = "" if current else "Eligible"
    holds = size is not None and size.servable > 0.0
    return [
        mark,
        pool_of(candidate.placement),
        str(candidate.placement.replicas),
        f"{number(size.servable)}" if size is not None and holds else NOTHING,
        *(_within(size, time) for time in limits),
        f"{size.probability:.2f}" if size is not None else NOTHING,
        NOTHING if candidate.cost_per_hour is None else f"{candidate.cost_per_hour:.2f}",
        dollar_cell(None if cost is None else cost.median),
        NOTHING if candidate.saving is None or current else share(candidate.saving),
        NOTHING if candidate.probability is None else f"{candidate.probability:.2f}",
        verdict if candidate.rejection is None else candidate.rejection.reason.value,
    ]


def _within(size: PlaceSize | None, time: RequestTime) -> str:
    seconds = None if size is None else size.first if time is RequestTime.FIRST_TOKEN else size.within
    return NOTHING if seconds is None else moment(seconds)


def server_remark(limits: Limits) -> str:
    """What the numbers of the table are of."""
    percentiles = ", ".join(f"{_SHORT[time]}{one.name}" for time, one in limits.items())
    return f"replicas for the peak around this time; {percentiles}, P(held) and $ per million over the recorded week"
