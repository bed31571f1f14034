"""The settings of de2022's studies are those that its Tables 8 and 12 to 23 and appendix C print; entries that are
named after a setting have it, and differ by nothing else."""

import csv
import re
from pathlib import Path

import pytest

from dpstudy.config.cells import unfold
from dpstudy.config.loading import read_study
from dpstudy.pretraining.options import complete
from dpstudy.tables.published import claims_of

ROOT = Path(__file__).parents[3]


def loaded(study):
    return read_study(ROOT / "studies" / f"de2022-{study}.yaml")


def check_model(cells, config, printed):
    """WRN-16-4 is the network wrn-16-4, or what timm calls it; of classifiers on features one is on that network's."""
    networks = {cell.options(config).get("network") for cell in cells}
    if networks == {None}:
        assert any(cell.features.startswith(printed.lower()) for cell in cells)
    else:
        names = {name.removeprefix("timm:").replace("nf_resnet", "nf-resnet-") for name in networks}
        assert names == {printed.lower()}


PRESETS = [  # study, data set, entry, table of de2022, method there
    ("cifar10", "cifar10", "wrn-16-4", "13", None),
    ("cifar10", "cifar10", "wrn-16-4-printed", "13", None),
    ("cifar10", "cifar10", "wrn-40-4", "14", None),
    ("imagenet", "imagenet", "scratch", "15", None),
    ("finetune", "cifar10", "all-layers", "16", None),
    ("finetune", "cifar10", "classifier", "17", None),
    ("finetune", "cifar100", "all-layers", "18", None),
    ("finetune", "cifar100", "classifier", "19", None),
    ("finetune", "cifar10", "all-layers-cifar100", "20", None),
    ("depths", "imagenet", "large-batch", "21", None),
    ("imagenet", "imagenet-320", "classifier", "22", None),
    ("places", "places365", "all-layers", "23", "DP-SGD (all layers)"),
    ("places", "places365", "classifier", "23", "DP-SGD (classifier layer)"),
    ("places", "places365", "all-layers-nonprivate", "23", "non-private (all layers)"),
    ("places", "places365", "classifier-nonprivate", "23", "non-private (classifier layer)"),
]


@pytest.mark.parametrize(("study", "dataset", "entry", "table", "method"), PRESETS)
def test_the_presets_of_de2022_are_those_printed(study, dataset, entry, table, method):
    """Every cell has the printed batch, rate, copies and norm at its epsilon, and the printed steps or noise."""
    config = loaded(study)
    with (ROOT / "workflow/published/hyperparameters.csv").open(encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if row["paper"] == "de2022" and row["table"] == table]
    cells = [cell for cell in unfold(config) if (cell.dataset, cell.entry) == (dataset, entry)]
    columns = {row["epsilon"] for row in rows if method in (None, row["method"])}
    assert {cell.epsilon for cell in cells} == columns, "every column of the table"
    check_model(cells, config, rows[0]["model"])
    for cell in cells:
        own = [row for row in rows if row["epsilon"] == cell.epsilon and method in (None, row["method"])]
        printed = {row["parameter"]: float(row["value"]) for row in own}
        options = cell.options(config)
        assert cell.epsilon == "inf" or float(config["datasets"][dataset]["delta"]) == float(own[0]["delta"])
        assert options["batch_size"] == printed["batch_size"] and options["learning_rate"] == printed["learning_rate"]
        assert options.get("augmentation", {"multiplicity": 0})["multiplicity"] == printed["augmentation_multiplicity"]
        assert cell.epsilon == "inf" or options["clipping_norm"] == printed["clipping_norm"]
        assert options.get("steps", printed["num_updates"]) == printed["num_updates"]
        assert options.get("noise_multiplier", printed["noise_multiplier"]) == printed["noise_multiplier"]
        assert "steps" in options or "noise_multiplier" in options
        assert ("noise_multiplier" in options) == ("printed" in entry or study == "places" and cell.epsilon != "inf")


