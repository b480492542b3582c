"""Reads the fleet's PlacementPolicy, and says at the object where it can't be read.

The schema of its definition refuses what can't be read. One that was stored under another version's definition may hold
it nevertheless.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from pydantic import ValidationError

from rightpool.api.policy import POLICY_NAME, PlacementPolicySpec
from rightpool.cluster.resources import PLACEMENT_POLICIES
from rightpool.reporting.events import Event
from rightpool.reporting.stored_job import first_problem
from rightpool.runtime.observe.facts import meta, reference

logger = logging.getLogger(__name__)


class PolicyReader:
    """Remembers what was wrong, so that each problem is said once, and its end."""

    def __init__(self, post: Callable[[Event], object]) -> None:
        """post: sends an Event."""
        self._post = post
        self._problem: str | None = None
        self._last = PlacementPolicySpec()

    def read(self, policies: Iterable[Mapping[str, Any]]) -> PlacementPolicySpec:
        """The policy in force; the cautious defaults where there is none, or where it can't be read. The very object
        of before where nothing has changed."""
        policy = self._read(policies)
        if policy != self._last:
            self._last = policy
        return self._last

    def _read(self, policies: Iterable[Mapping[str, Any]]) -> PlacementPolicySpec:
        body = next((body for body in policies if meta(body).get("name") == POLICY_NAME), None)
        if body is None:
            self._problem = None
            return PlacementPolicySpec()
        try:
            policy = PlacementPolicySpec.model_validate(body.get("spec") or {})
        except ValidationError as error:
            self._found(first_problem(error), body)
            return PlacementPolicySpec()
        if self._problem is not None:
            self._post(
                Event(reference(PLACEMENT_POLICIES, body), "PolicyRead", "Observe", "the policy can be read, and holds")
            )
        self._problem = None
        return policy

    def _found(self, problem: str, body: Mapping[str, Any]) -> None:
        if problem != self._problem:
            logger.warning("PlacementPolicy %s can't be read, the defaults hold: %s", POLICY_NAME, problem)
            note = f"the policy can't be read, and the defaults hold until it is corrected: spec.{problem}"
            self._post(Event(reference(PLACEMENT_POLICIES, body), "InvalidSpec", "Observe", note, warning=True))
        self._problem = problem
