"""`rightpool explain [NAME]`: what a job does, what limits it, everywhere it could be, and why it is where it is.

It asks planning the operator's own question, on the same view of the cluster; only what was measured comes from the
job's status. Without a name, each job of the namespace in a line. With `-o json` or `-o yaml`, one object (without a
name an ExplanationList, whose `items` are {namespace, name, state, decision}):

    apiVersion, kind        rightpool.dev/v1alpha1, Explanation
    asOf                    when it was asked, RFC 3339
    notes                   what could not be looked at, sentences
    job                     {namespace, name, state, objective, adaptation}
    targets                 {met, reason, message, progress, finishAt, secondsLeft, dollarsLeft, late, over}: late and
                            over are the probabilities of missing the deadline and the budget
    placement               as status.placement, with costPerHour; null before the first start
    profile                 {quality, window, measuredAt, values: {samplesPerSecond or stepsPerSecond, stepSeconds, …},
                            missing}: SI base units, ratios 0-1; missing names what was not measured; null where nothing
                            was
    bottleneck              {class, evidence, lever}; null where nothing was measured
    current                 the placement as a candidate; null where it was not measured
    candidates              the best first, each {pool, chips, replicas, capacity, throughput, unit, costPerHour,
                            costPerMillion, scalingEfficiency, modelFlopsUtilization, saving, probability, variant,
                            verdict, message}.
                            unit is Samples, Steps or Requests: throughput counts them, of a server those that share its
                            dollars, and costPerMillion is for a million. Both are {median, low, high} with an 80%
                            interval, the first with its basis. variant is the vendor whose variant of the template is
                            used there, or null. verdict is Eligible, or the reason why not, which `message` explains in
                            numbers
    decision                {action, reason, message, target: {pool, chips, replicas, capacity} or null}: that of the
                            operator, or where it has not looked at the job, what it would decide
    evaluatedNow            the same, as it would be if evaluated now; null where that is no other one
    outbid                  {pool, chips, worthPerHour, gainPerHour}: the chips that would be worth most to the job and
                            that others get, by the fleet's plan; worthPerHour is what they are worth to others beyond
                            their price, gainPerHour what the job would gain by them; null where it is not outbid
    edit                    {from, verdict, ratio, message}: how what runs compares with the image `from`, which ran
                            before the template was edited: Improved, NoWorse, Regressed or Unknown, and its rate ÷
                            that before; null where no edit was judged
    migration               as status.migration; null where none is under way
    recommendation          as status.recommendation; null where nothing is recommended
    cost                    {perHour, spent, saved, savedRange, goodput}, dollars up to asOf; savedRange is {low, high},
                            the 80% interval of saved; goodput is the useful share of paid chip time; null where nothing
                            was spent
    history                 as status.history, the newest last, each with its unit
    server                  as status.server: what a server answers, its recorded week, and what it would be in each
                            pool; null of other jobs
    serving                 null without --requests-per-second and --p99. Else {requestsPerSecond, p99Limit, batch,
                            reason, message, candidates}: batch is of the measured program, and where it is not known,
                            reason and message say why nothing is known. candidates are the cheapest first, each
                            {pool, chips, replicas, capacity, servable, replicasNeeded, p50, p99, alone, probability,
                            costPerHour, costPerMillionRequests, verdict, message}. servable is requests a second of one
                            replica within the limit; p50, p99 and alone, a request by itself, are seconds; all are
                            {median, low, high}. Costs are of replicasNeeded replicas. verdict is Holds, or the reason
                            why not

Money is dollars, and all numbers are JSON numbers, also those that the API writes as texts. What is not known is null,
and never 0.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

from rightpool.api.conditions import ConditionType, Reason, find_condition
from rightpool.api.estimate import Estimate
from rightpool.api.units import write_unix_time
from rightpool.api.wording import meant, span
from rightpool.cli.connection import CliError, Connection, add_connection_arguments, carry_out
from rightpool.cli.decided import Decided, decided
from rightpool.cli.decider import Decider
from rightpool.cli.documents import document_head, place_document, print_document
from rightpool.cli.explained import Demand, Explanation
from rightpool.cli.explanation import print_explanation, print_list
from rightpool.cli.heartbeat import no_leader_text
from rightpool.cli.jobs import add_job_argument, job_key, missing_job_text
from rightpool.cli.known_fleet import known_fleet
from rightpool.cli.number_range import per_second, seconds
from rightpool.cli.plot.file import form_of, plot_file, require_library, save_plot
from rightpool.cli.profile_fields import bottleneck_document, profile_fields, unmeasured_fields
from rightpool.cli.repeat import add_watch_argument, repeated
from rightpool.cli.state import job_document, without_operator
from rightpool.cli.status_document import status_document
from rightpool.cli.table import Page
from rightpool.cli.view import ClusterView
from rightpool.cluster.resources import ACCELERATOR_POOLS
from rightpool.planning.jobs.fleet import Fleet
from rightpool.planning.jobs.job import Job, JobKey
from rightpool.planning.offers.assessment import Assessment
from rightpool.planning.offers.candidate import Candidate
from rightpool.planning.offers.evidence import Outbid
from rightpool.planning.offers.select import adaptation_mode
from rightpool.reporting.candidate_texts import verdict_text
from rightpool.reporting.premise_texts import premise_text
from rightpool.reporting.stored_job import StoredJob
from rightpool.runtime.observe.facts import meta

ELIGIBLE: Final = "Eligible"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_job_argument(parser, "all jobs of the namespace, in a line each")
    parser.add_argument("--all", action="store_true", help="show every candidate, also the many that a gate rules out")
    parser.add_argument(
        "--plot",
        type=plot_file,
        metavar="FILE",
        help="draw it, too, as .svg or .png: roofline, sizes, cost against time, a step, ranks, throughput so far",
    )
    parser.add_argument(
        "--requests-per-second",
        type=per_second(0.001, 1e9),
        metavar="R",
        help="show what serving takes: so many requests a second, of a sample each; with --p99",
    )
    parser.add_argument(
        "--p99",
        type=seconds(0.0001, 3600.0),
        metavar="SECONDS",
        help="the time within which 99 of 100 of these requests must be answered",
    )
    add_watch_argument(parser)
    add_connection_arguments(parser)


def run(arguments: argparse.Namespace) -> int:
    """The exit status: 0 explained, 1 not possible."""

    def work(connection: Connection) -> None:
        now = time.time()
        demand = _demand(arguments)
        if arguments.plot is not None:
            if arguments.name is None:
                raise CliError("--plot draws one job: name it")
            require_library()
        where = arguments.operator_namespace
        quiet = no_leader_text(connection.client, where, now)
        if arguments.name is None:
            listed = explain_all(ClusterView(connection.client, connection.namespace, where), now)
            if arguments.output == "table":
                print_list(Page(), listed, quiet, now, connection.namespace)
            else:
                print_document(list_document(listed, now, quiet), arguments.output)
            return
        key = job_key(arguments.name, connection.namespace)
        found = explain(ClusterView(connection.client, key.namespace, where), key, now, quiet)
        if demand is not None:
            from rightpool.cli.serving import serving  # loaded where it is asked for: it takes 0.2 s

            found = replace(found, serving=serving(found, demand))
        if arguments.plot is not None:
            from rightpool.cli.plot.data import plot_of
            from rightpool.cli.plot.draw import draw

            save_plot(draw(plot_of(found), form_of(arguments.plot)), arguments.plot)
        if arguments.output == "table":
            print_explanation(Page(), found, everything=arguments.all)
        else:
            print_document(document(found), arguments.output)

    return carry_out(arguments, "explain", repeated(work, arguments.watch))


def _demand(arguments: argparse.Namespace) -> Demand | None:
    requests, limit = arguments.requests_per_second, arguments.p99
    if requests is None and limit is None:
        return None
    if requests is None or limit is None:
        raise CliError("--requests-per-second and --p99 belong together: give both")
    if arguments.name is None:
        raise CliError("--requests-per-second is about one job: name it")
    return Demand(requests, limit)


def explain_all(view: ClusterView, now: float) -> list[tuple[StoredJob, Assessment]]:
    """Ask planning about every job of the namespace at once, by name."""
    view.children(view.namespace)
    jobs = view.all_jobs()
    here = sorted(key for key in jobs if key.namespace == view.namespace)
    assessments = Decider()(known_fleet(view, jobs, here, now)[0]).assessments
    return [(jobs[key], assessments[key]) for key in here]


def asked_fleet(view: ClusterView, key: JobKey, now: float) -> tuple[StoredJob, Fleet, tuple[str, ...]]:
    """One job as it is stored, and the fleet with what was measured of it, as the operator would see it for a decision
    about it; and what could not be read."""
    stored, _, fleet, notes = _asked(view, key, now)
    return stored, fleet, notes


def _asked(
    view: ClusterView, key: JobKey, now: float
) -> tuple[StoredJob, Mapping[JobKey, StoredJob], Fleet, tuple[str, ...]]:
    """The same, and all jobs."""
    view.children(key.namespace, key.name)
    jobs = view.all_jobs()
    if key not in jobs:
        raise CliError(missing_job_text(key, jobs))
    fleet, notes = known_fleet(view, jobs, (key,), now)
    return jobs[key], jobs, fleet, (*view.notes, *notes)


def _outbid(view: ClusterView, jobs: Mapping[JobKey, StoredJob], key: JobKey, asked: Assessment) -> Outbid | None:
    """Why others get what is worth most to a job, where the fleet's plan has found that: asked again about all jobs,
    since what chips are worth to it depends on who else wants them."""
    worth = view.worth()
    evaluated = asked.evaluated
    if view.partial or evaluated is None or not any(place.pool in worth for place in evaluated.places):
        return None
    view.children(None)
    ours = [each for each, stored in jobs.items() if stored.job.spec.managed]
    fleet, _ = known_fleet(view, jobs, ours, evaluated.evaluation.now)
    return Decider()(fleet).allocation.choice.outbid.get(key)


def explain(view: ClusterView, key: JobKey, now: float, quiet: str | None = None) -> Explanation:
    """Ask planning about one job, as the operator would. quiet: that no operator leads."""
    stored, jobs, whole, unread = _asked(view, key, now)
    job, notes = whole.jobs[key], list(unread)
    if not job.spec.managed:
        notes.append(
            f"spec.managedBy is {job.spec.managed_by}: this operator does not touch the job, and the decision shows "
            "what it would do"
        )
    declared = {str(meta(body)["name"]) for body in view.store.objects(ACCELERATOR_POOLS)}
    notes += _unknown_pools(job, declared | whole.pools.keys())  # one that nodes show may not be written down yet
    notes += [] if quiet is None else [quiet]
    notes += _not_looked_at(stored, now)
    degraded = find_condition(stored.status.conditions, ConditionType.DEGRADED)
    if degraded is not None and degraded.reason == Reason.INVALID_VARIANT:
        notes.append(degraded.message)
    assessment = Decider()(whole).assessments[key]
    outbid = _outbid(view, jobs, key, assessment)
    return Explanation(stored, job, assessment, whole.pools, whole.policy, now, tuple(notes), outbid)


def _unknown_pools(job: Job, there: Collection[str]) -> Iterator[str]:
    """Names in the spec that no pool has: a mistyped one rules nothing out, and lets nothing in."""
    pools = job.spec.placement.pools
    for field, names in (("allow", pools.allow), ("deny", pools.deny)):
        for name in names:
            if name not in there:
                hint = meant(name, there)
                yield f"placement.pools.{field} names {name}, and no AcceleratorPool has this name{hint}"


def _not_looked_at(stored: StoredJob, now: float) -> list[str]:
    """That the operator does not seem to look at this job, although it may run."""
    job = stored.job
    if not job.spec.managed or job.deleting:
        return []
    if without_operator(stored, now):
        age, where = span(now - job.created_at), job.key.namespace
        return [
            f"no operator has looked at the job since it was created {age} ago: check that its watchNamespaces name "
            f"{where}. Until then nothing is started, and the decision shows what the operator would do"
        ]
    if stored.observed_generation is not None and stored.observed_generation < job.generation:
        return ["the operator has not looked at the last edit of the spec yet: the status is about the spec before"]
    return []


# --- as JSON ---------------------------------------------------------------------------------------------------------


def document(found: Explanation) -> dict[str, Any]:
    """The object that this module's head describes."""
    job, status = found.job, found.stored.status
    account = job.state.account.settled(found.now)
    return {
        **document_head("Explanation", found.now),
        "notes": list(found.notes),
        "job": {
            **job_document(found.stored, status),
            "objective": job.spec.targets.objective.value,
            "adaptation": adaptation_mode(job, found.policy).value,
        },
        "targets": _targets(found),
        "placement": status_document(job.state.revision),
        "profile": _profile(found),
        "bottleneck": bottleneck_document(found),
        "current": None if found.assessment.current is None else _candidate(found, found.assessment.current),
        "candidates": [_candidate(found, candidate) for candidate in found.assessment.candidates],
        "decision": _decision(found.decisions[0]),
        "evaluatedNow": None if found.decisions[1] is None else _decision(found.decisions[1]),
        "outbid": _outbid_document(found.outbid),
        "edit": _edit(job),
        "migration": status_document(job.state.migration),
        "recommendation": status_document(status.recommendation),
        "cost": {
            "perHour": account.cost_per_hour,
            "spent": account.spent,
            "saved": account.saved,
            "savedRange": dict(zip(("low", "high"), account.saved_range, strict=True)),
            "goodput": account.goodput,
        }
        if not account.empty
        else None,
        "history": [status_document(entry) for entry in job.state.history],
        "server": status_document(status.server),
        "serving": _serving(found),
    }


