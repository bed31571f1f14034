"""Reduced studies have the settings of Tables 12 to 16, divided as the heads of the studies say."""

from fractions import Fraction

import pytest

from tests.scenarios.studies.tramer2021_settings import (
    cells_of,
    check_data_norm,
    delta_of,
    loaded,
    model_of,
    numbers,
    printed,
)

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
            check_data_norm(options, found)
            assert options["normalisation"]["noise_multiplier"] in numbers(found["data_norm_sigma"])
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
        assert options["optimiser"] == "momentum" and options["momentum"] == float(
            printed("12", dataset="CIFAR-10")["momentum"]
        )
        assert ("normalisation" in options) == (model_of(options) != "CNN")
        if "normalisation" in options:
            check_data_norm(options, printed("12", dataset="CIFAR-10"))
            sigma = f"{options['normalisation']['noise_multiplier']:g}"
            assert found["normalization"] == f"Data Norm. (sigma_norm = {sigma})"
        seen.add((model_of(options), rates[options["learning_rate"]], cell.epsilon))
    assert seen == {(m, r, e) for m in SLOWER for r in ("low", "high") for e in ("3", "inf")}
    assert config["datasets"]["cifar10-10k"]["splits"]["records"] == 10_000
    assert delta_of(config, "cifar10-10k") == pytest.approx(1 / (2 * 10_000))


def test_the_least_variance_with_and_without_noise_is_that_of_the_noise():
    """Nothing but the noise differs between the curves: both divide by the deviation of the private one."""
    options = loaded("convergence-small")["methods"]["linear-low"]
    floor = options["normalisation"]
    assert floor["variance_floor"] == pytest.approx(floor["noise_multiplier"] * floor["square_clip"] / 10_000)


def test_networks_on_fewer_records_go_as_far_as_those_of_table_16():
    """Batches a fifth of Table 13's, its epochs; steps times rate as for the 10,000 records of Table 16."""
    config, cells = cells_of("cifar10-small")
    cells = [(cell, options) for cell, options in cells if cell.epsilon != "inf"]  # the others: below
    assert config["datasets"]["cifar10"]["splits"]["records"] == 10_000
    assert delta_of(config, "cifar10") == pytest.approx(1 / (2 * 10_000))
    bounds, seen = printed("15"), set()
    for cell, options in cells:
        model = model_of(options)
        best, few = whole(model), printed("16", dataset="CIFAR-10 (N=10K)", model=model)
        assert options["batch_size"] == round(best["batch_size"] / 5) and options["epochs"] == best["epochs"], cell
        batch = int(bounds["batch_size"])
        steps = int(few["epochs_normalized_to_50000"]) * 50_000 / batch
        path = steps * float(Fraction(few["base_learning_rate"])) * batch / 512
        assert options["learning_rate"] * options["epochs"] * 10_000 / options["batch_size"] == pytest.approx(
            path, 2e-3
        )
        assert options.get("learning_rate_batch") is None and options["optimiser"] == "momentum", "rates as they are"
        assert options["momentum"] == float(bounds["momentum"])
        assert options["clipping_norm"] == float(bounds["clipping_norm"])
        check_normalised(options, bounds)
        seen.add(model)
    assert seen == set(SLOWER)


def whole(model):
    """The options of the whole study, which another test holds against Table 13."""
    entries = {"linear": "dp-sgd", "ScatterNet+CNN": "scatter-cnn", "CNN": "cnn"}
    return loaded("cifar10")["methods"][entries[model]]


def check_normalised(options, bounds):
    """Data normalisation as printed, of ScatterNet features alone."""
    assert ("normalisation" in options) == (model_of(options) != "CNN")
    if "normalisation" in options:
        check_data_norm(options, bounds)
        assert options["normalisation"]["noise_multiplier"] == float(bounds["data_norm_sigma"])


def test_ever_fewer_records_have_batches_and_rates_in_proportion():
    config, cells = cells_of("data-small")
    like = {model_of(options): options for cell, options in cells_of("cifar10-small")[1] if cell.epsilon != "inf"}
    seen = set()
    for cell, options in cells:
        n = config["datasets"][cell.dataset]["splits"]["records"]
        assert delta_of(config, cell.dataset) == pytest.approx(1 / (2 * n))
        base, share = like[model_of(options)], n / 10_000
        assert options["batch_size"] == pytest.approx(base["batch_size"] * share, abs=0.5), cell
        assert options["learning_rate"] == base["learning_rate"] * share, cell
        for name in ("epochs", "clipping_norm", "momentum", "optimiser"):
            assert options[name] == base[name], (cell, name)
        if cell.entry != "linear-group":
            check_normalised(options, printed("15"))
        seen.add((n, cell.entry))
    entries = ("linear", "linear-group", "scatter-cnn", "cnn-smaller")
    assert seen == {(n, entry) for n in (2_500, 5_000, 10_000) for entry in entries}


def test_reduced_iteration_draws_from_the_ranges_of_d_3():
    """From the whole study's choices, which another test holds against the paper; of epochs and batches fewer."""
    config, cells = cells_of("iteration-small")
    ranges = {cell.entry: options for cell, options in cells_of("iteration")[1]}
    assert config["datasets"]["cifar10"]["splits"]["records"] == 10_000
    for cell, options in cells:
        space, printed_space = (every["tuning"]["space"] for every in (options, ranges[cell.entry]))
        for name in ("clipping_norm", "learning_rate"):
            assert space[name]["choices"] == printed_space[name]["choices"], name
        assert set(space["batch_size"]["choices"]) < set(printed_space["batch_size"]["choices"])
        assert max(space["epochs"]["choices"]) <= max(printed_space["epochs"]["choices"])
        assert options["learning_rate_batch"] == 512 and options.get("order") == ranges[cell.entry].get("order")
        check_normalised(options, printed("15"))
    assert {(cell.entry, cell.epsilon) for cell, _ in cells} == {(entry, e) for entry in ranges for e in ("1", "3")}


def test_without_privacy_a_reduced_study_has_the_settings_of_the_whole():
    for cell, options in cells_of("cifar10-small")[1]:
        if cell.epsilon == "inf":
            assert options == loaded("cifar10")["methods"][cell.entry] | {"accounting": "certified"}, cell
