"""Diagnoses in words: what was found, and what helps."""

from __future__ import annotations

from rightpool.api.value_object import value_object
from rightpool.api.wording import sentence
from rightpool.profiles.findings import Finding


@value_object
class RecordedFinding(Finding):
    """What a stored condition says of a finding whose values are not stored."""

    recorded: str
    """With what helps, as the condition says it; empty where it says nothing."""

    def text(self) -> str:
        return self.recorded


def diagnosis_text(finding: Finding) -> str:
    """What was found and what helps."""
    return sentence(finding.text(), remedy=finding.lever())
