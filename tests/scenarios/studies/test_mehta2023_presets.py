"""The settings of mehta2023's studies are those that its Tables 5 to 9 print (hyperparameters.csv), or less by as much
as the studies say; tables, claims and controls name the cells that they are about."""

import csv
import re
from pathlib import Path

import pytest

from dpstudy.config.cells import unfold
from dpstudy.config.loading import read_study
from dpstudy.pretraining.options import complete
from dpstudy.tables.published import combine, lookup

ROOT = Path(__file__).parents[3]
SETS = {"imagenet": "ImageNet-1k", "cifar10": "CIFAR-10", "cifar100": "CIFAR-100"}
SOURCES = {"in1k": "ImageNet-1k", "in21k": "ImageNet-21k"}
METHODS = {"ls": "DP-LS", "newton": "DP-Newton", "fc": "DP-FC", "adam": "DP-Adam"}
TUNED = {"ridge": "lambda", "weight_decay": "lambda", "alpha": "alpha", "learning_rate": "learning_rate"}
ENTRIES = (
    "dp-ls",
    *(f"dp-{name}" for name in ("newton-1", "newton-10", "fc-1", "fc-10", "adam-1", "adam-10", "adam-100")),
)
EPSILONS = ["0.01", "0.05", "0.1", "0.5", "1", "2", "4", "8", "inf"]  # the columns of Tables 1 to 4


def loaded(name):
    return read_study(ROOT / "studies" / f"{name}.yaml")


def cells_of(name):
    """(cell, options) of a study."""
    config = loaded(name)
    return config, [(cell, cell.options(config)) for cell in unfold(config)]


def entries_of(name):
    """entry -> options, which are the same for all its private cells."""
    found = {}
    for cell, options in cells_of(name)[1]:
        if cell.epsilon == "inf":
            assert options["sanitise"] == "none", cell
            continue
        assert found.setdefault(cell.entry, options) == options, cell
    return found


def printed(**keys):
    """parameter -> text of the rows of mehta2023's tables of settings that these columns tell apart."""
    wanted = {"paper": "mehta2023"} | keys
    with (ROOT / "workflow/published/hyperparameters.csv").open(encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if wanted.items() <= row.items()]
    assert rows
    return {row["parameter"]: row["value"] for row in rows} | {"delta": rows[0]["delta"]}


def named(entry):
    """Method and full-batch steps that an entry's name says: dp-adam-100 is DP-Adam with 100."""
    _, method, *steps = entry.removesuffix("-shared").split("-")
    return METHODS[method], int(*steps) if steps else 1


def test_the_whole_grid_has_the_settings_of_tables_6_to_9():
    config, cells = cells_of("mehta2023")
    assert config["epsilons"] == EPSILONS and config["seeds"] == list(range(5))
    for name, dataset in config["datasets"].items():
        delta = printed(table="6", dataset=SETS[name])["delta"]
        assert dataset["delta"] == {"8e-7": "7.8e-7"}.get(delta, delta), "8e-7 is above 1/n"
    seen = set()
    for cell, options in cells:
        if cell.entry not in ENTRIES:
            continue
        method, steps = named(cell.entry)
        source = SOURCES[cell.features.rpartition("-")[2]]
        found = printed(dataset=SETS[cell.dataset], pretraining=source, method=method)
        caption = printed(method=f"{method} (caption)")
        check_method(options, method, steps, caption)
        assert options["clipping_norm"] == float(found["clipping_norm"])
        if method == "DP-FC":
            assert options["gram_clipping_norm"] == float(found["clipping_norm"])
        tuning = options["tuning"]
        assert tuning["trials"] == int(caption["tuner_trials"]) and "records" not in tuning
        ranges = {TUNED[name]: [ends["low"], ends["high"]] for name, ends in tuning["space"].items()}
        assert ranges.keys() == found.keys() & {"alpha", "lambda", "learning_rate"}
        for name, ends in ranges.items():
            assert ends == [float(end) for end in re.findall(r"[\de-]+", found[name])], (cell, name)
        seen.add((cell.features, cell.entry, cell.epsilon))
    assert seen == {(f, e, epsilon) for f in config["features"] for e in ENTRIES for epsilon in EPSILONS}


