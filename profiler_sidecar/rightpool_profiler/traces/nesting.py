"""Operations of one thread, of which some hold others."""

from collections.abc import Iterable, Iterator


def self_times(spans: Iterable[tuple[int, ...]]) -> Iterator[tuple[tuple[int, ...], int]]:
    """Each span, and its time that it does not spend in another one. spans: of one thread, by their start and of one
    start the longest first."""
    open_: list[tuple[tuple[int, ...], list[int]]] = []  # and the time that is left of it
    for span in spans:
        start, end = span[0], span[1]
        while open_ and open_[-1][0][1] <= start:
            done, (left,) = open_.pop()
            yield done, max(left, 0)
        if open_:
            outer, left_of_outer = open_[-1]
            left_of_outer[0] -= min(end, outer[1]) - start
        open_.append((span, [end - start]))
    while open_:
        done, (left,) = open_.pop()
        yield done, max(left, 0)