def _edit(job: Job) -> dict[str, Any] | None:
    edit = job.state.judged_edit
    if edit is None:
        return None
    return {"from": edit.image, "verdict": edit.verdict.value, "ratio": edit.ratio, "message": edit.message}


def _outbid_document(outbid: Outbid | None) -> dict[str, Any] | None:
    if outbid is None:
        return None
    return {"pool": outbid.pool, "chips": outbid.chips, "worthPerHour": outbid.worth, "gainPerHour": outbid.own}


def _serving(found: Explanation) -> dict[str, Any] | None:
    if found.serving is None:
        return None
    from rightpool.cli.serving import serving_document

    return serving_document(found.serving)


def _profile(found: Explanation) -> dict[str, Any] | None:
    recorded = found.stored.status.profile
    if recorded is None or found.job.observed.profile is None:
        return None
    return {
        "quality": recorded.quality,
        "window": recorded.window,
        "measuredAt": None if recorded.measured_at is None else write_unix_time(recorded.measured_at),
        "values": {each.name: each.value for each in profile_fields(found)},
        "missing": [name for name, _, _ in unmeasured_fields(found)],
    }


def _targets(found: Explanation) -> dict[str, Any]:
    met = find_condition(found.stored.status.conditions, ConditionType.TARGETS_MET)
    rest = found.rest
    return {
        "met": None if met is None or met.status == "Unknown" else met.status == "True",
        "reason": None if met is None else met.reason,
        "message": None if met is None else met.message,
        "progress": rest.progress,
        "finishAt": None if rest.finish_at is None else write_unix_time(rest.finish_at),
        "secondsLeft": rest.time_left if found.job.state.finished is None else None,
        "dollarsLeft": rest.money_left,
        "late": rest.late,
        "over": rest.over,
    }


