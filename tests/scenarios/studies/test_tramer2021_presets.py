"""The settings of tramer2021's studies are those that its Tables 12 and 14 to 18 print (hyperparameters.csv)."""

import re
from fractions import Fraction

import pytest

from dpstudy.plan.outside import inherited_choices
from tests.scenarios.studies.tramer2021_settings import (
    ROOT,
    SHORT,
    cells_of,
    check_data_norm,
    delta_of,
    loaded,
    model_of,
    numbers,
    printed,
)


def check_grid(options, found, stretched=1):
    """The search tries the printed grid, every point of it."""
    check_fixed(options, found)
    tuning = options["tuning"]
    assert tuning["space"]["learning_rate"]["choices"] == numbers(found["learning_rate"])
    assert tuning["space"]["epochs"]["choices"] == [stretched * epochs for epochs in numbers(found["epochs"])]


def check_fixed(options, found):
    """All points of a grid, with rates for batches of 512."""
    assert options["tuning"]["sampler"] == "grid" and options["learning_rate_batch"] == 512
    assert options["clipping_norm"] == float(found["clipping_norm"]) and options["momentum"] == float(found["momentum"])
    assert options["optimiser"] == "momentum"


@pytest.mark.parametrize(
    ("study", "dataset"), [("search", "MNIST"), ("search", "Fashion-MNIST"), ("search-cifar10", "CIFAR-10")]
)
def test_the_searches_try_the_grid_of_table_12(study, dataset):
    config, cells = cells_of(study)
    found, seen = printed("12", dataset=dataset), set()
    cells = [(cell, options) for cell, options in cells if cell.dataset == SHORT[dataset]]
    for cell, options in cells:
        assert cell.epsilon == "3"
        check_grid(options, found)
        assert options["tuning"]["space"]["batch_size"]["choices"] == numbers(found["batch_size"])
        groups = config["features"][cell.features].get("normalise", "none")
        sigma = options.get("normalisation", {}).get("noise_multiplier")
        if sigma is not None:
            check_data_norm(options, found)
        seen.add((model_of(options), "none" if groups == "none" else groups["group_norm"], sigma))
    groups, sigmas = numbers(found["group_norm_groups_G"]), numbers(found["data_norm_sigma"])
    normalised = [*((g, None) for g in groups), *(("none", s) for s in sigmas)]
    assert seen == {(m, *n) for m in ("linear", "ScatterNet+CNN") for n in normalised} | {("CNN", "none", None)}


@pytest.mark.parametrize(
    ("study", "dataset"), [("mnist", "MNIST"), ("fashion", "Fashion-MNIST"), ("cifar10", "CIFAR-10")]
)
def test_convergence_is_shown_at_the_rates_of_table_14(study, dataset):
    config, cells = cells_of(f"convergence-{study}")
    found, seen = printed("14", dataset=dataset), set()
    rates = {float(Fraction(found[f"learning_rate_{name}"])): name for name in ("low", "high")}
    for cell, options in cells:
        assert (options["batch_size"], options["epochs"]) == (int(found["batch_size"]), int(found["epochs"]))
        assert options["clipping_norm"] == float(found["clipping_norm"]) and options["learning_rate_batch"] == 512
        assert options["sanitise"] == ("full" if cell.epsilon == "3" else "clip"), "clipped in any case"
        if model_of(options) != "CNN":
            groups = re.match(r"Group Norm. \(G = (\d+)\)", found["normalization"])
            normalise = config["features"][cell.features].get("normalise", "none")
            assert normalise == ({"group_norm": int(groups[1])} if groups else "none")
            assert ("normalisation" in options) == (groups is None)
        if "normalisation" in options:
            check_data_norm(options, printed("12", dataset=dataset))
            assert (
                found["normalization"] == f"Data Norm. (sigma_norm = {options['normalisation']['noise_multiplier']:g})"
            )
        seen.add((model_of(options), rates[options["learning_rate"]], cell.epsilon))
    models = ("linear", "ScatterNet+CNN", "CNN")
    assert seen == {(m, r, e) for m in models for r in ("low", "high") for e in ("3", "inf")}


