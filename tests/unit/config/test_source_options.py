"""Feature sets that are made of others, and projections that are fitted on one."""

import copy
from fnmatch import fnmatchcase

import pytest

from dpstudy.config.loading import load
from dpstudy.core.errors import StudyError
from dpstudy.plan.publics import fit_options
from tests.unit.config.test_loading import BASE, LITE

JOINED = {"extractor": "joined", "parts": ["pixels", "lite"]}
OF_LITE = {"public": "glyphs", "features": "lite", "dim": 4}


def config_with(**changes) -> dict:
    config = copy.deepcopy(BASE)
    config["features"] |= {"lite": LITE | {"size": [64, 64]}, "both": copy.deepcopy(JOINED)}
    config["fits"]["of-lite"] = dict(OF_LITE)
    config["features"]["less"] = config["features"]["lite"] | {"fit": "of-lite", "normalise": "l2"}
    for path, value in changes.items():
        *around, last = path.split("__")
        node = config
        for key in around:
            node = node[key.replace("_", "-")]
        node[last.replace("_", "-")] = value
    return config


def test_names_are_replaced_by_what_they_stand_for():
    study = load(config_with())
    features = study["features"]
    assert features["both"]["parts"] == [features["pixels"], features["lite"]]
    assert features["lite"]["trained_on"] == "imagenet-1k" and features["lite"]["scaling"] == "model"
    assert study["fits"]["of-lite"]["features"] == features["lite"] and "scaling" not in study["fits"]["of-lite"]
    assert study["fits"]["pca"]["scaling"] == "unit", "one with keys of its own is as it was"


@pytest.mark.parametrize(
    ("path", "value", "sentence"),
    [
        ("features__both__parts", ["pixel"], "features.both.parts[[]0]: unknown feature set 'pixel'*mean 'pixels'*"),
        ("features__both__parts", ["pixels", "both"], "features.both.parts[[]1]: is joined itself; name what *"),
        ("features__both__parts", ["less"], "features.both.parts[[]0]: has a projection, the fit 'of-lite'; *"),
        ("features__both__parts", [{"extractor": "pixels"}], "features.both.parts[[]0]: is no name; give *"),
        ("features__both__parts", [], "features.both.parts: *"),
        ("features__both", {"extractor": "joined"}, "features.both: the extractor 'joined' needs the key 'parts'"),
        ("features__pixels__parts", ["lite"], "features.pixels.parts: the extractor 'pixels' does not take this key"),
        ("features__pixels", {"extractor": "images"}, "features.both.parts[[]0]: the extractor 'images' computes no *"),
        ("fits__of_lite__features", "light", "fits.of-lite.features: unknown feature set 'light'*"),
        ("fits__of_lite__scaling", "imagenet", "fits.of-lite.scaling: does not go with `features`, which says so *"),
        ("fits__of_lite__extractor", "pixels", "fits.of-lite.extractor: does not go with `features`*"),
        ("fits__of_lite", {"public": "glyphs", "dim": 4}, "fits.of-lite: needs the key 'features', a feature set *"),
        ("fits__of_lite__features", "less", "fits.of-lite.features: has a projection*"),
        ("features__less__size", [32, 32], "features.less.size: [[]32, 32], but *was made with [[]64, 64]*"),
        ("features__less__mirror", True, "features.less.mirror: True, but the fit 'of-lite' was made with None*"),
    ],
)  # fmt: skip
def test_what_cannot_be_joined_or_fitted_on_is_refused_in_a_sentence(path, value, sentence):
    with pytest.raises(StudyError) as refused:
        load(config_with(**{path: value}))
    assert any(fnmatchcase(line, f"*{sentence}") for line in str(refused.value).split("\n")), refused.value


def test_images_of_another_size_than_the_public_ones_are_resized_by_the_network_alone():
    cells = [{"datasets": ["digits"], "features": ["less"]}]
    load(config_with(public__glyphs__size=[20, 20], cells=cells))
    native = {"features__lite__size": "native", "features__less__size": "native"}
    with pytest.raises(StudyError, match=r"features\.less\.fit: the images .* of the public set 'glyphs' are 20 x 20"):
        load(config_with(public__glyphs__size=[20, 20], cells=cells, **native))


def test_the_order_of_feature_sets_does_not_matter():
    """Names are replaced before what a fit was made of is compared; a seed is the network's own, not the fit's."""
    config = config_with()
    drawn = {"extractor": "timm", "model": "resnet18", "weights": "random", "seed": 5, "size": [32, 32]}
    first = {"extractor": "joined", "parts": ["pixels", "drawn"], "fit": "of-both"}
    config["features"] = {
        "first": first,
        "of": dict(JOINED, parts=["pixels", "drawn"]),
        **config["features"],
        "drawn": drawn,
    }
    config["fits"]["of-both"] = {"public": "glyphs", "features": "of", "dim": 4}
    config["cells"] = [{"datasets": ["digits"], "features": ["first", "less"]}]
    study = load(config)
    assert study["features"]["first"]["parts"][1]["seed"] == 5
    told = fit_options(study, "of-both")
    assert (told["seed"], told["features"]["parts"][1]["seed"]) == (0, 5)
    reversed_too = config | {"features": dict(reversed(config["features"].items()))}
    assert load(reversed_too)["features"] == study["features"]
