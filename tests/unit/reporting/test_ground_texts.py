"""What an Estimate was derived from, in words."""

from __future__ import annotations

import pytest

from rightpool.api.ground import Ground, GroundKind
from rightpool.reporting.ground_texts import ground_text


@pytest.mark.parametrize("kind", GroundKind)
def test_every_kind_has_words_of_its_own(kind: GroundKind) -> None:
    text = ground_text(Ground(kind, ("NVLink", "PCIe"), 7.0))
    others = {ground_text(Ground(other, ("NVLink", "PCIe"), 7.0)) for other in GroundKind if other is not kind}
    assert text and text not in others and "{" not in text


@pytest.mark.parametrize(
    ("ground", "text"),
    [
        (Ground(GroundKind.BOUNDARY, ("NVLink", "PCIe")), "boundary NVLink to PCIe"),
        (Ground(GroundKind.DEMAND, number=0.712), "measured demand, 71% of it memory traffic"),
        (Ground(GroundKind.SIZES_SEEN, number=1.0), "one size seen"),
        (Ground(GroundKind.SIZES_SEEN, number=3.0), "3 sizes seen"),
        (Ground(GroundKind.SPECIFICATIONS, ("T4-16GB", "L4-24GB")), "specifications of T4-16GB and L4-24GB"),
    ],
)
def test_names_and_numbers_are_in_the_words(ground: Ground, text: str) -> None:
    assert ground_text(ground) == text
