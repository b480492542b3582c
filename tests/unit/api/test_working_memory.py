"""What nobody reads stands in one text of the status, is read back to the last digit, and costs no job where it is
broken."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given

from rightpool.api.resources import PROFILED_JOB
from rightpool.api.schema import structural_schema
from rightpool.api.state import JobState
from rightpool.api.status import ProfiledJobStatus
from rightpool.reporting.stored_job import read_job
from tests.unit.api.test_state import states
from tests.unit.cli.cluster import job
from tests.unit.cli.ui.pages import stories

PROFILED_JOBS = [body for kind, bodies in stories()[0].objects.items() if kind.kind == "ProfiledJob" for body in bodies]


def described(content: Mapping[str, Any], level: int = 0) -> list[str]:
    """The lines of `kubectl describe` (printUnstructuredContent of kubectl 1.36), fields by their names on the wire."""
    lines: list[str] = []
    for name, value in sorted(content.items()):
        if isinstance(value, dict):
            lines += [f"{name}:", *described(value, level + 1)]
        elif isinstance(value, list):
            lines.append(f"{name}:")
            for entry in value:
                lines += described(entry, level + 1) if isinstance(entry, dict) else [str(entry)]
        else:
            lines.append(f"{name}: {value}")
    return lines


STATUS_FIELDS = structural_schema(ProfiledJobStatus, defaults=False)["properties"].keys()


@given(states)
def test_nothing_is_lost(state: JobState) -> None:
    body = ProfiledJobStatus(state=state).to_dict()
    stored = ProfiledJobStatus.stored(body)
    assert ProfiledJobStatus.restored(json.loads(json.dumps(stored))) == body
    assert stored.keys() <= STATUS_FIELDS


@pytest.mark.parametrize("body", PROFILED_JOBS, ids=lambda body: str(body["metadata"]["name"]))
def test_conditions_are_described_first_and_the_working_memory_last(body: dict[str, Any]) -> None:
    """Of the jobs that the demo's stories have left."""
    status = ProfiledJobStatus.from_dict(body["status"]).to_dict()
    lines = described(ProfiledJobStatus.stored(status))
    assert lines[0] == "conditions:"
    assert lines[-1].startswith("workingMemory:")
    assert len(lines) <= len(described(status)) - 8


@pytest.mark.parametrize("text", ["", "{", "[]", "3", '{"variation": 3, "cost": 4, "cost.unknown": 5, "unknown": {}}'])
def test_a_text_that_cannot_be_read_costs_what_stands_in_it(text: str) -> None:
    body = PROFILED_JOBS[0]
    stored = {**ProfiledJobStatus.stored(body["status"]), "workingMemory": text}
    read = read_job({**job(), "metadata": body["metadata"], "spec": body["spec"], "status": stored}).job
    whole = read_job(body).job
    assert read.unreadable is None
    assert (read.state.revision, read.state.history) == (whole.state.revision, whole.state.history)
    assert read.state.account.spent == whole.state.account.spent
    assert read.state.variation is None and read.state.account.counterfactual is None
    assert whole.state.variation is not None and whole.state.account.counterfactual is not None


def test_a_status_of_before_is_read() -> None:
    for body in PROFILED_JOBS:
        assert ProfiledJobStatus.restored(body["status"]) == body["status"]


def test_no_column_reads_what_is_packed() -> None:
    fields = structural_schema(ProfiledJobStatus, defaults=False)["properties"]
    assert not {"variation", "progress", "interruption", "disruptions"} & fields.keys()
    assert "counterfactual" not in fields["cost"]["properties"]
    for column in PROFILED_JOB.columns:
        parts = column.path.removeprefix(".status.").split(".")
        if column.path.startswith(".status.") and "[" not in column.path:
            inner = fields
            for part in parts:
                assert part in inner, column.path
                inner = inner[part].get("properties", {})
