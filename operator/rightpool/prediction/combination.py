"""A measured ratio and a predicted one of the same two rates: each counts by how sure it is."""

from typing import Final

import numpy as np

from rightpool.prediction.columns import Floats

# The model is taken to be no surer than this, and what a measurement says against it within so many of the
# measurement's standard deviations is taken for noise.
MODEL_SD: Final = 0.05
EXPLAINED: Final = 2.0


def measured_weight(measured: Floats, sd: Floats, predicted: Floats, variance: Floats) -> Floats:
    """How much the measurement counts, from 0 to 1; the prediction counts the rest.

    measured, predicted: logarithms of the ratio. sd: standard deviation of the measured one. variance: of the predicted
    one; NaN where nothing is predicted. What differs from the prediction by more than the measurement's doubt can
    explain is of the pool, of which the model knows nothing, and the model is the less sure of itself there.
    """
    surprise = (measured - predicted) ** 2 - (EXPLAINED * sd) ** 2
    model = np.maximum(np.maximum(variance, MODEL_SD**2), surprise)
    weight: Floats = np.where(np.isnan(variance) | np.isnan(predicted), 1.0, model / (model + sd**2))
    return weight
