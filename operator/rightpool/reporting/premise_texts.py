"""What an Estimate was derived from, in words."""

from typing import Final

from rightpool.api.premise import Premise, PremiseKind
from rightpool.api.wording import share

# {names}: joined by "and". {number}: a count. {share}: the number as a share.
_TEXTS: Final = {
    PremiseKind.MEASURED_NOW: "measured now",
    PremiseKind.MEASURED_BEFORE: "measured there before",
    PremiseKind.CHIP_ACTIVITY: "measured chip activity",
    PremiseKind.CHIP_ACTIVITY_UNKNOWN: "chip activity unknown",
    PremiseKind.COMMUNICATION: "measured communication",
    PremiseKind.USUAL_COMMUNICATION: "usual communication",
    PremiseKind.DEMAND: "measured demand, {share} of it memory traffic",
    PremiseKind.ARITHMETIC_AND_MEMORY: "measured arithmetic and memory traffic",
    PremiseKind.SAME_CHIP: "the same chip, {names}",
    PremiseKind.SPECIFICATIONS: "specifications of {names}",
    PremiseKind.PUBLISHED_THROUGHPUT: "published throughput of {names}",
    PremiseKind.CHIPS_SEEN: "{number} kinds of chips observed",
    PremiseKind.PRECISION_UNKNOWN: "precision unknown",
    PremiseKind.OTHER_PROGRAM: "another program there",
    PremiseKind.THROTTLED: "throttled here at {share} of healthy clocks",
    PremiseKind.OTHER_HOST: "another kind of host",
}


def premise_text(premise: Premise) -> str:
    """A few words without a full stop."""
    names, number = premise.names or (), premise.number or 0.0
    if premise.kind is PremiseKind.BOUNDARY:
        return f"boundary {' to '.join(names)}"
    if premise.kind is PremiseKind.SIZES_SEEN:
        return f"{number:.0f} sizes seen" if number > 1.0 else "one size seen"
    if premise.kind is PremiseKind.FLEET:
        return f"{number:.0f} comparisons of this fleet" if number > 1.0 else "one comparison of this fleet"
    return _TEXTS[premise.kind].format(names=" and ".join(names), number=f"{number:.0f}", share=share(number))