def test_the_pre_trainings_of_de2022_are_those_printed():
    """Appendix C.3, as the claims have it in words."""
    rows = [claim for claim in claims_of("de2022").values() if claim["section"] == "C.3"]
    small, cifar, *_ = rows[0]["numbers"].split("; ")
    assert small == "ImageNet-32: SGD momentum 0.9, lr 0.3 constant, wd 5e-5, 240K iterations, batch 1024"
    assert cifar == "CIFAR-100: momentum 0.9, lr 0.1 divided by 10 at 50K and 75K, wd 5e-4, 100K iterations, batch 128"
    backbones = loaded("finetune")["backbones"]
    imagenet = {
        "learning_rate": 0.3,
        "schedule": "constant",
        "weight_decay": 5e-5,
        "steps": 240_000,
        "batch_size": 1024,
    }
    cifar100 = {"learning_rate": 0.1, "schedule": "steps", "weight_decay": 5e-4, "steps": 100_000, "batch_size": 128}
    for name, printed in {
        "imagenet32-wrn-28": imagenet,
        "imagenet32-wrn-40": imagenet,
        "cifar100-wrn-40": cifar100,  # a tenth after half of the steps, a hundredth after three quarters
    }.items():
        options = complete(backbones[name])
        assert {key: options[key] for key in printed} == printed and options["optimiser"] == "momentum"


STUDIES = ["cifar10", "ablation", "sweeps", "finetune", "imagenet", "depths", "places"]
UNAVERAGED = {
    "ablation": {"baseline", "group-norm", "large-batch", "weight-standardisation", "augmentation"},
    "cifar10": {"wrn-16-4-unaveraged"},
}
DELTAS = {"cifar": "1e-5", "image": "8e-7", "place": "5e-7"}


@pytest.mark.parametrize("study", STUDIES)
def test_private_training_is_that_of_equation_3_and_appendix_c(study):
    """Normalised by C, without momentum, decay or other regularisers, and averaged: 0.9999 on CIFAR, 0.99999 beyond."""
    config = loaded(study)
    for name, dataset in config["datasets"].items():
        assert dataset["delta"] == DELTAS[name[:5]], name
    for cell in unfold(config):
        options = cell.options(config)
        if cell.epsilon == "inf" or options["method"] == "feature_covariance":
            continue
        assert options["normalised"], cell
        average = 0.9999 if cell.dataset.startswith("cifar") else 0.99999
        assert options["moving_average"] == (0 if cell.entry in UNAVERAGED.get(study, ()) else average), cell
        assert options["optimiser"] == ("momentum" if cell.entry.endswith("-momentum") else "sgd"), cell
        assert options["weight_decay"] == (5e-4 if cell.entry.endswith("-regularised") else 0), cell
        decay = "cosine" if cell.entry.endswith("-decay") else "none"
        assert options.get("learning_rate_decay", "none") == decay, cell
        assert options["sampling"] == ("shuffle" if cell.entry.endswith("-shuffle") else "poisson"), cell


def options_at(study, epsilon, dataset=None):
    """entry -> options at one epsilon."""
    config = loaded(study)
    cells = [cell for cell in unfold(config) if cell.epsilon == epsilon and dataset in (None, cell.dataset)]
    return {cell.entry: cell.options(config) for cell in cells}


def differing(options, base):
    """What an entry has otherwise than another, but for where its settings are from."""
    names = (options.keys() | base.keys()) - {"tuned_on", "not_accounted"}
    return {name: options.get(name) for name in names if options.get(name) != base.get(name)}


