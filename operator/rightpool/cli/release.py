"""`rightpool release NAME`: have an adopted object put back as it was, and let go of.

It writes the annotation rightpool.dev/release into its ProfiledJob. The operator asks the program for a save where it
can, moves the object back to where it was before its first move, and deletes the ProfiledJob. The object stays.
"""

from __future__ import annotations

import argparse
import time

from rightpool.cli.connection import CliError, Connection, add_connection_arguments, carry_out
from rightpool.cli.heartbeat import no_leader_text
from rightpool.cli.jobs import add_job_argument, job_key, stored_job
from rightpool.cluster.client import MERGE_CONTENT, ClusterClient
from rightpool.cluster.resources import PROFILED_JOBS
from rightpool.contract import ANNOTATION_RELEASE
from rightpool.planning.jobs.job import JobKey


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_job_argument(parser)
    add_connection_arguments(parser, outputs=("table",))


def run(arguments: argparse.Namespace) -> int:
    """The exit status: 0 the operator will do it, 1 not possible."""

    def work(connection: Connection) -> None:
        print(release(connection.client, job_key(arguments.name, connection.namespace)))
        quiet = no_leader_text(connection.client, arguments.operator_namespace, time.time())
        if quiet is not None:
            print(quiet)

    return carry_out(arguments, "release", work)


def release(client: ClusterClient, key: JobKey) -> str:
    """Write the annotation; a sentence about what follows. Raises CliError for a job that names no object."""
    stored = stored_job(client, key)
    ref, adopted = stored.job.spec.workload_ref, stored.job.state.adopted
    if ref is None:
        raise CliError(f"{key} runs what the operator has made of it, and nothing was there before: delete it instead")
    body = {"metadata": {"resourceVersion": stored.resource_version, "annotations": {ANNOTATION_RELEASE: "true"}}}
    client.request("PATCH", PROFILED_JOBS.path(key.namespace, key.name), body=body, content=MERGE_CONTENT)
    if adopted is None or adopted.original is None:
        return f"{ref} was not changed: ProfiledJob {key} goes, and it stays as it is"
    return f"{ref} goes back to where it was, after a save where it can be asked for one; then ProfiledJob {key} goes"
