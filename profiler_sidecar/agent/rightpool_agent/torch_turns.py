"""Which steps of several optimizers are one training step."""

from __future__ import annotations

_BLOCK = 3  # steps of one optimizer alone


class Turns:
    """Optimizers that take turns make one step together: the one that begins a step begins the next one, too.

    Another one that comes again and again without it takes its place. If it has learned from the same batch each time,
    and then the first one comes again, the block was a part of that one's step after all, as where an actor catches up
    with its critics; the steps that were counted for it are made up for.
    """

    def __init__(self) -> None:
        self._leader: int | None = None  # the optimizer that begins the steps
        self._alone = 0  # how many steps it has made in a row without another
        self._repeats = False  # has it learned from one batch in the last two?
        self._others: dict[int, tuple[int, int]] = {}  # optimizers that have come since → how often, on the same batch
        self._met: set[int] = set()  # those that have come with one of its steps before
        self._patience = _BLOCK  # steps of another one until it takes the place
        self._before: int | None = None  # the leader whose place it took, while that may still get it back
        self._made = 0  # steps of the leader since then
        self._counted = 0  # training steps since then
        self._ahead = 0  # of these too many

    def take(self, key: int, repeats: bool = False) -> int:
        """How many training steps have become complete or begun by a step of this optimizer. repeats: is it known to
        have learned from the batch of its last one?"""
        begun = self._begun(key, repeats)
        if self._before is not None:
            self._counted += begun
        made_up = min(begun, self._ahead)
        self._ahead -= made_up
        return begun - made_up

    def _begun(self, key: int, repeats: bool) -> int:
        if key == self._before:  # what has come since was a part of its step
            self._patience = max(self._patience, 2 * self._made)
            self._ahead += self._counted
            self._lead(key, 0)
        if key == self._leader or self._leader is None:
            self._alone = 1 if self._others or self._leader is None else self._alone + 1
            self._leader, self._repeats = key, repeats
            self._met.update(self._others)
            self._others.clear()
            self._made += 1
            if not repeats:
                self._before = None
            return 1
        made, again = self._others.get(key, (0, 0))
        made, again = made + 1, again + repeats
        self._others[key] = made, again
        if made < self._patience:
            return 0
        # One that has never come with the leader's steps is no part of the last of them either.
        apart = self._alone >= _BLOCK or (self._made >= _BLOCK and key not in self._met)
        before = self._leader if again >= made - 1 and not self._repeats else None
        self._lead(key, made)
        self._before, self._repeats = before, repeats
        return made if apart else made - 1

    def _lead(self, key: int, made: int) -> None:
        self._leader, self._alone, self._made, self._counted, self._before = key, made, made, 0, None
        self._others.clear()
        self._met.clear()

    def leave(self, key: int) -> None:
        """This optimizer is no more."""
        if key == self._leader:
            self._leader, self._made = None, 0
            self._met.clear()
        if key == self._before:
            self._before = None
        self._others.pop(key, None)
        self._met.discard(key)
