"""A comparison from its question to its report."""

from __future__ import annotations

from collections.abc import Sequence

from rightpool.cli.compare.question import NothingToCompare, of_job
from rightpool.cli.compare.report import ComparisonReport
from rightpool.cli.compare.rows import Question, compared_rows
from rightpool.cli.compare.score import Weights, changes, named_weights, scores
from rightpool.cli.explain import asked_fleet
from rightpool.cli.view import ClusterView
from rightpool.hardware.ownership import CostBook
from rightpool.planning.jobs.job import JobKey


def comparison(
    subject: str,
    asked: Question,
    book: CostBook,
    weights: Weights,
    notes: tuple[str, ...] = (),
    limit: float | None = None,
) -> ComparisonReport:
    """subject: the job, or what was run. notes: what could not be read. limit: seconds for a step, 99 of 100."""
    rows = compared_rows(asked, book, limit)
    return ComparisonReport(subject, weights, rows, scores(rows, weights), tuple(changes(rows, weights)), notes)


def job_comparison(
    view: ClusterView,
    key: JobKey,
    against: Sequence[str],
    book: CostBook,
    weights: Weights,
    now: float,
    limit: float | None = None,
) -> ComparisonReport:
    """Of a job as the operator sees it. against, limit: as of_job and `comparison` have them.

    Raises NothingToCompare; CliError where there is no such job, ClusterError where it can't be read.
    """
    stored, fleet, notes = asked_fleet(view, key, now)
    trace = stored.job.state.trace
    summary = None if trace is None else trace.summary
    kernels = () if summary is None else tuple(one.name for one in summary.operations)
    asked = of_job(fleet, fleet.jobs[key], against, book, view.catalog, kernels)
    return comparison(str(key), asked, book, weights, notes, limit)


def weights_of(text: str) -> Weights:
    """Of the option's value. Raises NothingToCompare."""
    try:
        return named_weights(text)
    except ValueError as error:
        raise NothingToCompare(f"--weights: {error}") from error
