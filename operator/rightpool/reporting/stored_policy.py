"""The fleet's PlacementPolicy as it is stored, also where it can't be read.

The schema of its definition refuses what can't be read. One that was stored under another version's definition may hold
it nevertheless.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from rightpool.api.policy import PlacementPolicySpec
from rightpool.api.value_object import value_object
from rightpool.reporting.stored_job import first_problem


@value_object
class StoredPolicy:
    """What is in force, and where it comes from."""

    body: Mapping[str, Any] | None
    """The object; None where there is no policy."""

    spec: PlacementPolicySpec
    """The cautious defaults where there is no policy, or where it can't be read."""

    problem: str | None = None
    """Why it can't be read, with the field; None where it can."""

    @classmethod
    def of(cls, body: Mapping[str, Any] | None) -> StoredPolicy:
        """Read the object that the API server has."""
        if body is None:
            return cls(None, PlacementPolicySpec())
        try:
            return cls(body, PlacementPolicySpec.model_validate(body.get("spec") or {}))
        except ValidationError as error:
            where = f"spec.{first_problem(error)}"
            problem = f"the policy can't be read, and the defaults hold until it is corrected: {where}"
            return cls(body, PlacementPolicySpec(), problem)
