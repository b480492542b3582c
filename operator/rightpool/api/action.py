"""What a decision does."""

from enum import StrEnum


class Action(StrEnum):
    """What a decision does."""

    START = "Start"  # the first placement, or another where the job did not start
    KEEP = "Keep"  # nothing better, by the numbers
    HOLD = "Hold"  # something may be better, but acting now is not allowed or not certain enough
    RESIZE = "Resize"  # same pool, other size
    MOVE = "Move"  # other pool
    UPDATE = "Update"  # the user changed the workload: same loop, not verified
