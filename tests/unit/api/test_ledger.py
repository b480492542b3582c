"""What a move promised against what it delivered."""

import pytest

from rightpool.api.ledger import Outcome
from tests.unit.planning.jobs import NOW, entry


@pytest.mark.parametrize(
    ("predicted", "realised", "error"),
    [(100.0, 90.0, -0.1), (100.0, 150.0, 0.5), (None, 90.0, None), (100.0, None, None), (100.0, 0.0, None)],
)
def test_the_error_of_a_prediction(predicted: float | None, realised: float | None, error: float | None) -> None:
    """That a program hung says nothing of it."""
    made = entry(Outcome.VERIFIED, NOW, predicted_throughput=predicted, realised_throughput=realised)
    assert made.prediction_error == (None if error is None else pytest.approx(error))
