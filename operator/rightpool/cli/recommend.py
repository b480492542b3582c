"""`rightpool recommend`: what the operator would do and has not done, what it brings first.

With `-o json` or `-o yaml`, one object:

    apiVersion, kind   rightpool.dev/v1alpha1, RecommendationList
    asOf               time of the request, RFC 3339
    notes              what is not as it should be, sentences
    items              the most dollars first, each {namespace, name, id, from, to, savings, costPerHour,
                       potentialSavingsPerHour, heldBy, reason, message}. costPerHour is that of `to`;
                       potentialSavingsPerHour is what the work of an hour would cost less there; heldBy is why it was
                       not done, null where it is about to be; dollars, null where unknown
    potentialSavingsPerHour
                       the sum

With `--fleet` it is what the plan would do over all jobs, as cli/fleet_moves.py has it.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterable
from typing import Any, Final

from rightpool.api.wording import dollars, share, short_place
from rightpool.cli.connection import Connection, add_connection_arguments, add_everywhere_argument, carry_out
from rightpool.cli.documents import document_head, place_document, print_document
from rightpool.cli.heartbeat import no_leader_text
from rightpool.cli.jobs import no_jobs_text, stored_jobs
from rightpool.cli.table import NOTHING, Column, Page
from rightpool.planning.jobs.job import JobKey
from rightpool.reporting.candidate_texts import some
from rightpool.reporting.offer import Offer, offer_of
from rightpool.reporting.stored_job import StoredJob

Offers = list[tuple[JobKey, Offer]]

OFFER_COLUMNS: Final = (
    Column("NAMESPACE"),
    Column("NAME"),
    Column("NOW"),
    Column("WOULD GO TO"),
    Column("SAVES", right=True),
    Column("POTENTIAL $/H", right=True),
    Column("HELD BY", drop=1),
    Column("ID"),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--fleet",
        action="store_true",
        help="what the plan would do over all jobs, were all of it approved, in the order in which it can be done",
    )
    add_everywhere_argument(parser)
    add_connection_arguments(parser)


def run(arguments: argparse.Namespace) -> int:
    """The exit status: 0 listed, 1 not possible."""

    def work(connection: Connection) -> None:
        if arguments.fleet:
            _fleet(connection, arguments)
            return
        namespace = None if arguments.all_namespaces else connection.namespace
        now = time.time()
        jobs = stored_jobs(connection.client, namespace)
        offers = ranked_offers(jobs.values())
        quiet = no_leader_text(connection.client, arguments.operator_namespace, now)
        notes = [note for note in (unknown_memory(jobs.values()), quiet) if note is not None]
        if arguments.output == "table":
            page = Page()
            if jobs:
                print_offers(page, offers)
            else:
                page.line(no_jobs_text(namespace))
            for note in notes:
                page.remark(note)
        else:
            print_document(offers_document(offers, now, notes), arguments.output)

    return carry_out(arguments, "recommend", work)


def _fleet(connection: Connection, arguments: argparse.Namespace) -> None:
    # Planning is loaded where it is asked for.
    from rightpool.cli.fleet_moves import fleet_moves, moves_document, print_moves
    from rightpool.cli.view import ClusterView

    now = time.time()
    found = fleet_moves(ClusterView(connection.client, connection.namespace, arguments.operator_namespace), now)
    quiet = no_leader_text(connection.client, arguments.operator_namespace, now)
    if arguments.output == "table":
        page = Page()
        print_moves(page, found)
        page.remark(quiet)
    else:
        print_document(moves_document(found, now, () if quiet is None else (quiet,)), arguments.output)


def ranked_offers(jobs: Iterable[StoredJob]) -> Offers:
    """The most dollars first, then by name."""
    found = [(stored.job.key, offer) for stored in jobs if (offer := offer_of(stored, stored.status)) is not None]
    return sorted(found, key=lambda each: (-(each[1].dollars_per_hour or 0.0), each[0]))


def unknown_memory(jobs: Iterable[StoredJob]) -> str | None:
    """That smaller chips are left out of account, and for which jobs; None where it is so for none."""
    unknown = [
        f"{stored.job.key.namespace}/{stored.job.key.name}"
        for stored in jobs
        if stored.job.state.finished is None
        and stored.job.spec.placement.memory_per_chip is None
        and stored.status.profile is not None
        and stored.status.profile.memory_used_bytes is None
    ]
    if not unknown:
        return None
    why = "what memory is used was not measured: set placement.memoryPerChip"
    return f"chips with less memory are left out for {some(unknown)}, because {why}"


def offers_document(offers: Offers, now: float, notes: Iterable[str] = ()) -> dict[str, Any]:
    """The object that this module's head describes."""
    return {
        **document_head("RecommendationList", now),
        "notes": list(notes),
        "items": [
            {
                "namespace": key.namespace,
                "name": key.name,
                "id": offer.recommendation.id,
                "from": place_document(offer.here),
                "to": place_document(offer.recommendation.placement),
                "savings": offer.recommendation.savings,
                "costPerHour": offer.recommendation.cost_per_hour,
                "potentialSavingsPerHour": offer.dollars_per_hour,
                "heldBy": offer.recommendation.held_by,
                "reason": offer.recommendation.reason,
                "message": offer.recommendation.message,
            }
            for key, offer in offers
        ],
        "potentialSavingsPerHour": sum(offer.dollars_per_hour or 0.0 for _, offer in offers),
    }


def print_offers(page: Page, offers: Offers) -> None:
    """The table, its sum, and how to have one carried out."""
    if not offers:
        page.line("nothing is recommended: every job is where it should be, or is not measured yet")
        return
    page.table(OFFER_COLUMNS, [offer_cells(key, offer) for key, offer in offers])
    total = sum(offer.dollars_per_hour or 0.0 for _, offer in offers)
    page.line()
    approves = "; `rightpool approve NAME -n NAMESPACE` approves one"
    some = any(offer.recommendation.approvable for _, offer in offers)
    page.line(f"{dollars(total)} an hour can be saved{approves if some else '; what holds them back ends by itself'}")


def offer_cells(key: JobKey, offer: Offer) -> list[str]:
    """As the columns show it."""
    recommendation = offer.recommendation
    return [
        key.namespace,
        key.name,
        short_place(offer.here),
        short_place(recommendation.placement),
        NOTHING if recommendation.savings is None else share(recommendation.savings),
        NOTHING if offer.dollars_per_hour is None else f"{offer.dollars_per_hour:.2f}",
        recommendation.held_by or NOTHING,
        recommendation.id,
    ]