ALONE = {  # study, entry it is compared with -> {entry: what it changes}, at epsilon = 8
    ("cifar10", "wrn-16-4"): {
        "wrn-16-4-printed": {"noise_multiplier": 3.0},
        "wrn-16-4-k4": {"augmentation": {"flip": True, "multiplicity": 4, "pad": 4}},
        "wrn-16-4-more-steps": {"steps": 3476},
        "wrn-16-4-shuffle": {"sampling": "shuffle"},
        "wrn-16-4-unaveraged": {"moving_average": 0},
        "wrn-16-4-momentum": {"optimiser": "momentum", "learning_rate": 0.4},
        "wrn-16-4-decay": {"learning_rate_decay": "cosine"},
        "wrn-16-4-regularised": {"weight_decay": 5e-4},
        "synthetic_prior": {"start": "drawn"},
    },
    ("finetune", "all-layers"): {
        "all-layers-wrn-40": {"network": "wrn-40-4", "start": "imagenet32-wrn-40"},
        "classifier": {"trained": "classifier", "learning_rate": 4.0},
        "steps-125": {"steps": 125},
        "steps-250": {"steps": 250},
        "steps-500": {"steps": 500},
        "steps-1000": {"steps": 1000},
        "steps-2000": {},
        "steps-4000": {"steps": 4000},
    },
    ("ablation", "averaging"): {"augmentation": {"moving_average": 0}},
    ("ablation", "augmentation"): {"weight-standardisation": {"augmentation": None}},
    ("ablation", "weight-standardisation"): {"large-batch": {"network": "wrn-40-4-gn"}},
    ("ablation", "large-batch"): {"group-norm": {"batch_size": 256}},
    ("ablation", "group-norm"): {"baseline": {"network": "wrn-40-4-plain"}},
    ("tiny", "averaging"): {"augmentation": {"moving_average": 0}},
    ("tiny", "augmentation"): {"weight-standardisation": {"augmentation": None}},
    ("tiny", "weight-standardisation"): {"large-batch": {"network": "wrn-10-2-gn"}},
    ("tiny", "large-batch"): {"group-norm": {"batch_size": 64, "steps": 200, "learning_rate": 0.5}},
    ("tiny", "group-norm"): {"baseline": {"network": "wrn-10-2-plain"}},
    ("priors-small", "random"): {
        "synthetic_prior": {"start": "drawn"},
        "cifar100-prior": {"start": "cifar100", "learning_rate": 1.0},
    },
}


@pytest.mark.parametrize(("study", "base"), ALONE)
def test_an_entry_differs_by_what_it_is_there_for(study, base):
    entries = options_at(study, "8", "cifar10")
    for entry, changes in ALONE[study, base].items():
        if study in ("ablation", "tiny") and entry == "group-norm":
            # a smaller batch is searched, or stepped, for itself
            assert {"batch_size", "network"} & differing(entries[entry], entries[base]).keys() == {"batch_size"}
            assert entries[entry]["batch_size"] == changes["batch_size"]
            continue
        assert differing(entries[entry], entries[base]) == changes, entry


def test_the_last_row_of_the_reduced_ablation_and_the_start_of_the_others():
    tiny, small = options_at("tiny", "8")["averaging"], options_at("priors-small", "8")["random"]
    found = (tiny, 60, 4, 4_000, "tiny", [0, 1, 2]), (small, 80, 2, 8_000, "priors-small", [0])
    for options, steps, copies, images, study, seeds in found:
        assert (options["network"], options["batch_size"], options["steps"]) == ("wrn-10-2", 512, steps)
        assert options["augmentation"]["multiplicity"] == copies and options["moving_average"] == 0.9999
        config = loaded(study)
        assert config["datasets"]["cifar10"]["splits"]["records"] == images
        assert config["datasets"]["cifar10"]["delta"] == "1e-5" and config["seeds"] == seeds
        assert f"{images:,} training images" in config["tables"][f"de2022-{study}"]["caption"]
    large = options_at("ablation", "8")["averaging"]
    assert (large["network"], large["batch_size"]) == ("wrn-40-4", 4096) and large["augmentation"]["multiplicity"] == 16


def test_entries_of_the_sweeps_have_the_settings_that_they_are_named_after():
    """batch-512, noise-2p0, clip-0p01-rate-4p0, copies-8, depth-64-copies-16; -deep: WRN-40-4."""

    def number(text):
        return float(text.replace("p", "."))

    config, seen = loaded("sweeps"), set()
    for cell in unfold(config):
        options, entry = cell.options(config), cell.entry
        kind, value, *more = entry.split("-")
        copies = options.get("augmentation", {}).get("multiplicity", 0)
        named = dict(zip([kind, *more[::2]], [value, *more[1::2]], strict=False))
        assert options["network"] == f"wrn-{named.get('depth', 40 if more[-1:] == ['deep'] else 16)}-4", cell
        assert copies == int(named.get("copies", 0)), cell
        assert options["clipping_norm"] == number(named.get("clip", "1")), cell
        large = kind == "noise" and more == ["deep"]
        assert options["batch_size"] == int(named.get("batch", 16384 if large else 4096)), cell
        fixed = {"noise": number(value) if kind == "noise" else None, "clip": 3.0, "depth": 2.0}.get(kind)
        assert options.get("noise_multiplier") == fixed, cell
        if "rate" in named:
            assert options["learning_rate"] == number(named["rate"]), cell
        assert cell.epsilon == ("64" if kind == "depth" else "8"), cell
        seen.add(kind)
    assert seen == {"batch", "noise", "clip", "copies", "depth"}


