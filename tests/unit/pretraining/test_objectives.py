import math

import numpy as np
import pytest
import torch

from dpstudy.pretraining.objectives import contrast, mixed


def test_contrast_is_simclrs_equation():
    """Eq. 1 of Chen et al. 2020, with loops in float64."""
    torch.manual_seed(0)
    projected = torch.randn(10, 6)
    unit = [
        row / math.sqrt(sum(v * v for v in row)) for row in projected.double().tolist() and projected.double().numpy()
    ]
    losses = []
    for i in range(10):
        partner = (i + 5) % 10
        alike = [math.exp(float(unit[i] @ unit[k]) / 0.5) for k in range(10)]
        losses.append(-math.log(alike[partner] / sum(alike[k] for k in range(10) if k != i)))
    assert contrast(projected, 0.5).item() == pytest.approx(np.mean(losses), rel=1e-5)
    assert contrast(7 * projected, 0.5).item() == pytest.approx(np.mean(losses), rel=1e-5)


def test_mixup_mixes_pictures_and_labels_in_the_same_share():
    pictures = torch.arange(4.0).view(4, 1, 1, 1)
    labels = torch.arange(4)
    shares = []
    for seed in range(400):
        seen, soft = mixed(pictures, labels, 4, 0.2, np.random.default_rng(seed))
        share = soft[1, 1].item()
        torch.testing.assert_close(seen[1], share * pictures[1] + (1 - share) * pictures[0])
        torch.testing.assert_close(soft.sum(1), torch.ones(4))
        assert soft[1, 0].item() == pytest.approx(1 - share, abs=1e-6)
        shares.append(share)
    # Beta(a, a): mean 1/2, variance 1 / (4 (2 a + 1))
    assert np.mean(shares) == pytest.approx(0.5, abs=0.07)
    assert np.var(shares) == pytest.approx(1 / (4 * 1.4), rel=0.15)