SIZES = {f"cifar10-{size}k": size * 1000 for size in (10, 25, 100, 250, 550)} | {"cifar10": 50_000}


@pytest.mark.parametrize("study", ["data-search", "data-extra-search"])
def test_sizes_are_searched_as_in_table_15(study):
    config, cells = cells_of(study)
    found = printed("15")
    assert found["batch_size"] == "8192" and found["epochs"].endswith("* 50000/N")
    for cell, options in cells:
        size = SIZES[cell.dataset]
        if study == "data-search":
            check_grid(options, found, stretched=50_000 // size)
        else:  # epochs of 50,000 examples are as many steps for every size
            check_fixed(options, found)
            space = options["tuning"]["space"]
            assert space["steps"]["choices"] == [round(50_000 * epochs / 8192) for epochs in numbers(found["epochs"])]
            assert space["learning_rate"]["choices"] == numbers(found["learning_rate"])
            if "normalisation" in options:
                assert options["normalisation"]["sampling_rate"] == pytest.approx(50_000 / (size - 5_000), rel=1e-3)
        assert options["batch_size"] == int(found["batch_size"])
        assert delta_of(config, cell.dataset) == pytest.approx(1 / (2 * size), rel=2e-4)
        if model_of(options) == "CNN":
            assert "normalisation" not in options
        else:
            check_data_norm(options, found)
            assert options["normalisation"]["noise_multiplier"] == float(found["data_norm_sigma"])
    some = {"cifar10-10k", "cifar10-25k"} if study == "data-search" else {"cifar10-100k", "cifar10-550k"}
    assert {cell.dataset for cell, _ in cells} >= some


@pytest.mark.parametrize("study", ["data", "data-extra"])
def test_sets_of_all_sizes_are_trained_on_as_in_table_16(study):
    config, cells = cells_of(study)
    seen = set()
    for cell, options in cells:
        if cell.epsilon == "inf":
            continue
        size = SIZES[cell.dataset]
        more = " + Tiny Images" if size > 50_000 else ""
        found = printed("16", dataset=f"CIFAR-10{more} (N={size // 1000}K)", model=model_of(options))
        examples = int(found["epochs_normalized_to_50000"]) * 50_000
        assert options["epochs"] * size == pytest.approx(examples, rel=1e-5), cell
        assert options["learning_rate"] == float(Fraction(found["base_learning_rate"])), cell
        assert options["learning_rate_batch"] == 512 and options["batch_size"] == int(printed("15")["batch_size"])
        assert delta_of(config, cell.dataset) == pytest.approx(1 / (2 * size), rel=1e-4)
        assert options["clipping_norm"] == float(printed("15")["clipping_norm"])
        assert options["momentum"] == float(printed("15")["momentum"])
        if model_of(options) != "CNN":
            check_data_norm(options, printed("15"))
            assert options["normalisation"]["noise_multiplier"] == float(printed("15")["data_norm_sigma"])
            rate = options["normalisation"].get("sampling_rate", 1.0)
            assert rate == pytest.approx(min(1, 50_000 / size), rel=1e-3), cell
        seen.add((cell.dataset, model_of(options)))
    sizes = SIZES if study == "data-extra" else ("cifar10-10k", "cifar10-25k", "cifar10")
    assert seen == {(name, model) for name in sizes for model in ("linear", "ScatterNet+CNN", "CNN")}


def test_transfer_is_searched_and_trained_as_in_table_17():
    ranges = printed("17", method="DP-SGD (search range)")
    for cell, options in cells_of("transfer-search")[1]:
        assert cell.epsilon == "2"
        check_grid(options, ranges)
        assert options["tuning"]["space"]["batch_size"]["choices"] == numbers(ranges["batch_size"])
    best = {"resnext": "CIFAR-100 (ResNeXt-29)", "simclr": "ImageNet (unlabeled, SimCLRv2)"}
    seen = set()
    for cell, options in cells_of("transfer")[1]:
        if cell.entry.startswith("dp-sgd"):
            found = printed("17", pretraining=best[cell.features], method="DP-SGD (best)")
            rate, batch = found["learning_rate"].split(" * ")
            assert (options["batch_size"], options["epochs"]) == (int(found["batch_size"]), int(found["epochs"]))
            assert batch == f"{options['batch_size']}/{options['learning_rate_batch']}"
            assert options["learning_rate"] == float(rate) and options["clipping_norm"] == float(
                ranges["clipping_norm"]
            )
            assert options["momentum"] == float(ranges["momentum"])
            seen.add(cell.features)
    assert seen == set(best)


@pytest.mark.parametrize("dataset", SHORT)
def test_batch_sizes_are_those_of_table_18(dataset):
    found, sizes = printed("18", dataset=dataset), set()
    rate, _, scale = found["learning_rate"].partition(" * ")
    for cell, options in cells_of("batches")[1]:
        if cell.dataset == SHORT[dataset]:
            assert options["epochs"] == int(found["epochs"]) and options["learning_rate"] == float(Fraction(rate)), cell
            assert scale == f"B/{options['learning_rate_batch']}" and model_of(options) == "CNN"
            assert options["clipping_norm"] == float(printed("12", dataset=dataset)["clipping_norm"])
            assert options["momentum"] == float(printed("12", dataset=dataset)["momentum"])
            sizes.add(options["batch_size"])
    assert sorted(sizes) == numbers(found["batch_size"])


def test_iteration_is_searched_in_the_ranges_of_d_3():
    """C in {0.1, 1, 10}, B from 32 to 2048, base rates from 1/8 to 8, at epsilon from 1 to 3 (D.3, Figure 10)."""
    _, cells = cells_of("iteration")
    for _, options in cells:
        space = {name: tried["choices"] for name, tried in options["tuning"]["space"].items()}
        assert space["clipping_norm"] == [0.1, 1.0, 10.0]
        assert space["batch_size"] == [2**power for power in range(5, 12)]
        assert space["learning_rate"] == [2.0**power for power in range(-3, 4)]
        assert space["epochs"] == numbers(printed("12", dataset="CIFAR-10")["epochs"])
        assert options["learning_rate_batch"] == 512
        check_data_norm(options, printed("12", dataset="CIFAR-10"))
    assert {float(cell.epsilon) for cell, _ in cells} == {1.0, 1.5, 2.0, 3.0}
    assert {cell.entry for cell, _ in cells} == {"dp-sgd", "iteration-for-99-percent", "iteration-secret-order"}


def test_noise_is_shown_for_the_settings_of_figures_6_and_9():
    """Of 50,000 records: 60 epochs at epsilon = 3 by batch size (D.1), 10 epochs of batches of 512 by epsilon (D.3)."""
    drawn = {name: figure["noise"] for name, figure in loaded("noise")["figures"].items()}
    six, nine = drawn["tramer2021-figure-6"], drawn["tramer2021-figure-9"]
    assert (six["epochs"], six["records"], six["delta"]) == (60, 50_000, "1e-5")
    assert (nine["epochs"], nine["records"], nine["delta"]) == (10, 50_000, "1e-5")
    for series in six["series"]:
        assert series["algorithm"] == "dp-sgd" and series["epsilons"] == ["3"]
        assert series["batch_sizes"] == [2**power for power in range(8, 15)]
    assert all(series["batch_sizes"] == [512] for series in nine["series"])
    published = [(series["algorithm"], series.get("accounting")) for series in nine["series"]]
    assert ("dp-sgd", "tramer2021") in published and ("iteration", "tramer2021") in published


@pytest.mark.parametrize("study", ["data-extra", "data-extra-search"])
def test_labels_that_depend_on_other_records_are_named_wherever_they_are_used(study):
    datasets = [options for options in loaded(study)["datasets"].values() if "extra" in options]
    assert len(datasets) == 3
    for options in datasets:
        (sentence,) = options["not_accounted"]
        assert "footnote 6" in sentence and "trained on CIFAR-10" in sentence and "chosen" in sentence


WITHOUT_PRIVACY = {  # (data set, entry) -> the rate of tramer2021-nonprivate's grid that did best on validation images
    ("mnist", "nonprivate-linear"): 0.03,
    ("mnist", "nonprivate-scatter-cnn"): 0.1,
    ("mnist", "nonprivate-cnn"): 0.1,
    ("fashion-mnist", "nonprivate-linear"): 0.01,
    ("fashion-mnist", "nonprivate-scatter-cnn"): 0.03,
    ("fashion-mnist", "nonprivate-cnn"): 0.03,
    ("cifar10", "nonprivate-linear"): 0.001,
    ("cifar10", "nonprivate-scatter-cnn"): 0.01,
    ("cifar10", "nonprivate-cnn"): 0.03,  # on 10,000 images
}
ALIKE = ("method", "learning_rate_batch", "batch_size", "epochs", "momentum", "optimiser", "sanitise", "clipping_norm")


@pytest.mark.parametrize("study", ["mnist", "fashion", "cifar10", "data-extra"])
def test_rates_without_privacy_are_those_that_were_searched(study):
    """With all else as the search had it."""
    tried = {
        (cell.dataset, "nonprivate-" + cell.entry.removesuffix("-dn")): options
        for cell, options in cells_of("nonprivate")[1]
    }
    seen = set()
    for cell, options in cells_of(study)[1]:
        if not cell.entry.startswith("nonprivate-"):
            continue
        of = options["tuned_on"]
        key = ("cifar10" if cell.dataset.startswith("cifar10") else cell.dataset, cell.entry)
        assert "tramer2021-nonprivate" in of or "tramer2021-cifar10.yaml" in of, (cell, of)
        assert options["learning_rate"] == WITHOUT_PRIVACY[key], cell
        assert options["learning_rate"] in tried[key]["tuning"]["space"]["learning_rate"]["choices"], cell
        for name in (*ALIKE, "network", "normalisation"):
            assert options.get(name) == tried[key].get(name), (cell, name)
        seen.add(cell.entry)
    assert len(seen) == 3


@pytest.mark.parametrize("study", ["search", "search-cifar10", "data-search", "data-extra-search", "transfer-search"])
def test_searches_say_where_what_they_do_not_search_is_from(study):
    for _, options in cells_of(study)[1]:
        assert "tuning" in options and "published (tramer2021, Table" in options["tuned_on"]


STUDIES = sorted(path.stem.removeprefix("tramer2021-") for path in (ROOT / "studies").glob("tramer2021-*.yaml"))


@pytest.mark.parametrize("study", STUDIES)
def test_how_the_least_variance_was_chosen_stands_in_every_ledger_that_it_concerns(study):
    config, cells = cells_of(study)
    for cell, options in cells:
        if cell.epsilon == "inf" or config["datasets"][cell.dataset]["reader"] != "cifar":
            continue
        inherited = inherited_choices(config["datasets"][cell.dataset], options)
        said = any("least variance" in sentence for sentence in [*inherited, *options.get("not_accounted", [])])
        assert said == ("normalisation" in options), cell


TARGETS = {  # table or figure of the paper -> studies that draw it
    "table-3": ("search", "search-cifar10"),
    "table-15": ("data-search",),
    "table-17": ("transfer-search",),
    "figure-1": ("mnist", "fashion", "cifar10"),
    "figure-2": ("mnist", "fashion", "cifar10"),
    "figure-3": ("convergence-cifar10",),
    "figure-4": ("data-extra",),
    "figure-5": ("transfer",),
    "figure-6": ("noise",),
    "figure-7": ("batches",),
    "figure-8": ("search", "search-cifar10"),
    "figure-9": ("noise",),
    "figure-10": ("iteration",),
    "figure-11": ("convergence-mnist", "convergence-fashion"),
}
SPLIT = {("figure-7", "batches"): ("mnist", "fashion", "cifar10"), ("figure-8", "search"): ("mnist", "fashion")}


@pytest.mark.parametrize("target", TARGETS)
def test_every_figure_and_searched_table_of_the_paper_is_a_target(target):
    """Tables 1, 2, 4, 11, 19 and 20: test_studies.py; Tables 5 to 10 are settings and layouts, 16 and 18 settings."""
    for study in TARGETS[target]:
        config = loaded(study)
        names = config["figures" if target.startswith("figure") else "tables"]
        alone = (study.rpartition("-")[2],) if f"tramer2021-{target}" not in names else ("",)
        for part in SPLIT.get((target, study), alone):
            assert f"tramer2021-{target}-{part}".rstrip("-") in names, (study, target)
