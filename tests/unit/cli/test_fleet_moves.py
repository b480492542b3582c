"""`rightpool recommend --fleet` and `approve --wave`: what the plan would do, wave by wave, and its approval."""

from __future__ import annotations

import argparse
import time
from typing import Any

import pytest

from rightpool.cli import approve as approving
from rightpool.cli import fleet_moves as module
from rightpool.cli.connection import Connection
from rightpool.cli.fleet_moves import fleet_moves, moves_document, print_moves
from rightpool.cluster.resources import NODES, PLACEMENT_POLICIES, PODS, PROFILED_JOBS
from tests.unit.cli.cluster import (
    A10G,
    NOW,
    job,
    moment,
    node,
    pod,
    printed,
    profile,
    running_status,
    two_pools,
    view_of,
)
from tests.unit.cli.test_recommend import Patches
from tests.unit.cli.test_top import recommended


def chained(mode: str = "Recommend") -> Patches:
    """What runs on four A100 of a full pool is to go to A10G; another job waits for chips of the A100."""
    client = Patches()
    client.objects |= two_pools().objects
    client.objects[NODES] = [one for one in client.objects[NODES] if one["metadata"]["name"] != "a100-1"]
    client.add(NODES, node("a10g-2", A10G, "nvidia.com/gpu", 4))
    offered = recommended(profile=profile(measuredAt=moment(20)))
    client.add(PROFILED_JOBS, job("goes", status=offered, adaptation={"mode": mode}))
    stays = job("stays", status=running_status(), adaptation={"mode": "Off"})
    client.add(PROFILED_JOBS, stays)
    client.add(PROFILED_JOBS, job("waits", "speech", {}, placement={"pools": {"allow": ["a100"]}}))
    for name in ("goes", "stays"):
        client.add(PODS, pod(name, "vision", "a100-0"))
    return client


def test_a_chain_is_shown_in_the_order_in_which_it_can_be_made() -> None:
    found = fleet_moves(view_of(chained()), NOW)
    first, second = found.moves
    assert (first.planned.key.name, first.wave, first.approval, first.approved) == ("goes", 1, "d-2-a10g-4", False)
    assert (second.planned.key.name, second.wave, second.approval) == ("waits", 2, None)
    assert second.planned.after == (first.planned.key,)
    made: dict[str, Any] = moves_document(found, NOW)
    assert [[row["name"] for row in wave] for wave in made["waves"]] == [["goes"], ["waits"]]
    assert made["potentialSavingsPerHour"] == made["waves"][0][0]["potentialSavingsPerHour"] > 0.0
    for key in (*made, *made["waves"][0][0]):
        assert key in (module.__doc__ or "")
    page, stream = printed()
    print_moves(page, found)
    text = stream.getvalue()
    assert "2 moves in 2 waves: $" in text and "1 to be approved: `rightpool approve --wave 1`" in text
    assert "vision/goes" in text, "whose chips the second waits for"


def test_what_is_done_anyway_needs_no_approval() -> None:
    first, _ = fleet_moves(view_of(chained("Auto")), NOW).moves
    assert first.approval is None


def test_what_is_under_way_is_shown_before_who_waits_for_its_chips() -> None:
    client = chained()
    here = {"pool": "a100", "chips": 4, "replicas": 1, "capacity": "OnDemand", "revision": 1, "workloadHash": "h"}
    here |= {"requestedChips": 4, "requestedReplicas": 1, "createdAt": moment(500)}
    moving = {"id": "d-2", "action": "Move", "phase": "Checkpointing", "reason": "CheaperPoolMeetsTargets"}
    moving |= {"startedAt": moment(9), "phaseStartedAt": moment(9), "message": "because", "withoutReturn": "FleetGains"}
    moving |= {"from": here, "to": here | {"pool": "a10g", "revision": 2}}
    client.objects[PROFILED_JOBS][0]["status"]["migration"] = moving
    found = fleet_moves(view_of(client), NOW)
    made: dict[str, Any] = moves_document(found, NOW)
    assert [row["name"] for row in made["underWay"]] == ["goes"]
    assert [[row["name"] for row in wave] for wave in made["waves"]] == [["waits"]]
    page, stream = printed()
    print_moves(page, found)
    _, first, second, *_ = stream.getvalue().splitlines()
    assert first.endswith("under way") and "4×a10g" in first
    assert "vision/goes" in second, "whose chips it waits for"


def test_a_job_of_another_manager_is_left_alone() -> None:
    client = chained()
    client.objects[PROFILED_JOBS][0]["spec"]["managedBy"] = "example.com/other"
    assert fleet_moves(view_of(client), NOW).moves == ()


def test_what_a_limit_holds_once_it_is_approved_is_said() -> None:
    client = chained()
    body = {"metadata": {"name": "default"}, "spec": {"maxMovesPerHour": 0}}
    client.add(PLACEMENT_POLICIES, body)
    found = fleet_moves(view_of(client), NOW)
    assert (found.moves, found.left_out) == ((), {"MoveRateLimitReached": 1})
    page, stream = printed()
    print_moves(page, found)
    assert "held back all the same: 1 by MoveRateLimitReached" in stream.getvalue()


def run(client: Patches, monkeypatch: pytest.MonkeyPatch, *words: str) -> int:
    parser = argparse.ArgumentParser()
    approving.add_arguments(parser)
    connection = Connection(client, "vision", "")  # type: ignore[arg-type]

    def carry_out(arguments: argparse.Namespace, command: str, work: Any) -> int:
        def with_connection() -> int:
            work(connection)
            return 0

        from rightpool.cli.connection import exit_status

        return exit_status(command, with_connection)

    monkeypatch.setattr(approving, "carry_out", carry_out)
    monkeypatch.setattr(time, "time", lambda: NOW)
    return approving.run(parser.parse_args(words))


def test_a_wave_is_approved_by_the_same_annotation_as_a_job(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    client = chained()
    assert run(client, monkeypatch, "--wave", "1") == 0
    (patch,) = client.patches
    assert patch["metadata"]["annotations"] == {"rightpool.dev/approve": "d-2-a10g-4"}
    assert "approved d-2-a10g-4: vision/goes goes to 4 chips of a10g" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("--wave", "2"), "nothing in wave 2 waits for an approval"),
        (("--wave", "1", "stays"), "vision/stays is not in wave 1"),
        ((), "name a job, or --wave N"),
        (("goes", "stays", "--id", "d-2"), "--id goes with one job"),
    ],
)
def test_what_is_not_to_be_approved_is_told(
    words: tuple[str, ...], why: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    client = chained()
    assert run(client, monkeypatch, *words) == 1
    assert why in capsys.readouterr().err and client.patches == []


def test_of_several_names_each_is_approved_that_can_be(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    client = chained()
    assert run(client, monkeypatch, "stays", "goes") == 1
    assert len(client.patches) == 1
    assert "nothing is recommended for vision/stays" in capsys.readouterr().err
