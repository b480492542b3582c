"""`rightpool top`: the jobs with their placement, bottleneck and cost, highest cost first.

Reads only the jobs' status, in one list. With `-o json` or `-o yaml`, one object:

    apiVersion, kind   rightpool.dev/v1alpha1, JobReport
    asOf               time of the request, RFC 3339
    notes              what is not as it should be, sentences
    jobs               highest cost first, each {namespace, name, state, pool, chips, capacity, throughput, unit,
                       costPerHour, costPerMillion, bottleneck, targets, progress, finishAt, secondsLeft, dollarsLeft,
                       goesTo, savings, potentialSavingsPerHour, spent, saved, promisedPerMillion, deliveredPerMillion,
                       promisedUnit}. Dollars, up to asOf; null where unknown. throughput is in units a second,
                       costPerMillion for a million units; unit is Samples or Steps. chips and costPerHour are null
                       where the job holds no chips; targets is the reason of TargetsMet; progress and savings are
                       shares, 0-1; secondsLeft are to targets.deadline and dollarsLeft of targets.budget, negative
                       beyond them; goesTo is {pool, chips, replicas, capacity}, where the operator recommends to move
                       it; promised and delivered are of the decision that brought the job where it is, for a million
                       of promisedUnit
    total              {jobs, running, chips, costPerHour, potentialSavingsPerHour, spent, saved, unpriced}: unpriced is
                       the number of running jobs on chips without a known price; they are in none of the sums

All numbers are JSON numbers.
"""

from __future__ import annotations

import argparse
import time

from rightpool.cli.connection import Connection, add_connection_arguments, add_everywhere_argument, carry_out
from rightpool.cli.documents import print_document
from rightpool.cli.heartbeat import no_leader_text
from rightpool.cli.jobs import JobReading
from rightpool.cli.repeat import add_watch_argument, repeated


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_everywhere_argument(parser)
    add_watch_argument(parser)
    add_connection_arguments(parser)


def run(arguments: argparse.Namespace) -> int:
    """Run the command; the exit status: 0 success, 1 error."""

    def look(connection: Connection) -> None:
        namespace = None if arguments.all_namespaces else connection.namespace
        now = time.time()
        reading = JobReading(connection.client, namespace)
        # Loaded while the API server makes the list: both take a third of a second.
        from rightpool.cli.job_table import document, print_jobs, ranked

        lines = ranked(reading.jobs().values(), now)
        note = no_leader_text(connection.client, arguments.operator_namespace, now)
        if arguments.output != "table":
            print_document(document(lines, now, () if note is None else (note,)), arguments.output)
        else:
            from rightpool.cli.table import Page

            page = Page()
            print_jobs(page, lines, namespace)
            page.remark(note)

    return carry_out(arguments, "top", repeated(look, arguments.watch))
