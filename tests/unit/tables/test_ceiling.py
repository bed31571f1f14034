"""The ceiling against Monte Carlo, simulated class sums, closed forms and the figures known of mehta2023."""

import math

import numpy as np
import pytest

from dpstudy import methods
from dpstudy.core.errors import StudyError
from dpstudy.methods.problem import Problem
from dpstudy.privacy.budget import Budget
from dpstudy.tables.ceiling import accuracy, cell_ceiling, label_norm, published_ceiling

CIFAR100 = (50_000, 100)
IMAGENET = (1_281_167, 1000)


def event(name="targets", multiplier=100.0, sensitivity=1.0, count=1, sampling="none", rate=1.0):
    return {
        "name": name,
        "mechanism": "gaussian",
        "noise_multiplier": multiplier,
        "sensitivity": sensitivity,
        "count": count,
        "sampling": sampling,
        "sampling_rate": rate,
    }


def ledger(*events, n=50_000, guarantee="proved"):
    return {"n": n, "guarantee": guarantee, "events": list(events)}


@pytest.mark.parametrize(("classes", "snr"), [(2, 1.0), (10, 0.5), (10, 2.5), (100, 0.6), (100, 3.0)])
def test_accuracy_is_that_of_a_million_draws(classes, snr):
    rng, right = np.random.default_rng(classes), 0
    for _ in range(20):
        scores = rng.standard_normal((50_000, classes), dtype=np.float32)
        scores[:, 0] += snr
        right += int((scores.argmax(axis=1) == 0).sum())
    value = accuracy(snr, classes)
    assert abs(right / 1e6 - value) < 5 * math.sqrt(value * (1 - value) / 1e6)


@pytest.mark.parametrize("classes", [2, 10, 1000, 21_000])
@pytest.mark.parametrize("snr", [0.0, 1e-3, 0.7, 3.0, 6.0, 30.0, 1e4])
def test_accuracy_against_a_dense_sum(classes, snr):
    """The maximum of the m - 1 others has the density (m - 1) phi(x) Phi(x)^(m - 2): another integral, a fine grid."""
    from scipy.stats import norm

    x = np.linspace(-12, 12, 400_001)
    density = (classes - 1) * np.exp(norm.logpdf(x) + (classes - 2) * norm.logcdf(x))
    assert accuracy(snr, classes) == pytest.approx(np.trapezoid(density * norm.sf(x - snr), x), abs=1e-6)


def test_accuracy_where_it_is_known():
    from scipy.stats import norm

    assert accuracy(0.0, 21_000) == pytest.approx(1 / 21_000, rel=1e-6)
    assert accuracy(1.3, 2) == pytest.approx(norm.cdf(1.3 / math.sqrt(2)), abs=1e-9)
    assert accuracy(1e4, 21_000) == pytest.approx(1.0, abs=1e-9)
    for snr, classes in ((-1.0, 10), (math.nan, 10), (1.0, 1)):
        with pytest.raises(ValueError, match="ceiling needs"):
            accuracy(snr, classes)


def test_noisy_class_sums_of_orthogonal_features_reach_it():
    """The idealisation simulated: sums, noise, inner products, the largest score; several releases are averaged."""
    rng, n, classes, multiplier, count = np.random.default_rng(0), 400, 20, 18.0, 3
    features = np.linalg.qr(rng.standard_normal((40, classes)))[0].T * 0.7  # (m, d), norm C = 0.7
    sums, runs, right = features * n / classes, 4000, 0
    for _ in range(runs):
        released = [sums + multiplier * 0.7 * rng.standard_normal(sums.shape) for _ in range(count)]
        right += int((np.argmax(features @ np.mean(released, axis=0).T, axis=1) == np.arange(classes)).sum())
    found = cell_ceiling(ledger(event("gradient", multiplier, 0.7, count), n=n), classes)
    assert found == pytest.approx(100 * right / (runs * classes), abs=1.0)
    assert found - cell_ceiling(ledger(event("gradient", multiplier, 0.7), n=n), classes) > 10


def test_the_figures_known_of_mehta2023():
    assert published_ceiling("DP-LS", 1, *CIFAR100, "0.01", 1e-5) == pytest.approx(3.9, abs=0.05)
    assert published_ceiling("DP-LS", 1, *IMAGENET, "0.01", 8e-7) == pytest.approx(4.0, abs=0.05)
    assert published_ceiling("DP-LS", 1, *CIFAR100, "0.05", 1e-5) == pytest.approx(68, abs=0.5)


@pytest.mark.parametrize(
    ("method", "epochs", "squared"),
    [  # SNR^2 / (n/m)^2 at zCDP rho
        ("DP-LS", 1, lambda rho, m: rho / 1.5),
        ("DP-Newton", 1, lambda rho, m: rho / m),
        ("DP-Newton", 10, lambda rho, m: rho / m),
        ("DP-FC", 1, lambda rho, m: 2 * rho / 2),
        ("DP-FC", 10, lambda rho, m: 10 * 2 * rho / 11),
    ],
)
def test_published_ceilings_from_the_closed_form_of_rho(method, epochs, squared):
    n, m = CIFAR100
    logarithm = math.log(1e5)
    rho = (math.sqrt(logarithm + 0.05) - math.sqrt(logarithm)) ** 2
    expected = 100 * accuracy(n / m * math.sqrt(squared(rho, m)), m)
    assert published_ceiling(method, epochs, n, m, "0.05", 1e-5) == pytest.approx(expected, abs=0.02)


