"""`rightpool simulate --plot`: what changes make of each figure, and how much of each pool is used."""

from __future__ import annotations

from typing import Any, Final

from matplotlib.figure import Figure

from rightpool.api.wording import how_many
from rightpool.cli.plot.draw import picture
from rightpool.cli.simulate.runs import Simulated, relative_changes, value_of

SIZE: Final = (11.0, 4.5)  # inches
_UNSURE: Final = "0.55"


def draw_simulation(found: Simulated, form: str) -> bytes:
    """The file of the picture. form: svg or png."""

    def fill(figure: Figure) -> None:
        panels = figure.add_gridspec(1, 2)
        _changes(figure.add_subplot(panels[0, 0]), found)
        _pools(figure.add_subplot(panels[0, 1]), found)

    checked = "" if found.holds else ": off by more than 10%, trust no more than the direction"
    return picture(SIZE, f"{how_many(len(found.history.records), 'job')} played again{checked}", fill, form)


def _changes(axes: Any, found: Simulated) -> None:
    axes.set_title("What the changes make of it, with 80% of cases")
    rows = relative_changes(found)
    for row, (_, change) in enumerate(rows):
        low, mean, high = (100.0 * value for value in (change.low, change.mean, change.high))
        colour = "black" if change.certain else _UNSURE
        axes.errorbar([mean], [row], xerr=[[mean - low], [high - mean]], fmt="o", color=colour, capsize=2)
    axes.axvline(0.0, color=_UNSURE, linewidth=0.8)
    axes.set_yticks(range(len(rows)), [title for title, _ in rows])
    axes.invert_yaxis()
    axes.set_xlabel("% of what it is without them; grey: not sure" if rows else "nothing is changed")


def _pools(axes: Any, found: Simulated) -> None:
    axes.set_title("Chip-hours")
    bars = {"as it was": [value_of(found.was, pool) for pool in found.pools]}
    for title, played in (("planned anew", found.planned), ("what if", found.what_if)):
        if played is not None:
            bars[title] = [played.figure(pool).mean for pool in found.pools]
    width = 0.8 / len(bars)
    for number, (title, hours) in enumerate(bars.items()):
        axes.bar([index + number * width for index in range(len(hours))], hours, width, label=title)
    middle = width * (len(bars) - 1) / 2
    axes.set_xticks([index + middle for index in range(len(found.pools))], found.pools)
    axes.legend(fontsize=7)
