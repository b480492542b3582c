"""`rightpool explain NAME`: what a job does, what limits it, everywhere it could be, and why it is where it is.

It asks planning the operator's own question, on the same view of the cluster; only what was measured comes from the
job's status. With `-o json`, one object:

    apiVersion, kind        rightpool.dev/v1alpha1, Explanation
    asOf                    when it was asked, RFC 3339
    notes                   what could not be looked at, sentences
    job                     {namespace, name, state, objective, adaptation}
    placement               as status.placement, with costPerHour; null before the first start
    profile                 {quality, window, measuredAt, values: {samplesPerSecond, stepSeconds, …}, missing}: SI
                            base units, ratios 0-1; missing names what was not measured; null where nothing was
    bottleneck              {class, evidence, lever}; null where nothing was measured
    current                 the placement as a candidate; null where it was not measured
    candidates              the best first, each {pool, chips, replicas, capacity, samplesPerSecond, costPerHour,
                            costPerMillionSamples, scalingEfficiency, saving, probability, verdict, message}. The two
                            estimates are {median, low, high} with an 80% interval, the first with its basis. verdict is
                            Eligible, or the reason why not, which `message` explains in numbers
    decision                {action, reason, message, target: {pool, chips, replicas, capacity} or null}
    migration               as status.migration; null where none is under way
    cost                    {perHour, spent, saved}, dollars up to asOf; null where nothing was spent
    history                 as status.history, the newest last

Money is dollars. What is not known is null, and never 0.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import Any, Final

from rightpool.api.model import format_time
from rightpool.api.policy import PlacementPolicySpec
from rightpool.cli.connection import CliError, Connection, add_connection_arguments, carry_out
from rightpool.cli.explanation import print_explanation
from rightpool.cli.recorded import FIELDS, age, recorded_diagnosis, recorded_profile, telemetry_is_up
from rightpool.cli.state import state_of
from rightpool.cli.table import Page, print_json
from rightpool.cli.view import ClusterView
from rightpool.contract import GROUP, VERSION
from rightpool.hardware.placement import Placement
from rightpool.hardware.pool import Pool
from rightpool.planning.assess import Assessment, adaptation_mode
from rightpool.planning.candidate import Candidate
from rightpool.planning.gates import node_selector
from rightpool.planning.plan import plan
from rightpool.planning.snapshot import JobKey, JobState, Snapshot
from rightpool.planning.wording import span
from rightpool.prediction.estimate import Estimate
from rightpool.runtime.jobs import StoredJob
from rightpool.runtime.persistence import to_time

ELIGIBLE: Final = "Eligible"
# Moves of the last day count against the fleet's limits.
_MEMORY_SECONDS: Final = 86_400.0


@dataclass(frozen=True, slots=True)
class Explanation:
    """Everything that is told. job: with the recorded profile and what its pods show."""

    stored: StoredJob
    job: JobState
    assessment: Assessment
    pools: Mapping[str, Pool]
    policy: PlacementPolicySpec
    now: float
    notes: tuple[str, ...]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of this command."""
    parser.add_argument("name", help="of the ProfiledJob; `namespace/name` does as well")
    parser.add_argument("--all", action="store_true", help="every candidate, also the many that a gate rules out")
    add_connection_arguments(parser)


def run(arguments: argparse.Namespace) -> int:
    """The exit status: 0 explained, 1 not possible."""

    def work(connection: Connection) -> None:
        namespace, _, name = arguments.name.rpartition("/")
        key = JobKey(namespace or connection.namespace, name)
        found = explain(ClusterView(connection.client, key.namespace), key, time.time())
        if arguments.output == "json":
            print_json(document(found))
        else:
            print_explanation(Page(), found, everything=arguments.all)

    return carry_out(arguments, "explain", work)


def explain(view: ClusterView, key: JobKey, now: float) -> Explanation:
    """Ask planning about one job, as the operator would."""
    jobs = view.all_jobs()
    stored = jobs.get(key)
    if stored is None:
        raise CliError(_not_found(key, jobs))
    fleet = view.fleet(node_selector(stored.state.spec))
    view.children(key)
    job = stored.state
    pool = None if job.ref is None else fleet.pools.get(job.ref.placement.pool)
    profile = recorded_profile(stored)
    job = replace(
        _seen(view, stored),
        profile=profile,
        diagnosis=recorded_diagnosis(stored.status, profile, None if pool is None else pool.accelerator),
    )
    policy = view.policy()
    # Of the others only those count that hold promises or have moved: their chips and moves are not to be had.
    others = {other: _seen(view, theirs) for other, theirs in jobs.items() if other != key and _counts(theirs, now)}
    snapshot = Snapshot({**others, key: job}, fleet.pools, policy, now, telemetry=telemetry_is_up(stored.status))
    notes = [*view.notes, *fleet.notes]
    if not job.spec.ours:
        notes.append(
            f"spec.managedBy is {job.spec.managed_by}: this operator leaves the job alone, and the decision is what it "
            "would be"
        )
    silent = age(job, profile, now)
    if silent is not None:
        notes.append(f"the newest measurement is {span(silent)} old: does the operator run?")
    return Explanation(stored, job, plan(snapshot).assessments[key], fleet.pools, policy, now, tuple(notes))