def test_data_are_those_of_table_12_and_starts_those_of_the_text():
    with (ROOT / "workflow/published/hyperparameters.csv").open(encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if (row["paper"], row["table"]) == ("de2022", "12")]
    (records,) = {int(row["value"]) for row in rows if (row["dataset"], row["parameter"]) == ("ImageNet-1k", "n_train")}
    for study in ("imagenet", "depths"):
        for dataset in loaded(study)["datasets"].values():
            assert dataset["splits"]["records"] == records
    finetune = loaded("finetune")
    for name, (network, source) in {
        "imagenet32-wrn-28": ("wrn-28-10", "imagenet32"),
        "imagenet32-wrn-40": ("wrn-40-4", "imagenet32"),
        "cifar100-wrn-40": ("wrn-40-4", "cifar100-public"),
    }.items():
        options = finetune["backbones"][name]
        assert (options["architecture"], options["public"]) == (network, source)
    for entry, options in options_at("depths", "8").items():
        if (depth := re.fullmatch(r"all-(\d+)", entry)) is not None:
            assert options["network"] == f"nf-resnet-{depth[1]}" and f"resnet{depth[1]}_" in options["start"]["weights"]
        if entry != "large-batch":
            assert (options["batch_size"], options["noise_multiplier"]) == (1024, 0.6), "section 4.2"


def test_the_audit_tries_the_grid_of_table_8():
    with (ROOT / "workflow/published/hyperparameters.csv").open(encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if (row["paper"], row["table"]) == ("de2022", "8")]
    printed = {(row["dataset"].partition("|D|=")[2], row["parameter"]): row["value"] for row in rows}
    config = loaded("audit")
    space = config["black_box"]["space"]
    both = "60K and |D|=100)"
    for name in ("learning_rate", "clipping_norm"):
        assert space[name] == [float(value) for value in printed[both, name].strip("{}").split(", ")]
    assert len(space["canaries"]) == len(printed[both, "z"].split(", ")) == 5
    for size, entries in (("60K)", ["lenet-60k"]), ("100)", ["lenet-100", "lenet-100-copies"])):
        steps = [int(value) for value in printed[size, "num_updates"].strip("{}").split(", ")]
        for entry in entries:
            assert space["steps"][entry] == steps
            options = options_at("audit", "1")[entry]
            assert options["batch_size"] == int(printed[size, "batch_size"].split()[0])
            assert options["network"] == "lenet"
    assert (config["black_box"]["pilot"], config["black_box"]["models"]) == (1000, 500_000)
    assert config["epsilons"] == ["1", "2", "4", "8"] and config["black_box"]["confidence"] == 0.999
    small = loaded("audit-small")
    assert (small["black_box"]["pilot"], small["black_box"]["models"]) == (50, 1000)
    assert small["datasets"]["mnist"]["splits"]["records"] == 100 and small["datasets"]["mnist"]["delta"] == "0.01"
    for name, tried in small["black_box"]["space"].items():
        if name not in ("steps",):
            assert set(tried) <= set(space[name]), name
    assert {options["steps"] for options in options_at("audit-small", "1").values()} == {10}


@pytest.mark.parametrize("study", ["imagenet", "depths", "places"])
def test_features_have_the_network_that_they_are_named_after(study):
    for name, options in loaded(study)["features"].items():
        if options["extractor"] == "timm":
            network = re.match(r"nf-resnet-(\d+)|nfnet-f3", name)
            called = f"nf_resnet{network[1]}" if network[1] else "dm_nfnet_f3"
            assert options["model"].replace("nf-resnet-", "nf_resnet") == called and called in options["weights"], name
            assert ("4b" in name) == ("4b" in options["weights"]), name
