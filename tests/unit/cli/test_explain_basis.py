"""What `rightpool explain` says of where its numbers are from."""

from __future__ import annotations

from rightpool.cli.explain import document
from tests.unit.cli.cluster import condition, running_status
from tests.unit.cli.test_explain import explained, output, with_job


def test_what_the_best_were_predicted_from_is_below_the_table() -> None:
    found = with_job(running_status())
    text = output(found)
    basis = document(explained(found))["candidates"][0]["throughput"]["basis"]
    assert len(basis) > 2
    (line,) = [line for line in text.splitlines() if basis[0] in line]
    assert line.strip() == f"a10g 4  {'; '.join(basis)}"
    assert text.index("Decision:") < text.index("VERDICT") < text.index(line)


def test_counters_that_contradict_each_other_are_said_beside_what_was_measured() -> None:
    profiled = condition("Profiled", "True", "ContradictoryTelemetry", "1 pod over 5 min; left out: inputWait")
    assert "left out: inputWait" in output(with_job(running_status(conditions=[profiled])))


def test_the_decision_and_why_are_read_first() -> None:
    first = output(with_job(running_status())).splitlines()[:6]
    assert any(line.startswith("Decision: Move (CheaperPoolMeetsTargets)") for line in first), first
