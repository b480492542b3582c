"""A replica that generates tokens: how long a token and the first one take by how many requests share it.

Requests join and leave at each step, so that those in work share it evenly: how many there are hangs on the mean length
of answers alone, whatever their lengths are (Kelly, Reversibility and Stochastic Networks, 1979, ch. 3). With n of them
each gets its next token after `between(n)` seconds. One that comes when all places are taken waits for a place.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Final

import numpy as np

from rightpool.api.estimate import normal_cdf
from rightpool.api.value_object import value_object
from rightpool.prediction.columns import Floats
from rightpool.prediction.replay import UTILISATIONS, Replica
from rightpool.prediction.server import LoadLine

USED_SHARE: Final = 0.9
"""Share of a chip's memory that a server uses: the default of vLLM's gpu_memory_utilization, SGLang's is about that."""

_WAITING: Final = 400  # requests behind the places that are looked at, at most
_NORMAL_CDF: Final = np.vectorize(normal_cdf, otypes=[np.float64])


@value_object
class TokenTimes:
    """Seconds by requests at once, from one up to as many as there are places: a row for each likely server."""

    between: Floats
    """From one token of a request to its next one, in the mean."""
    first: Floats
    """From when a request gets its place to its first token, in the mean."""
    spread: float
    """Standard deviation of the log of single tokens around that mean: steps that read a prompt, too, take longer."""
    first_spread: float
    """The same of first tokens: prompts differ."""

    @property
    def places(self) -> int:
        """Requests at once, at most."""
        return len(self.between[0])

    def replica(self, tokens: float, first: Floats, between: Floats) -> Replica:
        """What records are put through. tokens: of an answer, in the mean; first, between: limits in seconds, whose
        shares come in this order."""
        most = self.places
        capacity = most / (tokens * self.between[:, -1])
        shares = self._requests(tokens, capacity)
        later = [self._late_first(shares, limit, 1.0 / capacity) for limit in first.tolist()]
        later += [self._late_between(shares, limit) for limit in between.tolist()]
        by_line: Floats = np.maximum.accumulate(np.stack(later, axis=2), axis=1)
        return Replica(capacity, np.concatenate([first, np.full(len(between), math.inf)]), by_line)

    def _requests(self, tokens: float, capacity: Floats) -> Floats:
        """Probability of so many requests, from none on: by line, utilisation and number."""
        at_once = np.minimum(np.arange(1, self.places + _WAITING), self.places)
        hold = np.log(tokens * self.between[:, at_once - 1] / at_once)  # seconds until one of n ends, a log
        steps = np.log(capacity[:, np.newaxis] * UTILISATIONS)[:, :, np.newaxis] + hold[:, np.newaxis, :]
        logs = np.concatenate([np.zeros((*steps.shape[:2], 1)), np.cumsum(steps, axis=2)], axis=2)
        found = np.exp(logs - logs.max(axis=2, keepdims=True))
        shares: Floats = found / found.sum(axis=2, keepdims=True)
        return shares

    def _late_between(self, shares: Floats, limit: float) -> Floats:
        """Of tokens: a step of n requests brings n of them, each of which sees the others as one that comes does."""
        over = _above(limit / self.between, self.spread)
        over = np.concatenate([over, np.repeat(over[:, -1:], shares.shape[2] - self.places, axis=1)], axis=1)
        found: Floats = np.einsum("lun,ln->lu", shares, over)
        return found

    def _late_first(self, shares: Floats, limit: float, each: Floats) -> Floats:
        """Of requests: one that comes sees those there. each: seconds after which full places are one fewer."""
        behind = np.arange(1, shares.shape[2] - self.places + 1)
        left = np.maximum(limit - each[:, np.newaxis] * behind, 1e-9)  # after the wait for a place
        over = np.concatenate(
            [
                _above(limit / self.first, self.first_spread),
                _above(left / self.first[:, -1:], self.first_spread),
            ],
            axis=1,
        )
        found: Floats = np.einsum("lun,ln->lu", shares, over)
        return found


def _above(ratio: Floats, spread: float) -> Floats:
    """Share of a lognormal distribution of mean 1 that is above each ratio."""
    wide = max(spread, 1e-3)
    found: Floats = _NORMAL_CDF(-(np.log(ratio) / wide + 0.5 * wide))
    return found


@value_object
class TokenLines:
    """What is known of a replica that generates tokens, with the doubt about it."""

    between: LoadLine
    """Seconds from one token of a request to the next one, by requests at once."""
    first: LoadLine | None
    """Seconds to the first token without the wait for a place, by the same; None where nobody tells."""
    spread: float
    """Of single tokens: see TokenTimes."""
    first_spread: float
    """Of first tokens."""
    tokens: float
    """Of an answer, in the mean."""
    held: float = math.inf
    """Requests whose keys and values a replica has memory for; infinite where nobody tells."""

    def elsewhere(self, tokens: tuple[float, float], prompts: tuple[float, float], cache: float = 1.0) -> TokenLines:
        """On another chip, where tokens and prompts are so many times as fast, give or take the sd of the log. cache:
        how many times as many keys and values it has memory for."""
        first, between = self.first, self.between.elsewhere(*tokens, stays=0.0)
        first = None if first is None else first.elsewhere(*prompts, stays=0.0)
        return replace(self, between=between, first=first, held=self.held * cache if cache > 0.0 else 0.0)

    @property
    def most(self) -> float:
        """Requests at once, at most."""
        return float(max(round(min(self.between.most, self.held)), 1))

    @property
    def capacity(self) -> float:
        """Requests a second with all places taken."""
        return self.most / self.between.seconds(self.most) / self.tokens

    def likely(self) -> TokenTimes:
        """Equally likely ones."""
        lines = self.between.draws(self.most)
        first = None if self.first is None else self.first.draws(self.most)
        at_once = self._at_once()
        between = lines.fixed[:, np.newaxis] + lines.each[:, np.newaxis] * at_once
        if first is None:
            return self._times(between, 1e-9 + 0.0 * between)
        return self._times(between, first.fixed[:, np.newaxis] + first.each[:, np.newaxis] * at_once)

    def longer(self, times: float = 1.0) -> TokenTimes:
        """As likely less as more, so many times as long."""
        at_once = self._at_once()
        between = self.between.fixed + self.between.each * at_once
        first = 1e-9 + 0.0 * at_once if self.first is None else self.first.fixed + self.first.each * at_once
        return self._times(times * between[np.newaxis], times * first[np.newaxis])

    def _at_once(self) -> Floats:
        return np.arange(1.0, self.most + 1.0)

    def _times(self, between: Floats, first: Floats) -> TokenTimes:
        return TokenTimes(between, first, self.spread, self.first_spread)


ServerLine = LoadLine | TokenLines
"""What is known of a replica."""


def cache_ratio(here: float, there: float, needed: float) -> float:
    """How many times as many keys and values there is memory for on another chip, at least; 0 where nothing is left.

    here, there: bytes of a chip. needed: the most of it that the program needs beside them. How much of that it does is
    not known: a smaller chip has the least left where it needs all of it, a larger one gains least where nothing.
    """
    needed = needed if there < here else 0.0
    return max(USED_SHARE * there - needed, 0.0) / max(USED_SHARE * here - needed, 1.0)
