"""Which cells stand beside which printed number: of shipped studies, each style by an example."""

import pytest

from dpstudy.config.including import read_config
from dpstudy.config.loading import load, read_study
from dpstudy.evidence.printed import CERTIFIED, NONE, PRINTED, Place, places
from dpstudy.tables.published import all_lines
from tests.workflow.conftest import ROOT


def of_study(name):
    return places([read_study(ROOT / "studies" / f"{name}.yaml")])


def line_of(**columns):
    (found,) = (line for line, row in all_lines().items() if columns.items() <= row.items())
    return found


@pytest.mark.parametrize(
    ("study", "printed", "place"),
    [
        (  # rows
            "tramer2021-mnist",
            {
                "paper": "tramer2021",
                "table": "1",
                "dataset": "MNIST",
                "model": "linear",
                "epsilon": "2.93",
                "source": "",
            },
            ("mnist", "scatternet", "dp-sgd", "2.93", "top1"),
        ),
        (  # groups with rows
            "mehta2023",
            {"table": "3", "pretraining": "ImageNet-1k", "method": "DP-FC", "epochs": "10", "epsilon": "0.1"},
            ("cifar10", "cifar10-vit-b16-in1k", "dp-fc-10", "0.1", "top1"),
        ),
        (  # rows with columns
            "smoothing",
            {"paper": "anon_smoothing", "model": "ViT-B/16", "method": "DP-SGD", "epsilon": "3"},
            ("cifar10", "vit-b16", "dp-sgd", "3", "top1"),
        ),
        (  # the best of some rows
            "de2022-cifar10",
            {"paper": "de2022", "table": "1", "dataset": "CIFAR-10", "pretraining": "none", "epsilon": "4"},
            ("cifar10", "images", "wrn-40-4", "4", "top1"),
        ),
        (  # what an attack found
            "de2022-audit",
            {"table": "9", "method": "DP-SGD audit (|D|=60K)", "metric": "membership_auc", "epsilon": "1"},
            ("mnist", "images", "lenet-60k", "1", "membership_auc"),
        ),
    ],
)
def test_a_printed_number_has_the_cell_that_a_table_puts_beside_it(study, printed, place):
    found = of_study(study)
    assert Place(study, *place).key in [beside.key for beside in found[line_of(**printed)]]


def test_no_other_paper_s_number_stands_beside_a_cell():
    for name, paper in (("tramer2021-mnist", "tramer2021"), ("mehta2023-small", "mehta2023")):
        assert {all_lines()[line]["paper"] for line in of_study(name)} <= {paper}


def test_searches_stand_beside_what_is_printed_of_trials():
    found = of_study("tramer2021-search")
    line = next(n for n, row in all_lines().items() if row["table"] == "3" and row["statistic"] == "mad")
    assert all_lines()[line]["paper"] == "tramer2021" and found[line]


def test_a_place_says_whether_its_noise_is_the_printed_one():
    config = read_config(ROOT / "studies" / "tramer2021-transfer.yaml")
    config["methods"]["dp-sgd-resnext"]["accounting"] = "tramer2021"
    found = {
        (place.entry, place.epsilon): place.noise for of_line in places([load(config)]).values() for place in of_line
    }
    assert found["dp-sgd-resnext", "2"] == PRINTED and found["dp-sgd-simclr", "2"] == CERTIFIED
    assert {noise for (_, epsilon), noise in found.items() if epsilon == "inf"} <= {NONE}


def test_cells_stand_beside_numbers_of_their_own_data_set_and_method():
    datasets = {"cifar10": "CIFAR-10", "cifar100": "CIFAR-100"}
    methods = {"dp-ls": "DP-LS", "dp-newton": "DP-Newton", "dp-fc": "DP-FC", "dp-adam": "DP-Adam"}
    lines, found = all_lines(), of_study("mehta2023-imagenet")
    assert len(found) > 100
    for line, beside in found.items():
        assert {datasets[place.dataset] for place in beside} == {lines[line]["dataset"]}
        for place in beside:
            method, _, epochs = place.entry.rpartition("-") if place.entry[-1].isdigit() else (place.entry, "", "1")
            assert (methods[method], epochs) == (lines[line]["method"], lines[line]["epochs"])