def list_document(listed: list[tuple[StoredJob, Assessment]], now: float, quiet: str | None) -> dict[str, Any]:
    """The object of a whole namespace."""
    return {
        **document_head("ExplanationList", now),
        "notes": [] if quiet is None else [quiet],
        "items": [
            {
                **job_document(stored, stored.status),
                "decision": _decision(decided(stored, stored.job, assessment, now)[0]),
            }
            for stored, assessment in listed
        ],
    }


def _decision(decision: Decided) -> dict[str, Any]:
    return {
        "action": decision.action.value,
        "reason": decision.reason,
        "message": decision.message,
        "target": None if decision.target is None else place_document(decision.target),
    }


def _candidate(found: Explanation, candidate: Candidate) -> dict[str, Any]:
    variant = None if found.job.variant(candidate.vendor) is None else candidate.vendor
    rate = candidate.throughput
    return {
        **place_document(candidate.placement),
        "throughput": None if rate is None else {**_estimate(rate), "basis": list(map(premise_text, rate.basis))},
        "unit": candidate.unit.value,
        "costPerHour": candidate.cost_per_hour,
        "costPerMillion": None if candidate.cost_per_million is None else _estimate(candidate.cost_per_million),
        "scalingEfficiency": candidate.scaling_efficiency,
        "modelFlopsUtilization": candidate.flops_utilization,
        "saving": candidate.saving,
        "probability": candidate.probability,
        "variant": variant,
        "verdict": ELIGIBLE if candidate.rejection is None else candidate.rejection.reason.value,
        "message": None if candidate.rejection is None else verdict_text(candidate),
    }


def _estimate(estimate: Estimate) -> dict[str, float]:
    return {"median": estimate.median, "low": estimate.low, "high": estimate.high}
