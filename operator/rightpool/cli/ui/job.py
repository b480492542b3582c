"""The page of one job: what `rightpool explain` says, with drawings, the Events, and commands to copy."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote

from rightpool.api.units import unix_time_of
from rightpool.api.wording import span
from rightpool.cli.explain import explain
from rightpool.cli.explained import Explanation
from rightpool.cli.explanation import print_explanation
from rightpool.cli.heartbeat import no_leader_text
from rightpool.cli.roofline import roofline_of
from rightpool.cli.state import state_of
from rightpool.cli.step_parts import StepPart, step_parts
from rightpool.cli.table import Column
from rightpool.cli.timeline import rate_now, stretches
from rightpool.cli.trace_summary import show, show_ranks, traced_roof
from rightpool.cli.ui.charts import Bar, Interval, bars, intervals
from rightpool.cli.ui.roofline_chart import RooflineChart, roofline_chart
from rightpool.cli.ui.sheet import Section, Sheet, Table
from rightpool.cli.view import ClusterView
from rightpool.cluster.client import ClusterClient
from rightpool.cluster.errors import ClusterError
from rightpool.cluster.resources import EVENTS
from rightpool.contract import LABEL_JOB
from rightpool.planning.jobs.job import JobKey, unit_of

EVENTS_SHOWN: Final = 50
_EVENT_COLUMNS: Final = (
    Column("LAST SEEN"),
    Column("TYPE"),
    Column("REASON"),
    Column("COUNT", right=True),
    Column("MESSAGE", wraps=True),
)


@dataclass(frozen=True, slots=True)
class JobPicture:
    """One job as it was read."""

    at: float
    """Unix seconds."""
    found: Explanation
    """What `rightpool explain` has found."""
    quiet: str | None
    """That no operator leads."""
    events: tuple[EventRow, ...]
    """The newest first."""
    events_problem: str | None
    """Why there are no Events to show."""


@dataclass(frozen=True, slots=True)
class EventRow:
    """An Event."""

    at: float | None
    """Unix seconds when it was seen last; None where that is not known."""
    warning: bool
    """Whether its type is Warning."""
    reason: str
    """In one CamelCase word."""
    count: int
    """How often it was seen."""
    message: str
    """As it was published."""


def read_job_picture(client: ClusterClient, key: JobKey, *, operator_namespace: str, now: float) -> JobPicture:
    """Explain the job, and read its Events.

    Raises CliError where there is none, ClusterError where it can't be read.
    """
    found = explain(ClusterView(client, key.namespace, operator_namespace), key, now)
    events: tuple[EventRow, ...] = ()
    problem: str | None = None
    try:
        selector = f"involvedObject.kind=ProfiledJob,involvedObject.name={key.name}"
        bodies = client.list_all(EVENTS, key.namespace, fields=selector)
        events = event_rows(bodies, found.job.uid)
    except ClusterError as error:
        problem = f"the Events can't be read: {error.message}"
    return JobPicture(now, found, no_leader_text(client, operator_namespace, now), events, problem)


def event_rows(bodies: Sequence[dict[str, Any]], uid: str) -> tuple[EventRow, ...]:
    """The Events about the object with this uid, the newest first."""
    found = [_event_row(body) for body in bodies if (body.get("involvedObject") or {}).get("uid") == uid]
    return tuple(sorted(found, key=lambda event: -(event.at or 0.0)))


def _event_row(body: dict[str, Any]) -> EventRow:
    metadata = body.get("metadata") or {}
    last = body.get("lastTimestamp") or body.get("eventTime") or metadata.get("creationTimestamp")
    count = body.get("count")
    return EventRow(
        at=unix_time_of(last),
        warning=body.get("type") == "Warning",
        reason=str(body.get("reason") or ""),
        count=count if isinstance(count, int) else 1,
        message=str(body.get("message") or ""),
    )


# --- what is shown ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class JobPage:
    """What the template shows."""

    picture: JobPicture
    """As it was read."""
    state: str
    """In a word or two, as `rightpool top` has it."""
    about: Section
    """What stands before the first heading."""
    sections: tuple[Section, ...]
    """Those with headings, in the order of `rightpool explain`."""
    bars: tuple[Bar, ...]
    """Throughput over time; empty where nothing was measured."""
    parts: tuple[StepPart, ...]
    """Of the time of a step; empty where that is not known."""
    roofline: RooflineChart | None
    """In the same section; None where no chip has figures, or the job is over."""
    intervals: tuple[Interval, ...]
    """What placements would cost; empty where nothing is predicted."""
    events: Table
    """The newest first."""
    events_more: int
    """Events that are not in the table."""
    work: str
    """What a million are of in the intervals."""
    commands: tuple[tuple[str, str], ...]
    """What each is for, and how it is typed."""
    compare: str | None
    """Address of the page that compares accelerators for it; None of a job that does not run."""


def job_page(picture: JobPicture, context: str) -> JobPage:
    """context: of the kubeconfig, for commands; empty for its current one."""
    found = picture.found
    sheet = Sheet()
    print_explanation(sheet, found, everything=True)
    _print_trace(sheet, found)
    about, *sections = sheet.sections
    profile = found.job.observed.profile
    finished = found.job.state.finished is not None
    assessment = found.assessment
    return JobPage(
        picture=picture,
        state=state_of(found.stored, found.stored.status),
        about=Section("", about.blocks[1:]),  # the first one is the title of the page
        sections=tuple(sections),
        bars=tuple(bars(stretches(found.job, rate_now(found.job), picture.at), picture.at)),
        parts=step_parts(profile),
        roofline=None
        if finished
        else roofline_chart(roofline_of(profile, assessment.current, assessment.candidates, found.pools)),
        intervals=()
        if finished
        else tuple(intervals(assessment.current, assessment.candidates, found.decisions[0].target)),
        events=Table(_EVENT_COLUMNS, tuple(_event_cells(event, picture.at) for event in picture.events[:EVENTS_SHOWN])),
        events_more=max(0, len(picture.events) - EVENTS_SHOWN),
        work=unit_of(found.job).plural,
        commands=tuple(next_commands(found, context)),
        compare=None if finished or found.job.state.revision is None else f"{job_address(found.job.key)}/compare",
    )


def job_address(key: JobKey) -> str:
    """The path of a job's page."""
    return f"/jobs/{quote(key.namespace, safe='')}/{quote(key.name, safe='')}"


