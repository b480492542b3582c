"""What judges a move, beside how sure it is."""

from enum import Enum, auto


class Yardstick(Enum):
    """What a move was for judges it, whatever the objective: a deadline may cost money, a cost target time."""

    OBJECTIVE = auto()
    TIME = auto()
    COST = auto()
    NONE = auto()  # certain before the move, and going back would only bring about again what it was made for
