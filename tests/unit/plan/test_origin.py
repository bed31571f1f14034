"""The hash of how the config makes what a cell reads."""

from dpstudy.config.cells import Cell
from dpstudy.plan.origin import origin_of
from tests.unit.plan.conftest import study_with

PIXELS, CNN, PROJECTED = (Cell("own", features, "sgd", "1") for features in ("pixels", "cnn", "projected"))


def changed(study, cells, **change) -> list[bool]:
    other = study_with(**change)
    return [origin_of(other, cell) != origin_of(study, cell) for cell in cells]


def test_a_cell_depends_on_the_networks_fits_and_public_sets_behind_its_features(study):
    cells = (PIXELS, CNN, PROJECTED)
    assert changed(study, cells, backbones__cnn__width=16) == [False, True, False]
    assert changed(study, cells, fits__pca__dim=4) == [False, False, True]
    assert changed(study, cells, public__web__count=99) == [False, True, True]
    assert changed(study, cells, dedup={"drop": "public"}) == [False, True, True]
    assert changed(study, cells, datasets__own__shards=3) == [True, True, True]
    assert changed(study, cells, datasets__own__delta="1e-6") == [False, False, False], "it is among a cell's facts"


def test_what_weights_are_said_to_be_trained_on_makes_nothing_anew():
    weights = {"extractor": "timm", "model": "resnet18", "weights": "w.safetensors", "sha256": "0" * 64}
    cell = Cell("own", "brought", "sgd", "1")
    told, unmatched = (
        study_with(features__brought=weights | {"trained_on": one}, dedup={"drop": "private"})
        for one in (["web"], "unmatched")
    )
    assert told["features"]["brought"] != unmatched["features"]["brought"]
    unkept = told | {"public": {"web": told["public"]["web"] | {"matched": False}}}
    assert origin_of(unkept, cell) == origin_of(unmatched, cell)