def _print_trace(sheet: Sheet, found: Explanation) -> None:
    """The newest trace, where there is one: the same as `rightpool trace --summary` prints."""
    trace = found.job.state.trace
    if trace is None or trace.summary is None:
        return
    sheet.heading(f"Trace {trace.id}")
    if trace.ranks is not None:
        show_ranks(trace.ranks, sheet)
    show(trace, trace.summary, sheet, traced_roof(trace, found.job, found.job.observed.profile, found.pools))


def _event_cells(event: EventRow, now: float) -> tuple[str, ...]:
    seen = "-" if event.at is None else f"{span(max(0.0, now - event.at))} ago"
    return (seen, "Warning" if event.warning else "Normal", event.reason, str(event.count), event.message)


def next_commands(found: Explanation, context: str) -> list[tuple[str, str]]:
    """What one would type next about this job, ready for a shell."""
    key = found.job.key
    where = ["-n", key.namespace, *(["--context", context] if context else [])]
    commands = [
        ("the object", ["kubectl", "get", "pj", key.name, *where, "-o", "yaml"]),
        ("its conditions and Events", ["kubectl", "describe", "pj", key.name, *where]),
        ("its pods", ["kubectl", "get", "pods", *where, "-l", f"{LABEL_JOB}={key.name}", "-o", "wide"]),
        ("their output", ["kubectl", "logs", *where, "-l", f"{LABEL_JOB}={key.name}", "--all-containers", "--tail=50"]),
        ("this page in a terminal", ["rightpool", "explain", key.name, *where]),
        ("which accelerator to take", ["rightpool", "compare", key.name, *where]),
    ]
    recommendation = found.stored.status.recommendation
    if recommendation is not None and recommendation.approvable and found.job.state.finished is None:
        approve = ["rightpool", "approve", key.name, *where, "--id", recommendation.id]
        commands.append(("have the recommendation carried out", approve))
    return [(what, shlex.join(words)) for what, words in commands]
