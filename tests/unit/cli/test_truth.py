"""Whether the commands say what is so: of known states, what `top`, `recommend` and `explain` say, one by one.

None of the statements may be untrue.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rightpool.cli.explain import explain
from rightpool.cli.explanation import print_explanation
from rightpool.cli.job_table import document, ranked
from rightpool.cli.recommend import ranked_offers
from rightpool.cluster.resources import PROFILED_JOBS
from rightpool.planning.jobs.job import JobKey
from tests.unit.cli.cluster import (
    NOW,
    FakeClient,
    condition,
    job,
    moment,
    printed,
    profile,
    running_status,
    two_pools,
    view_of,
)
from tests.unit.cli.test_top import recommended

Body = dict[str, Any]
STOPPED = {"spent": "40.00", "saved": "0.00"}
SPENT = {"perHour": "20.28", "chips": 4, "spent": "40.00", "saved": "0.00", "asOf": moment(0)}


def placed(reason: str, message: str = "", **more: Any) -> Body:
    """The status of a job that does not run, for this reason; by default its meter stands still."""
    status = "True" if reason == "Running" else "False"
    return running_status(**{"conditions": [condition("Placed", status, reason, message)], "cost": STOPPED, **more})


# name → status, more of the spec, and what is so: the word for its state, whether it holds chips, what the explanation
# has, and what it has not.
KNOWN: dict[str, tuple[Body, Body, str, bool, str, str]] = {
    "steady": (running_status(profile=profile(measuredAt=moment(4000))), {}, "Running", True, "Runs on", "operator"),
    "unseen": ({}, {}, "Unseen", False, "no operator has looked at the job", "Runs on\n  placement"),
    "asleep": (
        placed("Suspended", "spec.suspend is true"),
        {"suspend": True},
        "Suspended",
        False,
        "no chips",
        "Runs on",
    ),
    "ending": (running_status(), {"suspend": True}, "Suspending", True, "Runs on", "Unseen"),
    "quota": (placed("WaitingForQuota", "queue research"), {}, "WaitingForQuota", False, "queue research", "Runs on"),
    "crowded": (placed("WaitingForCapacity", "no room"), {}, "WaitingForCapacity", False, "no room", "Runs on"),
    "crash": (placed("CrashLoop", "exited with 1", cost=SPENT), {}, "CrashLoop", True, "exited with 1", ": Running"),
    "image": (
        placed("ContainerNotStarted", "ErrImagePull"),
        {},
        "ContainerNotStarted",
        False,
        "ErrImagePull",
        "Runs on",
    ),
    "typo": (placed("InvalidTemplate", "comand"), {}, "InvalidTemplate", False, "comand", "Runs on"),
    "last": (placed("Finishing", "the pods have ended", cost=SPENT), {}, "Finishing", True, "have ended", "Starting"),
    "done": (
        running_status(conditions=[condition("Completed", reason="JobCompleted", message="succeeded")], cost=STOPPED),
        {},
        "Completed",
        False,
        "Ran on",
        "Could be",
    ),
    "better": (recommended(), {}, "Running", True, "Runs on", "not all pods"),
}


def fleet() -> FakeClient:
    client = two_pools()
    for name, (status, spec, *_) in KNOWN.items():
        client.add(PROFILED_JOBS, job(name, status=status, **spec))
    return client


def explained(client: FakeClient, name: str) -> str:
    page, stream = printed()
    print_explanation(page, explain(view_of(client), JobKey("vision", name), NOW))
    return stream.getvalue()


def answers() -> Iterator[tuple[str, bool]]:
    """Each statement, and whether it is true."""
    client = fleet()
    found = document(ranked(view_of(client).jobs(None).values(), NOW), NOW)
    lines = {line["name"]: line for line in found["jobs"]}
    for name, (_, _, state, holds, has, has_not) in KNOWN.items():
        line, text = lines[name], explained(client, name)
        yield f"top: {name} is {line['state']}", line["state"] == state
        yield f"top: {name} holds {line['chips']} chips", line["chips"] == (4 if holds else None)
        yield f"top: {name} costs {line['costPerHour']}", line["costPerHour"] == (20.28 if holds else None)
        yield f"explain: {name} is {state}", f"vision/{name}: {state}" in text
        yield f"explain: {name}: {has}", has in text
        yield f"explain: {name}, without {has_not}", has_not not in text
    holding = [name for name, (_, _, _, holds, *_) in KNOWN.items() if holds]
    total = found["total"]
    yield f"top: {total['running']} hold chips", total["running"] == len(holding)
    yield f"top: {total['chips']} chips", total["chips"] == 4 * len(holding)
    yield f"top: {total['costPerHour']} an hour", abs(total["costPerHour"] - 20.28 * len(holding)) < 1e-6
    offers = ranked_offers(view_of(client).jobs(None).values())
    yield f"recommend: {[key.name for key, _ in offers]}", [key.name for key, _ in offers] == ["better"]
    yield (
        f"top: {total['potentialSavingsPerHour']} could be saved",
        abs(total["potentialSavingsPerHour"] - 12.24) < 0.01,
    )


def test_nothing_untrue_is_said_of_known_states() -> None:
    asked = list(answers())
    assert len(asked) >= 60
    assert [statement for statement, true in asked if not true] == []
