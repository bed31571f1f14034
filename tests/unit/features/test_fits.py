"""Public projections against a float64 eigendecomposition, what they depend on, and what they refuse."""

import json
from dataclasses import replace
from hashlib import sha256

import numpy as np
import pyarrow as pa
import pytest

from dpstudy.core.errors import StudyError
from dpstudy.core.files import read_tensors, write_table
from dpstudy.features import shards as feature_shards
from dpstudy.features.extract import extract_shard
from dpstudy.features.fits import _channel_statistics, fit_projection
from dpstudy.features.projection import Projection

OPTIONS = {
    "kind": "pca", "public": "letters", "extractor": "pixels", "scaling": "unit", "dim": 6, "images": 10_000,
    "standardise": False, "whiten": 0.0, "seed": 0, "points": 50,
}  # fmt: skip
FILES = ("projection", "card", "points")
PIXELS = {"extractor": "pixels", "scaling": "unit", "fit": "pca"}


@pytest.fixture
def letters(make_records):
    return make_records(200, shape=(5, 4, 1), seed=3)


@pytest.fixture
def public(letters, make_folder):
    return make_folder(letters, "letters", count=3, private=False).parent


def fitted(public, folder, kept=None, **options):
    files = {name: folder / f"{name}.{'json' if name == 'card' else 'safetensors'}" for name in FILES}
    fit_projection("pca", OPTIONS | options, public, files, kept=kept, drop="private")
    return Projection(folder)


def pixels(records):
    return records.images.reshape(len(records), -1).astype(np.float64) / 255


def decomposed(x):
    """All eigenvalues of the covariance, falling, and their vectors as columns."""
    values, vectors = np.linalg.eigh(np.cov(x.T))
    return values[::-1], vectors[:, ::-1]


def kept_rows(path, *rows):
    write_table(path, pa.table(dict(zip(("dataset", "split", "id"), zip(*rows, strict=True), strict=True))))
    return path


def extracted(folder, out, options, fit):
    """The features of a private split of one shard."""
    path = out / "part-00000.parquet"
    extract_shard(options, folder, 0, path, fit_folder=fit)
    feature_shards.write_manifest(
        out / "manifest.json", dataset="scans", features="f", split="train", shard_paths=[path],
        classes=["a", "b", "c"], private=True,
    )  # fmt: skip
    return feature_shards.load(out)


@pytest.mark.parametrize("whiten", [0.0, 0.5, 1.0])
def test_a_fit_equals_a_float64_eigendecomposition(public, letters, make_records, tmp_path, whiten):
    projection = fitted(public, tmp_path, whiten=whiten)
    x = pixels(letters)
    values, vectors = decomposed(x)
    other = pixels(make_records(9, shape=(5, 4, 1), seed=8))
    expected = (other - x.mean(0)) @ vectors[:, :6] * values[:6] ** (-whiten / 2)
    found = projection(other.astype(np.float32))
    assert np.abs(found) == pytest.approx(np.abs(expected), abs=2e-5 * np.abs(expected).max())
    if whiten == 1:
        assert np.cov(projection(x.astype(np.float32)).T) == pytest.approx(np.eye(6), abs=1e-4)


def test_a_wide_fit_by_random_projections_is_as_good_and_repeats(letters, make_folder, tmp_path, monkeypatch):
    monkeypatch.setattr("dpstudy.features.fits._EXACT", 0)
    random = np.random.default_rng(1)
    rotation = np.linalg.qr(random.normal(size=(20, 20)))[0]
    grey = (
        128 + 60 * (random.normal(size=(200, 20)) * 0.7 ** np.arange(20)) @ rotation
    )  # eigenvalues fall, as images' do
    letters = replace(letters, images=grey.clip(0, 255).astype(np.uint8).reshape(200, 5, 4, 1))
    public = make_folder(letters, "letters", private=False).parent
    projection = fitted(public, tmp_path / "a")
    x = pixels(letters)
    values, vectors = decomposed(x)
    expected = np.abs((x - x.mean(0)) @ vectors[:, :6])
    assert np.abs(projection(x.astype(np.float32))) == pytest.approx(expected, abs=1e-3)
    tensors = read_tensors(tmp_path / "a/projection.safetensors")
    assert tensors["eigenvalues"] == pytest.approx(values[:6], rel=1e-4)
    assert (np.abs(tensors["components"]).max(1) == tensors["components"].max(1)).all()  # the sign is fixed
    fitted(public, tmp_path / "b")
    first, second = ((tmp_path / name / "projection.safetensors").read_bytes() for name in "ab")
    assert first == second
    with pytest.raises(StudyError, match="span 9 dimensions only"):
        fitted(public, tmp_path / "c", dim=10, images=10)


