"""Objects that run already and are named in place of a workload: a change, the field, and its message."""

from __future__ import annotations

from typing import Final

from .objects import ABSENT, JOB, REFERENCE, Case

ADOPTION_CASES: Final = (
    Case("nothing that runs", JOB, {"spec.workload": ABSENT}, "spec.workload", "add it: it says what runs"),
    Case(
        "a workload and an object that runs",
        JOB,
        {"spec.workloadRef": REFERENCE},
        "spec.workloadRef",
        "must not stand beside workload, since one workload runs: remove either of them",
    ),
    Case(
        "an object of no possible name",
        JOB,
        {"spec.workload": ABSENT, "spec.workloadRef": {**REFERENCE, "name": "Train_1"}},
        "spec.workloadRef.name",
        "must be the name of an object in this namespace",
    ),
    Case(
        "adoption of nothing",
        JOB,
        {"spec.adoption": {"change": "Recommend"}},
        "spec.adoption",
        "is about an object that workloadRef names: remove it, or name one",
    ),
    *(
        Case(
            f"{field} beside an object that runs",
            JOB,
            {"spec.workload": ABSENT, "spec.workloadRef": REFERENCE, f"spec.{field}": value},
            f"spec.{field}",
            "must not be set beside workloadRef, since the object ",
        )
        for field, value in (
            ("suspend", True),
            ("queueName", "research"),
            ("placement.variants", [{"vendor": "AMD", "template": {"spec": {}}}]),
        )
    ),
)
