"""`rightpool trial NAME`: have a job's program tried elsewhere now, and say what that costs and shows.

It writes the annotation rightpool.dev/trial, as the user, and nothing else. The operator begins the trial, also where
it would not by itself, or refuses it with why. What `spec.trial` allows is not exceeded, and no chips are taken that
somebody waits for.
"""

from __future__ import annotations

import argparse
import secrets
import time
from datetime import timedelta
from typing import Any, Final

from rightpool.api.quantities import parse_duration
from rightpool.api.trial_request import TrialAnswer
from rightpool.api.trial_run import TrialRun
from rightpool.api.units import HOUR
from rightpool.api.wording import place, span
from rightpool.cli.connection import CliError, Connection, add_connection_arguments, carry_out
from rightpool.cli.jobs import add_job_argument, job_key, stored_job
from rightpool.cluster.client import MERGE_CONTENT, ClusterClient
from rightpool.cluster.resources import PROFILED_JOBS
from rightpool.contract import ANNOTATION_TRIAL
from rightpool.planning.jobs.job import Job, JobKey
from rightpool.planning.jobs.trial_seen import trial_name
from rightpool.reporting.trial_texts import NOTHING_MEASURED, shown

POLL_SECONDS: Final = 1.0
TAKEN_SECONDS: Final = 60.0
"""Until an operator that runs has answered."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_job_argument(parser)
    parser.add_argument("--pool", help="where to try it; default: where a trial tells most for its chips")
    parser.add_argument(
        "--for",
        dest="duration",
        type=_duration,
        metavar="DURATION",
        help="how long to measure, such as 90s or 2m; default, and the longest: spec.trial.duration",
    )
    parser.add_argument("--wait", action="store_true", help="wait until it is over, and say what it has shown")
    add_connection_arguments(parser, outputs=("table",))


def run(arguments: argparse.Namespace) -> int:
    """The exit status: 0 begun or, with --wait, measured; 1 refused, or nothing was measured."""

    def work(connection: Connection) -> None:
        key = job_key(arguments.name, connection.namespace)
        answer, job = _answered(connection.client, key, _value(arguments))
        if answer.refused:
            raise CliError(f"{key} is not tried: {answer.refused}")
        if job.state.trial is not None and job.state.trial.number == answer.number:
            print(begun(job, job.state.trial))
        if arguments.wait:
            print(_over(connection.client, key, answer))

    return carry_out(arguments, "trial", work)


def begun(job: Job, trial: TrialRun) -> str:
    """What has begun, and what it costs."""
    text = f"ProfiledJob {trial_name(job.key.name, trial.number)} tries it on {place(trial.placement)}"
    first = "step" if job.spec.workload.server is None else "answer"
    text += f" for {span(trial.measures)} from its first {first} on"
    if trial.cost_per_hour is None or job.spec.trial is None:
        return f"{text}; what these chips cost is not known"
    cost, left = trial.cost_per_hour * trial.measures / HOUR, float(job.spec.trial.max_cost) - job.state.trials_cost
    return f"{text}: ${cost:.2f} and its start, at ${trial.cost_per_hour:.2f} an hour; ${left:.2f} may be spent"


def _value(arguments: argparse.Namespace) -> str:
    """Of the annotation."""
    parts = [f"cli-{secrets.token_hex(4)}", arguments.pool or ""]
    if arguments.duration is not None:
        parts.append(f"{arguments.duration.total_seconds():.0f}")
    return ":".join(parts)


def _answered(client: ClusterClient, key: JobKey, value: str) -> tuple[TrialAnswer, Job]:
    """Ask for it, and wait until an operator answers; the job as it is then."""
    job = stored_job(client, key).job
    if job.state.finished is not None:
        raise CliError(f"{key} has {job.state.finished.lower()}: there is nothing left to decide")
    if not job.spec.managed:
        raise CliError(f"spec.managedBy of {key} names {job.spec.managed_by}, which tries nothing")
    if job.spec.trial is None:
        raise CliError(f"nothing lets the program of {key} be tried: set spec.trial")
    body: dict[str, Any] = {"metadata": {"annotations": {ANNOTATION_TRIAL: value}}}
    client.request("PATCH", PROFILED_JOBS.path(key.namespace, key.name), body=body, content=MERGE_CONTENT)
    until = time.monotonic() + TAKEN_SECONDS
    while time.monotonic() < until:
        job = stored_job(client, key).job
        answer = job.state.trial_answer
        if answer is not None and answer.id == value.partition(":")[0]:
            return answer, job
        time.sleep(POLL_SECONDS)
    raise CliError(
        f"no operator has answered within {span(TAKEN_SECONDS)}: is it running, and does it watch namespace "
        f"{key.namespace}?"
    )


def _over(client: ClusterClient, key: JobKey, answer: TrialAnswer) -> str:
    """What it has shown, once it is over."""
    while True:
        job = stored_job(client, key).job
        if job.state.trial is None or job.state.trial.number != answer.number:
            break
        time.sleep(POLL_SECONDS)
    name = trial_name(key.name, answer.number)
    found = [tried for tried in job.state.tried if tried.at >= answer.at]
    if not found:
        why = f"another job waits for its chips, or {key.name} was edited, stopped or moved"
        raise CliError(f"ProfiledJob {name} {NOTHING_MEASURED}: {why}")
    if found[0].ratio is None:
        raise CliError(shown(found[0]))
    return f"{shown(found[0])}; ProfiledJob {name} cost ${found[0].cost:.2f}"


def _duration(text: str) -> timedelta:
    try:
        found = parse_duration(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error
    if found < timedelta(seconds=1):
        raise argparse.ArgumentTypeError("must be 1s or more")
    return found
