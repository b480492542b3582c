"""What an Estimate was derived from, in words."""

from __future__ import annotations

import pytest

from rightpool.api.premise import Premise, PremiseKind
from rightpool.reporting.premise_texts import premise_text


@pytest.mark.parametrize("kind", PremiseKind)
def test_every_kind_has_words_of_its_own(kind: PremiseKind) -> None:
    text = premise_text(Premise(kind, ("NVLink", "PCIe"), 7.0))
    others = {premise_text(Premise(other, ("NVLink", "PCIe"), 7.0)) for other in PremiseKind if other is not kind}
    assert text and text not in others and "{" not in text


@pytest.mark.parametrize(
    ("premise", "text"),
    [
        (Premise(PremiseKind.BOUNDARY, ("NVLink", "PCIe")), "boundary NVLink to PCIe"),
        (Premise(PremiseKind.DEMAND, number=0.712), "measured demand, 71% of it memory traffic"),
        (Premise(PremiseKind.SIZES_SEEN, number=1.0), "one size seen"),
        (Premise(PremiseKind.SIZES_SEEN, number=3.0), "3 sizes seen"),
        (Premise(PremiseKind.SPECIFICATIONS, ("T4-16GB", "L4-24GB")), "specifications of T4-16GB and L4-24GB"),
    ],
)
def test_names_and_numbers_are_in_the_words(premise: Premise, text: str) -> None:
    assert premise_text(premise) == text
