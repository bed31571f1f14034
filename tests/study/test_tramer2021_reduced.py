"""Reduced searches and convergence have the settings of Tables 12 and 14, divided as the heads of the studies say."""

from fractions import Fraction

import pytest
from tramer2021_settings import cells_of, loaded, model_of, numbers, printed

MNIST, CIFAR = Fraction(10_000, 60_000), Fraction(10_000, 50_000)  # the share of the training images
SEARCHES = [  # study, data set, that in the paper, share of its images
    ("search-small", "mnist", "MNIST", MNIST),
    ("search-small", "fashion-mnist", "Fashion-MNIST", MNIST),
    ("search-cifar10-small", "cifar10-10k", "CIFAR-10", CIFAR),
]
SLOWER = {"linear": 4, "CNN": 4, "ScatterNet+CNN": 2}


@pytest.mark.parametrize(("study", "dataset", "name", "share"), SEARCHES)
def test_reduced_searches_try_a_part_of_the_grid_of_table_12(study, dataset, name, share):
    config, cells = cells_of(study)
    assert config["datasets"][dataset]["splits"]["records"] == 10_000
    found, models = printed("12", dataset=name), set()
    batches = {rounded(size * share) for size in numbers(found["batch_size"]) for rounded in (int, round)}
    for cell, options in cells:
        if cell.dataset != dataset:
            continue
        models.add(model_of(options))
        assert cell.epsilon == "3" and options["clipping_norm"] == float(found["clipping_norm"])
        assert options["optimiser"] == "momentum" and options["momentum"] == float(found["momentum"])
        assert options["learning_rate_batch"] == int(512 * share)
        space = options["tuning"]["space"]
        assert options["tuning"]["sampler"] == "grid" and "published (tramer2021, Table 12)" in options["tuned_on"]
        assert set(space["batch_size"]["choices"]) <= batches
        assert set(space["epochs"]["choices"]) <= set(numbers(found["epochs"]))
        slower = SLOWER[model_of(options)]
        assert space["learning_rate"]["choices"] == [rate / slower for rate in numbers(found["learning_rate"])]
        if "normalisation" in options:
            bounds = options["normalisation"]
            assert bounds["mean_clip"] == float(found["data_norm_C1"])
            assert bounds["square_clip"] == float(found["data_norm_C2"])
            assert bounds["noise_multiplier"] in numbers(found["data_norm_sigma"])
        elif (groups := config["features"][cell.features].get("normalise", "none")) != "none":
            assert groups["group_norm"] in numbers(found["group_norm_groups_G"])
    assert models == set(SLOWER)


def test_reduced_convergence_has_a_fifth_of_the_rates_and_batches_of_table_14():
    config, cells = cells_of("convergence-small")
    found, seen = printed("14", dataset="CIFAR-10"), set()
    rates = {float(Fraction(found[f"learning_rate_{name}"]) * CIFAR): name for name in ("low", "high")}
    for cell, options in cells:
        assert options["batch_size"] == int(int(found["batch_size"]) * CIFAR)
        assert options["epochs"] == int(found["epochs"]) and options["clipping_norm"] == float(found["clipping_norm"])
        assert options["sanitise"] == ("full" if cell.epsilon == "3" else "clip"), "clipped in any case"
        assert ("normalisation" in options) == (model_of(options) != "CNN")
        seen.add((model_of(options), rates[options["learning_rate"]], cell.epsilon))
    assert seen == {(m, r, e) for m in SLOWER for r in ("low", "high") for e in ("3", "inf")}
    assert config["datasets"]["cifar10-10k"]["splits"]["records"] == 10_000


def test_the_least_variance_with_and_without_noise_is_that_of_the_noise():
    """Nothing but the noise differs between the curves: both divide by the deviation of the private one."""
    options = loaded("convergence-small")["methods"]["linear-low"]
    floor = options["normalisation"]
    assert floor["variance_floor"] == pytest.approx(floor["noise_multiplier"] * floor["square_clip"] / 10_000)
