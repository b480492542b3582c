"""Names of operations, as numbers: each is held once, however many operations have it."""

from typing import Final

LONGEST: Final = 80  # a kernel's template arguments may fill a page, and say nothing here
_MOST: Final = 100_000


class Names:
    """Numbers from 0 on, in the order in which the names came."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}
        self.texts: list[str] = []
        """Each name by its number, as it may be shown: short, and of letters that do nothing to a terminal."""

    def number(self, name: str) -> int:
        """Of this name. Raises ValueError beyond the number of names that a trace can have."""
        name = name[:LONGEST]
        number = self._numbers.get(name)
        if number is None:
            if len(self.texts) >= _MOST:
                raise ValueError(f"it holds more than {_MOST} names")
            number = self._numbers[name] = len(self.texts)
            self.texts.append(plain(name))
        return number


def plain(name: str) -> str:
    """A name that is short, and does nothing to a terminal."""
    return "".join(letter for letter in name[:LONGEST] if letter.isprintable())
