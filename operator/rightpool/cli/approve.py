"""`rightpool approve NAME`: have carried out what the operator recommends for a job.

It writes the annotation rightpool.dev/approve with the id of the recommendation, and nothing else. An id names one
place: if the operator recommends another one by then, nothing is moved, and the job's condition Migrating says so.
"""

from __future__ import annotations

import argparse
import time
from typing import Any

from rightpool.api.wording import place
from rightpool.cli.connection import CliError, Connection, add_connection_arguments, carry_out
from rightpool.cli.heartbeat import no_leader_text
from rightpool.cli.jobs import add_job_argument, job_key, stored_job
from rightpool.cluster.client import MERGE_CONTENT, ClusterClient
from rightpool.cluster.resources import PROFILED_JOBS
from rightpool.contract import ANNOTATION_APPROVE
from rightpool.planning.jobs.job import JobKey


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_job_argument(parser)
    parser.add_argument("--id", help="approve only if this is what is recommended now")
    add_connection_arguments(parser, outputs=("table",))


def run(arguments: argparse.Namespace) -> int:
    """The exit status: 0 approved, 1 not possible."""

    def work(connection: Connection) -> None:
        key = job_key(arguments.name, connection.namespace)
        print(approve(connection.client, key, arguments.id))
        quiet = no_leader_text(connection.client, arguments.operator_namespace, time.time())
        if quiet is not None:
            print(quiet)

    return carry_out(arguments, "approve", work)


def approve(client: ClusterClient, key: JobKey, expected: str | None) -> str:
    """Write the annotation; a sentence about what was approved. Raises CliError where there is nothing to approve."""
    stored = stored_job(client, key)
    recommendation = stored.status.recommendation
    if recommendation is None:
        raise CliError(f"nothing is recommended for {key}: see `rightpool explain {key.name} -n {key.namespace}`")
    if expected is not None and expected != recommendation.id:
        raise CliError(
            f"{expected} is not what is recommended now: that is {recommendation.id}, {recommendation.message}"
        )
    if not recommendation.approvable:
        raise CliError(f"no approval ends what holds {key} back, {recommendation.held_by}: {recommendation.message}")
    body: dict[str, Any] = {
        "metadata": {
            "resourceVersion": stored.resource_version,
            "annotations": {ANNOTATION_APPROVE: recommendation.id},
        }
    }
    path = PROFILED_JOBS.path(key.namespace, key.name)
    client.request("PATCH", path, body=body, content=MERGE_CONTENT)
    return f"approved {recommendation.id}: {key} goes to {place(recommendation.placement)}"
