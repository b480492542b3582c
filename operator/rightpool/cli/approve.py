"""`rightpool approve NAME…`: have carried out what the operator recommends for jobs.

It writes the annotation rightpool.dev/approve with the id of the recommendation, and nothing else. An id names one
place: if the operator recommends another one by then, nothing is moved, and the job's condition Migrating says so.

With `--wave N` it is what `rightpool recommend --fleet` has in that wave, or of it the jobs that are named: also those
that wait for chips that an earlier wave leaves.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Collection, Iterator
from typing import Any

from rightpool.api.wording import place
from rightpool.cli.connection import CliError, Connection, add_connection_arguments, carry_out, error_message
from rightpool.cli.heartbeat import no_leader_text
from rightpool.cli.jobs import add_job_argument, job_key, stored_job
from rightpool.cluster.client import MERGE_CONTENT, ClusterClient
from rightpool.cluster.errors import ClusterError
from rightpool.cluster.resources import PROFILED_JOBS
from rightpool.contract import ANNOTATION_APPROVE
from rightpool.planning.jobs.job import JobKey


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_job_argument(parser, several=True)
    parser.add_argument("--wave", type=int, metavar="N", help="a wave of `rightpool recommend --fleet`; default: none")
    parser.add_argument("--id", help="approve only if this is what is recommended now")
    add_connection_arguments(parser, outputs=("table",))


def run(arguments: argparse.Namespace) -> int:
    """The exit status: 0 approved, 1 not possible, of one of several too."""

    def work(connection: Connection) -> None:
        keys = [job_key(name, connection.namespace) for name in arguments.name]
        if arguments.wave is not None:
            ids: dict[JobKey, str | None] = dict(_wave(connection, arguments, keys))
        elif not keys or (arguments.id is not None and len(keys) > 1):
            raise CliError("name a job, or --wave N; --id goes with one job")
        else:
            ids = dict.fromkeys(keys, arguments.id)
        refused = []
        for key, expected in ids.items():
            try:
                print(approve(connection.client, key, expected, ahead=arguments.wave is not None))
            except (CliError, ClusterError) as error:
                refused.append(str(error) if isinstance(error, CliError) else f"{key}: {error_message(error)}")
        quiet = no_leader_text(connection.client, arguments.operator_namespace, time.time())
        if quiet is not None and len(refused) < len(ids):
            print(quiet)
        if refused:
            raise CliError("; ".join(refused))

    return carry_out(arguments, "approve", work)


def _wave(
    connection: Connection, arguments: argparse.Namespace, keys: Collection[JobKey]
) -> Iterator[tuple[JobKey, str]]:
    """The ids that wait for an approval in a wave; keys: of these jobs alone, where there are any."""
    from rightpool.cli.fleet_moves import fleet_moves  # planning is loaded where it is asked for
    from rightpool.cli.view import ClusterView

    view = ClusterView(connection.client, connection.namespace, arguments.operator_namespace)
    wave = [move for move in fleet_moves(view, time.time()).moves if move.wave == arguments.wave]
    missing = sorted(set(keys) - {move.planned.key for move in wave})
    if missing:
        raise CliError(f"{missing[0]} is not in wave {arguments.wave}: see `rightpool recommend --fleet`")
    waiting = [move for move in wave if move.approval is not None and not move.approved]
    asked = [move for move in waiting if not keys or move.planned.key in keys]
    if not asked:
        raise CliError(f"nothing in wave {arguments.wave} waits for an approval: see `rightpool recommend --fleet`")
    for move in asked:
        assert move.approval is not None
        yield move.planned.key, move.approval


def approve(client: ClusterClient, key: JobKey, expected: str | None, *, ahead: bool = False) -> str:
    """Write the annotation; a sentence about what was approved. Raises CliError where there is nothing to approve.

    ahead: also while something holds it back that no approval ends, such as chips that are not free yet.
    """
    stored = stored_job(client, key)
    recommendation = stored.status.recommendation
    if recommendation is None:
        raise CliError(f"nothing is recommended for {key}: see `rightpool explain {key.name} -n {key.namespace}`")
    if expected is not None and expected != recommendation.id:
        raise CliError(
            f"{expected} is not what is recommended now: that is {recommendation.id}, {recommendation.message}"
        )
    if not (recommendation.approvable or ahead):
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