def check_method(options, method, steps, caption):
    """The algorithm that an entry is named after, with its printed loss and start."""
    kinds = {"DP-LS": "least_squares", "DP-Newton": "newton", "DP-FC": "feature_covariance", "DP-Adam": "first_order"}
    assert options["method"] == kinds[method] and options["accounting"] == "certified"
    assert options.get("steps", 1) == steps and not options["shared_noise"]
    if method == "DP-Adam":
        assert (
            options["optimiser"] == "adam" and caption["batch_size"] == "full batch" == f"{options['batch_size']} batch"
        )
    else:
        assert options["variant"] == "published"
    if method in ("DP-FC", "DP-Adam"):
        assert options["bias"] == float(caption["init_bias"])
        assert f"{options['loss']} cross-entropy" == caption["loss"]


def test_every_printed_number_of_tables_1_to_4_stands_beside_its_cell():
    """Each filter is of the pre-training, the method and the epochs that the cell's names say, and finds a number."""
    for study in ("mehta2023", "mehta2023-vit"):
        config = loaded(study)
        tables = {name: spec for name, spec in config["tables"].items() if re.fullmatch(r"table-[1234]", name)}
        assert tables
        for name, spec in tables.items():
            for group in spec["groups"]:
                if name != "table-1" and group.get("dataset", spec["dataset"]) != spec["dataset"]:
                    continue
                own = group["features"].rpartition("-")[2]
                source = SOURCES.get(own, "ImageNet-1k")  # mehta2023-vit trains on it
                assert group["published"]["pretraining"] == group["label"] == source, (name, group)
                dataset = group.get("dataset", spec.get("dataset"))
                for row in spec["rows"]:
                    if "published" not in row:
                        assert row["entry"] in ("least-squares", "default")
                        continue
                    method, steps = named(row["entry"])
                    assert row["published"] == {"method": method, "epochs": str(steps)}, row
                    assert (row["label"], row["epochs"]) == (method, steps)
                    if name != "table-1":
                        where = {"metric": "top1"} | combine(spec, dataset, group) | row["published"]
                        assert any(lookup(where, epsilon) for epsilon in config["epsilons"]), (name, where)
            assert spec.get("counterparts", {}) == {
                key: {"table": table, "dataset": SETS[key]}
                for key, table in (("imagenet", "2"), ("cifar10", "3"), ("cifar100", "4"))
                if key in config["datasets"]
            }
            if name != "table-1":
                assert spec["counterparts"][spec["dataset"]]["table"] == name[-1], name


@pytest.mark.parametrize("study", ["mehta2023", "mehta2023-small"])
def test_claims_controls_and_the_figure_are_about_the_cells_that_they_name(study):
    config = loaded(study)
    claims = config["tables"]["claims"]
    steps = {
        "DP-LS": "dp-ls",
        "DP-Newton": {"1": "dp-newton-1", "10": "dp-newton-10"},
        "DP-FC": {"1": "dp-fc-1", "10": "dp-fc-10"},
        "DP-Adam": {"1": "dp-adam-1", "10": "dp-adam-10", "100": "dp-adam-100"},
    }
    assert claims["methods"] == steps
    if study == "mehta2023":
        kinds = {
            source: [name for name in config["features"] if name.endswith(f"-{short}")]
            for short, source in SOURCES.items()
        }
        assert {name: sorted(found) for name, found in claims["pretraining"].items()} == {
            name: sorted(found) for name, found in kinds.items()
        }
        assert list(claims["pretraining"]) == list(kinds), "from the least to the most"
    for control in config["tables"]["ceiling"]["controls"]:
        assert control["entry"] == f"{control['independent']}-shared"
    assert config["figures"]["figure-1"]["entries"] == ["dp-fc-10"]


