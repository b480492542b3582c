"""Records read what is inlined, and say of errors where they stand on the wire."""

from __future__ import annotations

import pytest
from pydantic import TypeAdapter, ValidationError

from rightpool.api import record
from rightpool.api.status import ProfiledJobStatus

PLACED = {"placement": {"revision": 1, "pool": "a100", "chips": 4, "replicas": 1, "workloadHash": "0" * 16}}


def test_a_status_takes_one_reader(monkeypatch: pytest.MonkeyPatch) -> None:
    """Making one takes a tenth of a second, most of what a command needs to read a job."""
    monkeypatch.setattr(record, "_ADAPTERS", record._OfKind(TypeAdapter))
    read = ProfiledJobStatus.from_dict(PLACED)
    assert read.state.revision is not None and read.state.revision.placement.pool == "a100"
    assert set(record._ADAPTERS) == {ProfiledJobStatus}


def test_errors_name_fields_as_they_stand_on_the_wire() -> None:
    with pytest.raises(ValidationError) as error:
        ProfiledJobStatus.from_dict({"placement": {**PLACED["placement"], "chips": "{many}"}, "moves": -1})
    problems = {problem["loc"]: problem for problem in error.value.errors()}
    assert set(problems) == {("placement", "chips"), ("moves",)}
    assert "valid integer" in problems["placement", "chips"]["msg"]
    assert problems["placement", "chips"]["input"] == "{many}"
