"""`rightpool profile NAME`: what a job does to its chips, number by number, and what limits it.

It shows what the operator wrote into the job's status; `rightpool explain` says what follows from it. With `-o json` or
`-o yaml`, one object:

    apiVersion, kind   rightpool.dev/v1alpha1, JobProfile
    asOf               when it was asked, RFC 3339
    notes              what could not be looked at, sentences
    job                {namespace, name, state}
    profile            {quality, steadiness, window, measuredAt}; null where nothing was measured
    fields             each {name, value, unit, quality, origin}: SI base units, ratios 0-1; quality is Measured or
                       Derived
    step               parts of the time of a step, each {part, share}; empty where not known
    ranks              as status.trace.ranks: how the ranks differ, by the newest trace of all of them; null without one
    memory             as status.trace.summary.memory: the memory in use over the newest trace; null where none says it
    bottleneck         {class, evidence, lever}; null where nothing was measured
    model              as status.profile.model: precision, parameters, batch, FLOPs of a step, parallelism; null where
                       the program says nothing
    missing            each {name, reason}: what is not known, and why

All numbers are JSON numbers, also those that the API writes as texts. What is not known is null, and never 0.
"""

from __future__ import annotations

import argparse
import time
from typing import Any, Final

from rightpool.api.traits import ModelTraits
from rightpool.api.units import write_unix_time
from rightpool.api.wording import gibibytes, number
from rightpool.cli.connection import Connection, add_connection_arguments, carry_out
from rightpool.cli.documents import document_head, plain, print_document
from rightpool.cli.explain import explain
from rightpool.cli.explained import Explanation
from rightpool.cli.heartbeat import no_leader_text
from rightpool.cli.jobs import add_job_argument, job_key
from rightpool.cli.profile_fields import (
    bottleneck_document,
    contradictions,
    missing_fields,
    nothing_measured,
    print_bottleneck,
    profile_fields,
    profile_remarks,
)
from rightpool.cli.repeat import add_watch_argument, repeated
from rightpool.cli.state import job_document, state_of
from rightpool.cli.step_parts import step_parts
from rightpool.cli.table import Column, Page
from rightpool.cli.trace_summary import print_memory, print_spread, traced_memory
from rightpool.cli.view import ClusterView

_BAR: Final = 40  # characters of a whole step
_FIELDS: Final = (
    Column("FIELD"),
    Column("VALUE", right=True),
    Column("QUALITY", drop=2),
    Column("FROM", drop=1),
)
_STEP: Final = (Column("PART"), Column("SHARE", right=True), Column("", drop=1))
_MISSING: Final = (Column("FIELD"), Column("WHY", wraps=True))


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_job_argument(parser)
    add_watch_argument(parser)
    add_connection_arguments(parser)


def run(arguments: argparse.Namespace) -> int:
    """The exit status: 0 shown, 1 not possible."""

    def work(connection: Connection) -> None:
        now = time.time()
        where = arguments.operator_namespace
        quiet = no_leader_text(connection.client, where, now)
        key = job_key(arguments.name, connection.namespace)
        found = explain(ClusterView(connection.client, key.namespace, where), key, now, quiet)
        if arguments.output == "table":
            print_profile(Page(), found)
        else:
            print_document(document(found), arguments.output)

    return carry_out(arguments, "profile", repeated(work, arguments.watch))


def print_profile(page: Page, found: Explanation) -> None:
    """All sections; what there is nothing to say about is left out."""
    page.line(f"{found.job.key}: {state_of(found.stored, found.stored.status)}", "bold")
    why = nothing_measured(found)
    if why is not None:
        page.indented(why)
        page.notes(found.notes)
        return
    page.indented(profile_remarks(found), "dim")
    page.heading("Measured")
    rows = [[each.title, each.text, each.quality.value, each.origin] for each in profile_fields(found)]
    page.table(_FIELDS, rows, indented=True)
    parts = step_parts(found.job.observed.profile)
    if parts:
        page.heading("Where the time of a step goes")
        bars = [[part.name, part.text, "█" * round(part.share * _BAR)] for part in parts]
        page.table(_STEP, bars, indented=True)
    trace = found.job.state.trace
    if trace is not None and trace.ranks is not None and trace.ranks.parts:
        page.heading(f"How {trace.ranks.captured} ranks differ, by trace {trace.id}")
        print_spread(trace.ranks, page)
    memory = traced_memory(trace)
    if trace is not None and memory is not None:
        page.heading(f"Memory in use, by trace {trace.id}")
        print_memory(memory, page)
    print_bottleneck(page, found)
    model = None if found.stored.status.profile is None else found.stored.status.profile.model
    if model is not None:
        page.heading("Model")
        page.pairs(_model(model))
    lacking = [[title, reason] for _, title, reason in missing_fields(found)]
    if lacking:
        page.heading("Not known")
        page.table(_MISSING, lacking, indented=True)
    left_out = contradictions(found)
    if left_out is not None:
        page.indented(left_out)
    page.notes(found.notes)


def _model(model: ModelTraits) -> list[tuple[str, str]]:
    parallel = model.parallelism
    degrees = {
        "data parallel": parallel.data,
        "sharded over": parallel.sharded,
        "tensor parallel": parallel.tensor,
        "pipeline stages": parallel.pipeline,
    }
    known = [
        ("precision", model.precision),
        ("parameters stored in", model.parameter_dtype),
        ("parameters that are trained", None if model.parameters is None else number(model.parameters)),
        ("their size", None if model.parameter_bytes is None else gibibytes(model.parameter_bytes)),
        ("size of all parameters", None if model.model_bytes is None else gibibytes(model.model_bytes)),
        ("samples of a step", None if model.batch is None else number(model.batch)),
        ("FLOPs of a step", None if model.step_flops is None else f"{model.step_flops:.3g}"),
        *((name, None if degree is None else str(degree)) for name, degree in degrees.items()),
    ]
    return [(name, text) for name, text in known if text is not None]


def document(found: Explanation) -> dict[str, Any]:
    """The object that this module's head describes."""
    recorded, profile = found.stored.status.profile, found.job.observed.profile
    trace = found.job.state.trace
    ranks = None if trace is None or trace.ranks is None else plain(trace.ranks.to_dict())
    memory = traced_memory(trace)
    return {
        **document_head("JobProfile", found.now),
        "notes": list(found.notes),
        "job": job_document(found.stored, found.stored.status),
        "profile": None
        if recorded is None or profile is None
        else {
            "quality": recorded.quality,
            "steadiness": profile.steadiness.value,
            "window": recorded.window,
            "measuredAt": None if recorded.measured_at is None else write_unix_time(recorded.measured_at),
        },
        "fields": [
            {
                "name": each.name,
                "value": each.value,
                "unit": each.unit,
                "quality": each.quality.value,
                "origin": each.origin,
            }
            for each in profile_fields(found)
        ],
        "step": [{"part": part.name, "share": part.share} for part in step_parts(profile)],
        "ranks": ranks,
        "memory": None if memory is None else plain(memory.to_dict()),
        "bottleneck": bottleneck_document(found),
        "model": None if recorded is None or recorded.model is None else plain(recorded.model.to_dict()),
        "missing": [{"name": name, "reason": reason} for name, _, reason in missing_fields(found)],
    }
