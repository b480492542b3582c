"""What `tests.gpu.check_moves` says of the losses on either side of a move, by lines that programs have printed."""

from __future__ import annotations

import pytest

from tests.gpu.move_pools import CASES
from tests.gpu.move_results import result

_ENTRY = {
    "id": "d-2",
    "revision": 2,
    "startedAt": "2026-11-26T08:21:35Z",
    "finishedAt": "2026-11-26T08:22:20Z",
    "action": "Move",
    "outcome": "Verified",
    "from": {"chips": 1, "replicas": 1, "pool": "quarter-1"},
    "to": {"chips": 1, "replicas": 1, "pool": "whole-1"},
    "reason": "",
}
# ResNet-50, a quarter of an H200 and then all of it: three times as many steps lie between two lines.
_BEFORE = """step 39 loss 0.32919 samples/s 1472.0
step 63 loss 0.32264 samples/s 1472.4
step 86 loss 0.31601 samples/s 1472.0
step 110 loss 0.30950 samples/s 1472.6
step 134 loss 0.30290 samples/s 1472.6
step 157 loss 0.29717 samples/s 1471.9
step 181 loss 0.29089 samples/s 1472.1
"""


def _complaint(loss: float, before: str = _BEFORE, step: int = 254) -> str:
    [case] = [case for case in CASES if case.name == "resnet-up"]
    after = f"goes on from step 211\nstep {step} loss {loss} samples/s 2720.8\n"
    return result(case, {}, dict(_ENTRY), before, after).complaint


def test_a_loss_that_follows_the_curve_over_many_steps_is_no_jump() -> None:
    assert _complaint(0.27428) == ""


@pytest.mark.parametrize("loss", [0.33, 0.22])
def test_a_loss_beside_the_curve_is_a_jump(loss: float) -> None:
    assert "the loss jumped" in _complaint(loss)


def test_a_flat_curve_leaves_no_room_for_a_jump() -> None:
    flat = "".join(f"step {step} loss 1.0 samples/s 1\n" for step in range(0, 200, 20))
    assert _complaint(1.04, flat, 400) == ""
    assert "the loss jumped" in _complaint(0.9, flat, 400)


def test_a_single_line_tells_no_slope() -> None:
    assert "the loss jumped" in _complaint(0.2, "step 181 loss 0.29 samples/s 1\n")