@pytest.mark.parametrize("study", ["mehta2023", "mehta2023-small", "mehta2023-shared-noise"])
def test_a_control_differs_by_its_noise_alone(study):
    entries = entries_of(study)
    shared = [entry for entry in entries if entry.endswith("-shared")]
    assert sorted(shared) == ["dp-fc-10-shared", "dp-ls-shared"]
    for entry in shared:
        assert entries[entry] == entries[entry.removesuffix("-shared")] | {"shared_noise": True}, entry
    if study == "mehta2023-shared-noise":
        assert {options["accounting"] for options in entries.values()} == {"mehta2023"}
        assert all(options["tuning"]["trials"] == 30 for options in entries.values())


DECADES = {  # of the reduced studies, for clips at 0.005
    "alpha": (1e-4, 1e2),
    "learning_rate": (1e-3, 1e2),
    "weight_decay": (1e-9, 1e-3),
    "ridge": (1e-9, 1e-3),
}
OTHER = {("ls", "ridge"): (1e-5, 1e1), ("fc", "learning_rate"): (1e-3, 1e3)}
SEARCHES = {  # study -> (trials, {entry: (trials, records)} of those that have fewer)
    "mehta2023-small": (30, {"dp-newton-10": (12, 5_000), "dp-adam-100": (20, 10_000)}),
    "mehta2023-200": (200, {"dp-adam-100": (200, 10_000)}),
}


@pytest.mark.parametrize("study", SEARCHES)
def test_reduced_grids_differ_by_their_searches_alone(study):
    """As many trials, ranges and records as the heads and docs/mehta2023.md say; all else as in the whole study."""
    whole, entries = entries_of("mehta2023"), entries_of(study)
    trials, fewer = SEARCHES[study]
    config = loaded(study)
    assert {name: dataset["delta"] for name, dataset in config["datasets"].items()} == dict.fromkeys(
        ("mnist", "fashion-mnist", "cifar10"), "1e-5"
    )
    for entry, options in entries.items():
        if "tuning" not in options:
            assert options == whole[entry] and entry in ("least-squares", "default")
            continue
        assert {**options, "tuning": None} == {**whole[entry], "tuning": None}, entry
        tuning, short = options["tuning"], entry.split("-")[1]
        wanted = fewer.get(entry, (trials, None))
        assert (tuning["trials"], tuning.get("records")) == wanted, entry
        for name, ends in tuning["space"].items():
            assert (ends["low"], ends["high"]) == OTHER.get((short, name), DECADES[name]), (entry, name)
        assert tuning["space"].keys() == whole[entry]["tuning"]["space"].keys()
    expected = {"dp-fc-10", "dp-adam-10", "dp-adam-100", "default"} if study == "mehta2023-200" else whole.keys()
    assert entries.keys() == set(expected)


INGREDIENTS = [  # (entry, the one above it, what it changes; None: it is gone)
    ("ls-accounting", "ls-as-printed", {"accounting": "certified"}),
    ("ls-symmetric", "ls-accounting", {"symmetric": True}),
    ("ls-floor", "ls-symmetric", {"floor": True}),
    ("ls-no-class-grams", "ls-floor", {"variant": "improved", "gram_share": 0.5, "alpha": 1.0}),
    ("ls-split", "ls-no-class-grams", {"gram_share": 0.2}),
    ("ls-known-ridge", "ls-split", {"ridge": "known-noise", "tuning": None}),
    ("default", "ls-mean", {"steps": "auto", "start_share": 0, "gram_share": 0.1}),
    ("fc-accounting", "fc-as-printed", {"accounting": "certified"}),
    ("newton-accounting", "newton-as-printed", {"accounting": "certified"}),
    (
        "newton-softmax",
        "newton-accounting",
        {"variant": "softmax", "ridge": "known-noise", "learning_rate": 0.5, "tuning": None},
    ),
    ("newton-shared", "newton-softmax", {"preconditioner": "shared"}),
    ("newton-shared-10", "newton-shared", {"steps": 10}),
]