def _seen(view: ClusterView, stored: StoredJob) -> JobState:
    return replace(stored.state, revisions=view.store.revisions(stored.state.key, stored.state.uid))


def _counts(stored: StoredJob, now: float) -> bool:
    job = stored.state
    if not job.spec.ours or job.deleting:
        return False
    waits = not job.finished and (job.ref is None or job.ref.since is None or job.migration is not None)
    return waits or any(entry.finished_at > now - _MEMORY_SECONDS for entry in job.history)


def _not_found(key: JobKey, jobs: Mapping[JobKey, StoredJob]) -> str:
    elsewhere = sorted(other.namespace for other in jobs if other.name == key.name)
    told = f"there is no ProfiledJob {key.name} in namespace {key.namespace}"
    if elsewhere:
        return f"{told}; there is one in {', '.join(elsewhere)}: add -n {elsewhere[0]}"
    here = sorted(other.name for other in jobs if other.namespace == key.namespace)
    near = get_close_matches(key.name, here, n=3)
    if near:
        return f"{told}; did you mean {' or '.join(near)}?"
    return (
        f"{told}; there are: {', '.join(here[:10])}" if here else f"{told}, and no other; `rightpool top -A` lists all"
    )


# --- as JSON ---------------------------------------------------------------------------------------------------------


def document(found: Explanation) -> dict[str, Any]:
    """The object that this module's head describes."""
    job, status, decision = found.job, found.stored.status, found.assessment.decision
    target = decision.target
    account = job.account.settled(found.now)
    wire = status.to_dict()
    return {
        "apiVersion": f"{GROUP}/{VERSION}",
        "kind": "Explanation",
        "asOf": format_time(to_time(found.now)),
        "notes": list(found.notes),
        "job": {
            "namespace": job.key.namespace,
            "name": job.key.name,
            "state": state_of(job),
            "objective": job.spec.targets.objective.value,
            "adaptation": adaptation_mode(job, found.policy).value,
        },
        "placement": wire.get("placement"),
        "profile": _profile(found),
        "bottleneck": None
        if job.diagnosis is None
        else {
            "class": job.diagnosis.bottleneck.value,
            "evidence": job.diagnosis.evidence or None,
            "lever": job.diagnosis.lever or None,
        },
        "current": None if found.assessment.current is None else _candidate(found.assessment.current),
        "candidates": [_candidate(candidate) for candidate in found.assessment.candidates],
        "decision": {
            "action": decision.action.value,
            "reason": decision.reason.value,
            "message": decision.message,
            "target": None if target is None else _place(target),
        },
        "migration": wire.get("migration"),
        "cost": {"perHour": account.cost_per_hour, "spent": account.spent, "saved": account.saved}
        if status.cost is not None
        else None,
        "history": wire.get("history", []),
    }


def _profile(found: Explanation) -> dict[str, Any] | None:
    recorded = found.stored.status.profile
    if recorded is None or found.job.profile is None:
        return None
    readings = found.job.profile.readings
    return {
        "quality": recorded.quality,
        "window": recorded.window,
        "measuredAt": None if recorded.measured_at is None else format_time(recorded.measured_at),
        "values": {field.value: readings[field].value for field in FIELDS.values() if field in readings},
        "missing": [field.value for field in FIELDS.values() if field not in readings],
    }


def _place(placement: Placement) -> dict[str, Any]:
    return {
        "pool": placement.pool,
        "chips": placement.chips,
        "replicas": placement.replicas,
        "capacity": placement.capacity.value,
    }


def _candidate(candidate: Candidate) -> dict[str, Any]:
    rate = candidate.samples_per_second
    return {
        **_place(candidate.placement),
        "samplesPerSecond": None if rate is None else {**_estimate(rate), "basis": list(rate.basis)},
        "costPerHour": candidate.cost_per_hour,
        "costPerMillionSamples": None if candidate.cost_per_million is None else _estimate(candidate.cost_per_million),
        "scalingEfficiency": candidate.scaling_efficiency,
        "saving": candidate.saving,
        "probability": candidate.probability,
        "verdict": ELIGIBLE if candidate.rejection is None else candidate.rejection.reason.value,
        "message": None if candidate.rejection is None else candidate.rejection.message,
    }


def _estimate(estimate: Estimate) -> dict[str, float]:
    return {"median": estimate.median, "low": estimate.low, "high": estimate.high}
