"""The cells that tramer2021's studies of one claim or two name for it are those that the role's name says."""

import pytest

from dpstudy.tables.claims.names import MODELS, roles_of
from tests.scenarios.studies.tramer2021_settings import cells_of, model_of

NAMED = {"linear": "linear", "ScatterNet+CNN": "scatter-cnn", "CNN": "cnn"}
TRANSFER = {f"{free}transfer-{source}" for free in ("", "nonprivate-") for source in ("cifar100", "imagenet")}
FREE = {f"nonprivate-{model}" for model in MODELS}
CONVERGENCE = {f"{model}-{rate}{clip}" for model in MODELS for rate in ("low", "high") for clip in ("", "-clip")}
ROLES = {  # study -> the roles of each of its data sets
    **{f"convergence-{name}": CONVERGENCE for name in ("mnist", "fashion", "cifar10", "small")},
    "transfer": TRANSFER,
    "batches": {"cnn-batches"},
    "data": set(MODELS),
    "data-small": set(MODELS),
    "data-extra": set(MODELS) | FREE,
    "iteration": {"linear", "iteration"},
    "iteration-small": {"linear", "iteration"},
    "random-patches": {"linear", "random-patches"},
}
# Roles that data sets of data-extra share: without privacy there are models from 50,000 records on.
UNTRAINED = {(f"cifar10-{size}k", role) for size in (10, 25) for role in FREE}


def chosen(study):
    """The config, and (data set, role, feature set, cell, its options) of all claims of a study."""
    config, cells = cells_of(study)
    found = []
    for table in config["tables"].values():
        if table.get("style") == "claims":
            for dataset, role, features, entry in roles_of(table):
                fitting = [(c, o) for c, o in cells if (c.dataset, c.features, c.entry) == (dataset, features, entry)]
                assert fitting or (dataset, role) in UNTRAINED, (role, entry)
                found += [(dataset, role, features, *each) for each in fitting]
    return config, found


@pytest.mark.parametrize("study", ROLES)
def test_no_role_is_missing(study):
    config, found = chosen(study)
    expected = {(dataset, role) for dataset in config["datasets"] for role in ROLES[study]}
    assert {(dataset, role) for dataset, role, *_ in found} == expected - UNTRAINED


@pytest.mark.parametrize("study", [study for study, roles in ROLES.items() if study.startswith(("conv", "data", "it"))])
def test_a_role_is_of_the_model_that_it_names(study):
    for _, role, _, cell, options in chosen(study)[1]:
        model = role.removeprefix("nonprivate-").partition("-low")[0].partition("-high")[0]
        expected = "linear" if model == "iteration" else model
        assert NAMED[model_of(options)] == expected, (role, cell)
        assert (options["method"] == "iterated_sgd") == (model == "iteration"), (role, cell)
        if role in FREE:
            assert (options["sanitise"], cell.epsilon) == ("none", "inf"), (role, cell)


@pytest.mark.parametrize("study", [study for study in ROLES if study.startswith("convergence")])
def test_roles_of_convergence_have_the_rate_and_the_noise_that_they_name(study):
    found = chosen(study)[1]
    low, high = sorted({options["learning_rate"] for *_, options in found})
    assert low < high
    for _, role, _, cell, options in found:
        assert options["learning_rate"] == (low if "-low" in role else high), (role, cell)
        clipped = role.endswith("-clip")
        assert (options["sanitise"], cell.epsilon) == (("clip", "inf") if clipped else ("full", "3")), (role, cell)


def test_roles_of_transfer_have_the_network_that_they_name():
    sources = {"cifar100": "resnext", "imagenet": "simclr"}
    for _, role, features, cell, options in chosen("transfer")[1]:
        assert features == sources[role.rpartition("-")[2]], (role, cell)
        assert (options["method"] == "first_order") == role.startswith("transfer"), (role, cell)


def test_roles_of_several_cells_run_from_the_smallest_to_the_largest():
    found = chosen("batches")[1]
    for name in {dataset for dataset, *_ in found}:
        sizes = [options["batch_size"] for dataset, *_, options in found if dataset == name]
        assert sizes == sorted(set(sizes)) and len(sizes) == 4
    config, found = chosen("random-patches")
    for name in config["datasets"]:
        used = [features for dataset, role, features, *_ in found if (dataset, role) == (name, "random-patches")]
        counts = [config["features"][features]["filters"] for features in dict.fromkeys(used)]
        assert counts == sorted(set(counts)) and len(counts) == 4