@pytest.mark.parametrize(("entry", "above", "changes"), INGREDIENTS)
def test_each_row_of_the_ablation_adds_what_it_says(entry, above, changes):
    entries = entries_of("mehta2023-ablation")
    mine, before = dict(entries[entry]), entries[above] | changes
    if {"alpha", "variant"} <= changes.keys():  # one regulariser fewer to search
        space = dict(before["tuning"]["space"])
        del space["alpha"]
        before = before | {"tuning": before["tuning"] | {"space": space}}
    assert mine == {name: value for name, value in before.items() if value is not None}


def test_rows_of_the_ablation_as_printed():
    entries, whole = entries_of("mehta2023-ablation"), entries_of("mehta2023")
    like = {"ls-as-printed": "dp-ls", "fc-as-printed": "dp-fc-10", "newton-as-printed": "dp-newton-1"}
    for entry, printed_entry in like.items():
        options, base = entries[entry], whole[printed_entry]
        assert options["accounting"] == "mehta2023" and options["tuning"]["trials"] == 30
        for name in ("method", "variant"):
            assert options[name] == base[name]
        assert options.get("steps") == base.get("steps")
        assert options["clipping_norm"] == (0.005 if entry.startswith("fc") else 1.0)
        assert (options["floor"], options.get("symmetric")) == (
            (False, False) if entry.startswith("ls") else (True, None)
        )
    mean = entries["ls-mean"]
    assert (mean["method"], mean["steps"], mean["start_share"], mean["gram_share"]) == (
        "feature_covariance",
        0,
        0.5,
        0.2,
    )
    assert list(entries) == [
        *dict.fromkeys(["ls-as-printed", *(e for e, *_ in INGREDIENTS[:6]), "ls-mean"]),
        *(
            e
            for pair in (("default",), ("fc-as-printed", "fc-accounting"), ("newton-as-printed", "newton-accounting"))
            for e in pair
        ),
        "newton-softmax",
        "newton-shared",
        "newton-shared-10",
    ]


def test_the_pre_training_of_mehta2023_vit_is_that_of_table_5():
    config = loaded("mehta2023-vit")
    options = complete(config["backbones"]["vit-b16"])
    row = printed(table="5", pretraining="ImageNet-1k")
    caption = printed(table="5", pretraining="ImageNet-21k and ImageNet-1k")
    assert options["architecture"] == "timm:vit_base_patch16_224" and options["public"] == "imagenet"
    assert options["epochs"] == int(row["epochs"]) and options["learning_rate"] == float(row["base_learning_rate"])
    assert options["batch_size"] == int(caption["batch_size"]) and options["warm_up"] == int(caption["warmup_steps"])
    assert caption["learning_rate_schedule"] == f"{options['schedule']} warmup then linear decay"
    assert options["clip_norm"] == float(caption["clip_global_norm"])
    assert options["weight_decay"] * options["learning_rate"] == pytest.approx(float(caption["weight_decay"]))
    assert "x".join(map(str, options["size"])) == caption["resolution"]
    # the text of C.2, and of D.1 for the images of CIFAR
    assert (options["optimiser"], options["augmentation"], options["mixup"]) == ("adamw", "inception", 0.2)
    assert options["rand_augment"] == {"layers": 2, "magnitude": 15}
    assert (config["features"]["vit-b16"]["size"], config["features"]["vit-b16"]["crop"]) == ([384, 384], [256, 256])
    assert config["public"]["imagenet"]["reader"] == "imagenet"
    assert config["epsilons"] == EPSILONS
    assert {dataset["delta"] for dataset in config["datasets"].values()} == {"1e-5"}
    entries, whole = entries_of("mehta2023-vit"), entries_of("mehta2023")
    assert entries == {name: whole[name] for name in ("default", "least-squares", "dp-fc-10")}
