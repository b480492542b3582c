"""Loading: what a wait for data says of the loader, and what the loader does to a step that takes another time.

    the host's: T = rest + wait     handed over: T = rest + wait · load     overlapped: T = (rest⁴ + (L · load)⁴)^(1/4)

A loader that prefetches works while the chip does. Its time L, 1 = (1 − wait)⁴ + L⁴, then hides behind the step, and a
wait of 1% may be the tip of a loader that takes 45% of the step, with which a chip of twice the speed would not be
twice as fast. It may as well be what handing over a batch takes, however fast the loader is. The less a chip waits, the
likelier is the second. Where nobody measured what an idle chip waits for, it may be data or the host.
"""

from typing import Final

import numpy as np

from rightpool.api.value_object import value_object
from rightpool.prediction.columns import Floats, Ints
from rightpool.prediction.step_shares import StepShares

# A wait of this share of the step is as likely the handing over of batches as the tip of a loader.
HAND_OVER: Final = 0.02
# How likely idle chips of which nobody knows what they wait for wait for data.
WAITS_FOR_DATA: Final = 0.25


@value_object
class Loading:
    """What the loader does to the steps of some rows, in units of the step now, over all that it may be."""

    whole: Floats
    """Log of the step, loading included."""
    slope: Floats
    """d log(step) / d log(rest): root of its mean square."""
    variance: Floats
    """Of the log of the step, from what the loader may be alone."""


def loader_chances(shares: StepShares) -> Floats:
    """How likely each of the three forms is for each job: a row a form."""
    wait = shares.input + shares.unsplit
    data = np.where(shares.unsplit > 0.0, WAITS_FOR_DATA, 1.0)
    handed = HAND_OVER / (HAND_OVER + wait)
    return np.array([1.0 - data, data * handed, data * (1.0 - handed)])


def forms(shares: StepShares, job: Ints, rest: Floats, load: Floats) -> tuple[Floats, Floats]:
    """The step in each of the three forms, and d log(step) / d log(rest): a row a form.

    rest: the step without its loading. load: how much more each loader has to load for it.
    """
    unsplit = shares.unsplit[job]
    wait = shares.input[job] + unsplit
    alone = np.maximum(rest - unsplit, 1e-9)  # of which nothing can be loading
    # With as much to load as now, what may be the host's stays. Only more to load, or less, changes it.
    measured = unsplit == 0.0
    base, now = np.where(measured, alone, rest), np.where(measured, 0.0, 1.0)
    loader = (1.0 - _fourth(1.0 - wait)) * (_fourth(load) - now)
    overlapped = np.maximum(_fourth(base) + loader, _fourth(alone))
    times = np.array([alone + wait, alone + wait * load, np.sqrt(np.sqrt(overlapped))])
    slopes = rest * np.array([1.0 / times[0], 1.0 / times[1], np.minimum(base**3 / overlapped, 1.0 / alone)])
    return times, slopes


def loaded(shares: StepShares, chances: Floats, job: Ints, rest: Floats, load: Floats) -> Loading:
    """The steps, over the forms with these chances of each job; arguments as of `forms`."""
    whole, slope, variance = np.log(rest), np.ones(len(rest)), np.zeros(len(rest))
    rows = np.flatnonzero(shares.input[job] + shares.unsplit[job] > 0.0)
    if rows.size:
        own = job[rows]
        times, slopes = forms(shares, own, rest[rows], load[rows])
        chance, logs = chances[:, own], np.log(times)
        mean = (chance * logs).sum(axis=0)
        whole[rows] = mean
        slope[rows] = np.sqrt((chance * slopes**2).sum(axis=0))
        variance[rows] = (chance * (logs - mean) ** 2).sum(axis=0)
    return Loading(whole, slope, variance)


def _fourth(values: Floats) -> Floats:
    """By products: numpy's powers took a quarter of what a fleet's evaluation takes."""
    squared = values * values
    power: Floats = squared * squared
    return power
