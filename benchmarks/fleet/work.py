"""What the jobs of a trace do: with the best batch, a fixed one, or the one that the job's own model finds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from benchmarks.fleet.application import Application, Batch, samples
from benchmarks.fleet.own_model import OwnModel, Seen
from rightpool.api.placement import Placement
from rightpool.simulation.rounds import RoundJob


@dataclass(slots=True)
class _Measured:
    application: Application
    """What it runs."""

    @property
    def restart(self) -> int:
        """As measured."""
        return self.application.restart

    @property
    def ends(self) -> Sequence[float]:
        """As measured."""
        return self.application.ends


def application_of(job: RoundJob) -> Application:
    """What a job of the rounds runs."""
    assert isinstance(job.work, _Measured)
    return job.work.application


class BestBatch(_Measured):
    """A job whose batch is always the best one."""

    def tune(self, place: Placement, epoch: int) -> None:
        """It is."""

    def rate(self, place: Placement, epoch: int) -> float:
        """From the table."""
        return float(self.application.best_rates[self.application.places.index(place), epoch])


@dataclass(slots=True)
class FixedBatch(_Measured):
    """A job that makes batches of one size."""

    batch: Batch
    """How it makes them."""

    def tune(self, place: Placement, epoch: int) -> None:
        """There is no choice."""

    def rate(self, place: Placement, epoch: int) -> float:
        """As measured."""
        return float(self.application.rates(place, self.batch)[epoch])


@dataclass(slots=True)
class OwnBatch(_Measured):
    """A job that chooses its batch by a model of what it has seen, as Sia's jobs do."""

    batch: Batch = field(default_factory=lambda: Batch(0, 0))
    """The one chosen."""
    models: dict[str, OwnModel] = field(default_factory=dict)
    """What is learned, by pool. Jobs that have one such together learn from each other."""
    gradients: dict[int, tuple[float, float]] = field(default_factory=dict)
    """The square and the variance of the gradient in each epoch that was seen, with the batch that was made last."""

    def tune(self, place: Placement, epoch: int) -> None:
        """The best by its model; the smallest before it has one."""
        application = self.application
        model, gradient = self.models.get(place.pool), self.gradient(epoch)
        if gradient is None or model is None:
            least = max(application.smallest, application.least[place.pool] * place.chips)
            self.batch = application.split(place, least)
            return
        choices = application.choices(place)
        assert choices is not None
        goodput = model.goodput(place, choices[0], choices[1], *gradient, application.smallest)
        best = int((goodput * choices[2]).argmax())
        self.batch = application.within(place, Batch(int(choices[0][best]), int(choices[1][best])))

    def gradient(self, epoch: int) -> tuple[float, float] | None:
        """Of the last epoch that was seen, up to this one; else of the first; None before one was."""
        seen = self.gradients
        last = max((one for one in seen if one <= epoch), default=min(seen, default=None))
        return None if last is None else seen[last]

    def rate(self, place: Placement, epoch: int) -> float:
        """As measured; the job sees it, too."""
        square, variance = self.application.gradient(samples(place, self.batch))
        self.gradients[epoch] = float(square[epoch]), float(variance[epoch])
        seen = Seen(place.replicas, place.chips, self.batch.atomic)
        model = self.models.setdefault(place.pool, OwnModel())
        if seen not in model.seen:
            model.learn(seen, *self.application.step(place, self.batch.atomic))
        return float(self.application.rates(place, self.batch)[epoch])
