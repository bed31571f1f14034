"""Linear models as arrays."""

import numpy as np

from dpstudy.models.linear import LinearModel


def test_a_linear_model_has_weights_and_biases_and_its_normalisation_does_not_count():
    model = LinearModel(np.zeros((10, 3969)), np.zeros(10), center=np.zeros(3969), scale=np.ones(3969))
    assert model.parameters == 39_700
