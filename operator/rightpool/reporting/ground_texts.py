"""What an Estimate was derived from, in words."""

from typing import Final

from rightpool.api.ground import Ground, GroundKind
from rightpool.reporting.wording import share

# {names}: joined by "and". {number}: a count. {share}: the number as a share.
_TEXTS: Final = {
    GroundKind.MEASURED_NOW: "measured now",
    GroundKind.MEASURED_BEFORE: "measured there before",
    GroundKind.CHIP_ACTIVITY: "measured chip activity",
    GroundKind.CHIP_ACTIVITY_UNKNOWN: "chip activity unknown",
    GroundKind.COMMUNICATION: "measured communication",
    GroundKind.USUAL_COMMUNICATION: "usual communication",
    GroundKind.DEMAND: "measured demand, {share} of it memory traffic",
    GroundKind.ARITHMETIC_AND_MEMORY: "measured arithmetic and memory traffic",
    GroundKind.SAME_CHIP: "the same chip, {names}",
    GroundKind.SPECIFICATIONS: "specifications of {names}",
    GroundKind.PUBLISHED_THROUGHPUT: "published throughput of {names}",
    GroundKind.CHIPS_SEEN: "{number} kinds of chips observed",
    GroundKind.PRECISION_UNKNOWN: "precision unknown",
    GroundKind.FLEET: "{number} comparisons of this fleet",
    GroundKind.OTHER_PROGRAM: "another program there",
    GroundKind.THROTTLED: "throttled here at {share} of healthy clocks",
    GroundKind.OTHER_HOST: "another kind of host",
}


def ground_text(ground: Ground) -> str:
    """A few words without a full stop."""
    names, number = ground.names or (), ground.number or 0.0
    if ground.kind is GroundKind.BOUNDARY:
        return f"boundary {' to '.join(names)}"
    if ground.kind is GroundKind.SIZES_SEEN:
        return f"{number:.0f} sizes seen" if number > 1.0 else "one size seen"
    return _TEXTS[ground.kind].format(names=" and ".join(names), number=f"{number:.0f}", share=share(number))