def test_a_fit_repeats_and_its_card_says_what_it_is(public, letters, tmp_path):
    first, second = tmp_path / "a", tmp_path / "b"
    fitted(public, first, images=120)
    fitted(public, second, images=120)
    for name in ("projection.safetensors", "card.json", "points.safetensors"):
        assert (first / name).read_bytes() == (second / name).read_bytes()
    order = np.argsort([sha256(f"0\0{name}".encode()).digest() for name in letters.ids])
    x = pixels(letters)[order[:120]]
    values, vectors = decomposed(x)
    norms = np.linalg.norm((x - x.mean(0)) @ vectors[:, :6], axis=1)
    card = json.loads((first / "card.json").read_text())
    assert (card["fit"], card["images"], card["features"]) == ("pca", 120, 20)
    assert card["options"] == OPTIONS | {"images": 120}
    points = read_tensors(first / "points.safetensors")["points"]
    assert points == pytest.approx(Projection(first)(x[:50].astype(np.float32)), abs=1e-4)
    assert card["explained_variance"] == pytest.approx(values[:6].sum() / values.sum(), rel=1e-5)
    assert list(card["norm_quantiles"]) == ["0.1", "0.5", "0.9"]
    assert list(card["norm_quantiles"].values()) == pytest.approx(np.quantile(norms, [0.1, 0.5, 0.9]), rel=1e-5)
    assert (tmp_path / "a/projection.safetensors").stat().st_mode & 0o044  # public facts: anybody may read them
    fitted(public, tmp_path / "c", images=120, seed=1)
    assert (tmp_path / "c/projection.safetensors").read_bytes() != (first / "projection.safetensors").read_bytes()


def test_rows_that_deduplication_dropped_are_not_fitted_on_and_private_ones_change_nothing(public, letters, tmp_path):
    rows = [("letters", "train", str(name)) for name in letters.ids[:150]]
    written = []
    for number, mine in enumerate(([("scans", "train", "p1"), ("scans", "train", "p2")], [("scans", "train", "p1")])):
        folder = tmp_path / str(number)
        projection = fitted(public, folder, kept=kept_rows(tmp_path / "kept.parquet", *rows, *mine))
        written.append([(folder / name).read_bytes() for name in ("projection.safetensors", "card.json")])
    assert projection.card["images"] == 150
    assert read_tensors(folder / "projection.safetensors")["mean"] == pytest.approx(pixels(letters)[:150].mean(0))
    assert written[0] == written[1]


def test_a_standardising_fit_equals_a_slow_computation(public, letters, make_records, tmp_path):
    """Pixels of grey images are one channel; its public moments come first, then unit norms, then the components."""
    projection = fitted(public, tmp_path, standardise=True, whiten=0.5)

    def standard(x):
        rows = [(row - pixels(letters).mean()) / pixels(letters).std() for row in x]
        return np.array([row / np.sqrt(sum(value**2 for value in row)) for row in rows])

    x = standard(pixels(letters))
    other = pixels(make_records(50, shape=(5, 4, 1), seed=4))
    values, vectors = decomposed(x)
    expected = (standard(other) - x.mean(0)) @ vectors[:, :6] * values[:6] ** -0.25
    found = projection(other.astype(np.float32))
    assert np.abs(found) == pytest.approx(np.abs(expected), rel=1e-3, abs=1e-4)
    assert np.abs(found - fitted(public, tmp_path / "plain", whiten=0.5)(other.astype(np.float32))).max() > 0.1