def test_adam_is_calibrated_by_renyi_divergence():
    n, m = CIFAR100
    found = published_ceiling("DP-Adam", 100, n, m, "0.01", 1e-5)
    assert found == pytest.approx(published_ceiling("DP-Adam", 1, n, m, "0.01", 1e-5), abs=1e-6)

    def epsilon(mu):  # the conversion of Canonne, Kamath and Steinke 2020 over a fine grid of orders
        orders = np.geomspace(2, 1e5, 20_000)
        return np.min(orders * mu**2 / 2 + np.log1p(-1 / orders) - np.log(1e-5 * orders) / (orders - 1))

    low, high = 1e-5, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if epsilon(middle) < 0.01 else (low, middle)
    assert found == pytest.approx(100 * accuracy(n / m * low, m), rel=0.03)


def test_what_counts_in_a_ledger():
    targets = cell_ceiling(ledger(event()), 100)
    assert 0 < targets < 100
    free = [event(name, 1e-3) for name in ("gram", "class_grams", "hessian", "mean", "normalisation_mean")]
    assert cell_ceiling(ledger(event(), *free), 100) == targets
    assert cell_ceiling(ledger(event("gradient")), 100) == targets
    assert cell_ceiling(ledger(event(sensitivity=0.2)), 100) == targets
    assert cell_ceiling(ledger(event(sensitivity=0.2), guarantee="claimed"), 100) == targets
    assert cell_ceiling(ledger(event(), event(multiplier=50.0)), 100) > targets
    assert cell_ceiling(ledger(event("gradient", count=4)), 100) == pytest.approx(
        cell_ceiling(ledger(event("gradient", 50.0)), 100)
    )
    sampled = ledger(event("gradient", 10.0, count=100, sampling="poisson", rate=0.1))
    assert cell_ceiling(sampled, 100) == pytest.approx(cell_ceiling(ledger(event("gradient", 10.0)), 100))
    newton = ledger(event("gradient", 100.0, 2.0), event("hessian", 100.0, 0.25))
    assert cell_ceiling(newton, 100, clipping_norm=1.0) == cell_ceiling(ledger(event(multiplier=200.0)), 100)


def test_where_there_is_no_ceiling():
    assert cell_ceiling(ledger(event(), guarantee="none"), 10) is None
    assert cell_ceiling(ledger(), 10) is None
    assert cell_ceiling(ledger(event("gram")), 10) is None
    assert cell_ceiling(ledger(event(), event("something new")), 10) is None
    with pytest.raises(StudyError, match="no method 'DP-SGD'; there are DP-LS"):
        published_ceiling("DP-SGD", 1, *CIFAR100, "1", 1e-5)


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("least_squares", {}),
        ("least_squares", {"variant": "published"}),
        ("feature_covariance", {}),
        ("feature_covariance", {"start_share": 0.2}),
        ("feature_covariance", {"variant": "published", "steps": 2, "learning_rate": 1.0}),
        ("first_order", {"learning_rate": 1.0, "clipping_norm": 1.0, "steps": 2}),
        ("newton", {"variant": "published", "steps": 2}),
        ("newton", {"steps": 2}),
    ],
)
def test_every_release_of_the_methods_is_known(name, options):
    """A method that releases something new must say here whether it bears labels."""
    problem = Problem(1000, (5,), 10, Budget("1", 1e-5))
    plan = methods.load(name).plan(methods.parameters(name, options), problem)
    content = ledger(*(event.to_json() for event in plan.events), n=1000)
    assert cell_ceiling(content, 10) is not None


def test_newtons_noise_is_measured_against_its_features():
    problem = Problem(1000, (5,), 10, Budget("0.05", 1e-5))
    for variant, ratio in (("published", math.sqrt(10)), ("softmax", math.sqrt(0.9))):
        parameters = methods.parameters("newton", {"variant": variant, "steps": 1, "clipping_norm": 0.3})
        releases = methods.load("newton").plan(parameters, problem).events
        content = ledger(*(release.to_json() for release in releases), n=1000)
        norm = label_norm({"method": "newton", "hyperparameters": {"clipping_norm": 0.3}})
        [gradient] = [release for release in releases if release.name == "gradient"]
        expected = cell_ceiling(ledger(event(multiplier=gradient.noise_multiplier * ratio), n=1000), 10)
        assert cell_ceiling(content, 10, norm) == pytest.approx(expected, abs=1e-9)
        assert (cell_ceiling(content, 10) > expected) == (ratio > 1)
    assert label_norm({"method": "least_squares", "hyperparameters": {"clipping_norm": 0.3}}) is None
