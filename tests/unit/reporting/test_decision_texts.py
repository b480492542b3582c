"""Texts of decisions: each typed reason has one, made of its parameters."""

from collections.abc import Iterator
from dataclasses import fields, replace
from sys import modules

import pytest

from rightpool.api.policy import PlacementPolicySpec
from rightpool.planning.offers import pool_rejection as kinds_of_pools
from rightpool.planning.offers import rejection as kinds
from rightpool.planning.offers.evidence import CoolingDown, Limit, RunsShortly
from rightpool.planning.offers.rejection import Compared, RejectionReason, RuledOut
from rightpool.planning.offers.servers import refusal as kinds_of_servers
from rightpool.prediction.predictor import Origin
from rightpool.reporting.candidate_texts import by_pool, predicted
from tests.unit.planning.jobs import (
    NOW,
    POOLS,
    assess,
    decided_text,
    decision_and_text,
    find,
    fresh,
    judged,
    running,
    spec,
)
from tests.unit.reporting.words import words_of


def leaves(kind: type) -> Iterator[type]:
    """The kinds without kinds of their own. A dataclass with slots is a class beside the one that was written."""
    below = [child for child in kind.__subclasses__() if getattr(modules[child.__module__], child.__name__) is child]
    yield from (leaf for child in below for leaf in leaves(child)) if below else (kind,)


REJECTIONS = list(leaves(RuledOut))


@pytest.mark.parametrize("kind", REJECTIONS, ids=lambda kind: kind.__name__)
def test_every_kind_of_rejection_has_words_of_its_own(kind: type[RuledOut]) -> None:
    assert words_of(kind.text, kind)
    assert isinstance(kind.reason, RejectionReason)
    assert all(field.name != "message" for field in fields(kind)), "words are made last"


def test_every_reason_of_the_api_is_one_of_a_kind() -> None:
    assert {kind.reason for base in (RuledOut, Compared) for kind in leaves(base)} == set(RejectionReason)
    assert kinds_of_servers.LatencyNotHeld in REJECTIONS


@pytest.mark.parametrize("kind", list(leaves(Limit)), ids=lambda kind: kind.__name__)
def test_every_limit_has_words(kind: type[Limit]) -> None:
    assert kind(*range(1, len(fields(kind)) + 1)).text(NOW)


def test_what_rules_out_all_pools_is_said_once_with_its_remedy() -> None:
    pools = {name: POOLS[name] for name in ("a100", "a10g")}
    made = assess(fresh("j", spec(8, targets={"budget": "0"})), pools, PlacementPolicySpec(), NOW)
    assert decided_text(made) == "no pool can take the job: targets.budget $0 is spent: raise it"


@pytest.mark.parametrize(("pools", "end"), [(7, "and 1 more pool"), (11, "and 5 more pools")])
def test_what_is_left_out_is_counted_in_pools(pools: int, end: str) -> None:
    """Several pools may be ruled out by the same words, such as a target that none of them meets."""
    listed = [candidate for candidate in judged(running()).candidates if candidate.rejection is not None][:1]
    text = by_pool(
        replace(listed[0], placement=replace(listed[0].placement, pool=f"p{at:02}"), rejection=denied)
        for at in range(pools)
        for denied in [kinds_of_pools.PoolDenied("p06 and more" if at > 5 else f"p{at:02}")]
    )
    assert text.split("; ")[-1] == end


def test_a_size_that_is_fixed_says_what_the_api_server_accepts_to_change_it() -> None:
    """Also where the job runs on the other size, after an edit. Without batch, other sizes are refused."""
    assert kinds_of_pools.SizeOutOfBounds(4, 8, 8).text() == (
        "the spec asks for 8 chips and not for 4: to allow other sizes, set elasticity.minChips, maxChips and batch"
    )


def test_what_is_stored_is_true_when_it_is_read_later() -> None:
    for now in (NOW, NOW + 60):
        assert CoolingDown(NOW - 60, 900.0).text(now) == (
            "the last move ended at 2027-01-15T07:59:00Z, adaptation.cooldown is 15 min"
        )
    assert "has run here since 2027-01-15T08:00:00Z" in RunsShortly(NOW, 300.0).text(NOW + 180)


def test_a_comparison_is_made_of_the_two_rates() -> None:
    assessment = judged(running())
    eight = find(assessment, "a100", 8)
    assert isinstance(eight.rejection, kinds.NotBetter) and eight.rejection.now == pytest.approx(1000.0)
    assert "now 1000 samples/s" in decision_and_text(assessment)[1]


def test_a_corrected_number_is_not_called_a_measurement() -> None:
    there = replace(find(judged(running()), "a100", 8), origin=Origin.MEASURED_BEFORE)
    assert "samples/s by what was measured there for $" in predicted(there)
    assert predicted(replace(there, origin=Origin.PREDICTED)).startswith("predicted ")