def test_each_channel_has_its_own_statistics():
    features = np.random.default_rng(0).normal([5, 5, -1, -1], [2, 2, 0.1, 0.1], (4000, 4)).astype(np.float32)
    found = _channel_statistics(features, 2)
    assert found["center"] == pytest.approx([5, 5, -1, -1], abs=0.1)
    assert 1 / found["scale"] == pytest.approx([2, 2, 0.1, 0.1], rel=0.05)
    features[:, 2:] = 7
    with pytest.raises(StudyError, match="feature channel 1 is the same in all public images"):
        _channel_statistics(features, 2)


@pytest.mark.parametrize("rule", ["none", "l2", {"group_norm": 2}])
def test_features_are_projected_before_they_are_normalised(public, make_records, make_folder, tmp_path, rule):
    projection = fitted(public, tmp_path / "fit", whiten=1.0)
    records = make_records(30, shape=(5, 4, 1), seed=5)
    table = extracted(make_folder(records, "scans"), tmp_path / "out", PIXELS | {"normalise": rule}, tmp_path / "fit")
    expected = projection(pixels(records).astype(np.float32)).astype(np.float64)
    if rule == "l2":
        expected /= np.linalg.norm(expected, axis=1, keepdims=True)
    elif rule != "none":
        groups = expected.reshape(30, 2, 3)
        groups = groups - groups.mean(2, keepdims=True)
        expected = (groups / np.sqrt((groups**2).mean(2, keepdims=True) + 1e-5)).reshape(30, 6)
    assert table.shape == (6,)
    assert table.features == pytest.approx(expected, abs=1e-5)


def test_a_projection_is_applied_batch_by_batch(public, make_records, make_folder, tmp_path, monkeypatch):
    fitted(public, tmp_path / "fit")
    folder = make_folder(make_records(30, shape=(5, 4, 1), seed=5), "scans")
    whole = extracted(folder, tmp_path / "whole", PIXELS, tmp_path / "fit").features
    sizes, project = [], Projection.__call__
    monkeypatch.setattr("dpstudy.features.extract._BATCH", 7)
    monkeypatch.setattr(Projection, "__call__", lambda self, x: sizes.append(len(x)) or project(self, x))
    parts = extracted(folder, tmp_path / "parts", PIXELS, tmp_path / "fit").features
    assert sizes == [7, 7, 7, 7, 2]
    np.testing.assert_allclose(parts, whole, rtol=1e-5, atol=1e-6)


def test_what_a_fit_refuses(public, make_records, make_folder, tmp_path):
    with pytest.raises(StudyError, match="fits.pca.dim: 21 components of 20 features from 200 public .* at most 20"):
        fitted(public, tmp_path, dim=21)
    with pytest.raises(StudyError, match="at most 10 can be told apart"):
        fitted(public, tmp_path, dim=11, images=10)
    with pytest.raises(StudyError, match="span 9 dimensions only"):
        fitted(public, tmp_path, dim=10, images=10)
    with pytest.raises(StudyError, match="no public image is left to fit on"):
        fitted(public, tmp_path, kept=kept_rows(tmp_path / "kept.parquet", ("scans", "train", "p1")))
    assert not list(tmp_path.glob("*.safetensors"))


def test_a_fit_refuses_images_of_another_size_and_damaged_files(public, make_records, make_folder, tmp_path):
    fit, out = tmp_path / "fit", tmp_path / "out.parquet"
    fitted(public, fit)
    large = make_folder(make_records(4, shape=(6, 6, 1)), "large")
    with pytest.raises(StudyError, match="takes 20 features a record, these images give 36"):
        extract_shard(PIXELS, large, 0, out, fit_folder=fit)
    path = fit / "projection.safetensors"
    path.write_bytes(path.read_bytes()[:-1] + b"\1")
    with pytest.raises(StudyError, match="projection.safetensors"):
        Projection(fit)
    assert not out.exists()
