"""What the demo says of a job in plain words: a few lines, and none twice."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from demo.job import Job, Teller
from demo.plain import everything, plainly
from rightpool.api.wording import MESSAGE

RECORDED = Path(__file__).parents[1] / "cli" / "ui" / "recorded" / "stories.json"
A100 = {"pool": "a100", "chips": 4, "replicas": 1, "costPerHour": "20.28"}
A10G = {"pool": "a10g", "chips": 4, "replicas": 1, "costPerHour": "4.02"}


def condition(kind: str, status: str, reason: str, message: str = "") -> dict[str, str]:
    return {"type": kind, "status": status, "reason": reason, "message": message}


def reading(placement: dict[str, Any], revision: int, *found: dict[str, str], **status: Any) -> Job:
    return Job({"status": {"placement": {**placement, "revision": revision}, "conditions": list(found), **status}})


RUNS = condition("Placed", "True", "Running", "r1 on a100: 4 chips in 1 pod, $20.28/h")
STARTS = condition("Placed", "False", "Starting", "r2 on a10g: 0 of 1 pods run")
KNOWN = condition("Efficient", "True", "EfficientEnough", "while A100 works, matrix units 80% of attainable")
UNKNOWN = condition("Efficient", "Unknown", "ProfileNeeded", "there is no complete profile yet")
MOVE = {"id": "d-2", "message": "4 chips of a10g: 34% less than now, probability 98%; predicted 1770 samples/s"}
BACK = {**MOVE, "rollingBack": True, "failureMessage": "22% worse than before; measured 971 samples/s"}
UNDONE = {"id": "d-2", "action": "Move", "outcome": "RolledBack", "message": "22% worse than before"}
# A move that is undone, as the operator's statuses have it; each is read several times.
STORY = [
    Job({}),
    Job({"status": {"conditions": [condition("Placed", "False", "WaitingForCapacity", "4 chips of a100 are next")]}}),
    reading(A100, 1, STARTS, UNKNOWN),
    reading(A100, 1, RUNS, UNKNOWN),
    reading(A100, 1, RUNS, KNOWN),
    reading(A100, 1, RUNS, KNOWN, migration={**MOVE, "phase": "Planned"}),
    *(reading(A100, 1, RUNS, UNKNOWN, migration={**MOVE, "phase": phase}) for phase in ("Checkpointing", "Draining")),
    reading(A10G, 2, STARTS, UNKNOWN, migration={**MOVE, "phase": "Starting"}),
    *(reading(A10G, 2, RUNS, UNKNOWN, migration={**MOVE, "phase": phase}) for phase in ("WarmingUp", "Verifying")),
    reading(A10G, 2, RUNS, UNKNOWN, migration={**BACK, "phase": "Checkpointing"}),
    reading(A100, 3, STARTS, UNKNOWN, migration={**BACK, "phase": "Starting"}),
    reading(A100, 3, RUNS, UNKNOWN, history=[UNDONE]),
    reading(A100, 3, RUNS, KNOWN, history=[UNDONE]),
]


def test_a_story_is_a_few_plain_lines() -> None:
    heard: list[str] = []
    teller = Teller("rollback", heard.append, plainly)
    for job in STORY:
        for _ in range(3):
            teller.tell(job)
    assert heard == [
        "rollback: waits: 4 chips of a100 are next",
        "rollback: runs on 4 chips of a100 for $20.28 an hour",
        "rollback: is measured: while A100 works, matrix units 80% of attainable",
        "rollback: moves: 4 chips of a10g: 34% less than now, probability 98%; predicted 1770 samples/s",
        "rollback: runs on 4 chips of a10g for $4.02 an hour",
        "rollback: goes back: 22% worse than before; measured 971 samples/s",
        "rollback: runs on 4 chips of a100 for $20.28 an hour",
        "rollback: the move is undone: 22% worse than before",
        "rollback: is measured: while A100 works, matrix units 80% of attainable",
    ]
    assert len(heard) + 2 <= 15, "a story adds what it has checked"


def test_what_a_real_run_has_left_is_told_in_short_lines() -> None:
    found = [Job(one) for one in json.loads(RECORDED.read_text(encoding="utf-8"))["profiledjobs"]]
    lines = [text for job in found for _, _, text in plainly(job)]
    assert len(lines) > len(found) and any(text.startswith("the move is kept: ") for text in lines)
    assert max(map(len, lines)) <= MESSAGE


def test_all_conditions_and_phases_are_told_where_that_is_asked_for() -> None:
    heard: list[str] = []
    teller = Teller("rollback", heard.append, everything)
    for job in STORY:
        teller.tell(job)
    assert "rollback: Placed=True Running: r1 on a100: 4 chips in 1 pod, $20.28/h" in heard
    assert "rollback: d-2 Verifying" in heard and "rollback: d-2 Starting (back)" in heard
