"""Calibrated scores: every kind of model has them, files keep them, and damaged ones are refused."""

import json

import numpy as np
import pytest

from dpstudy.core.errors import StudyError
from dpstudy.core.files import read_tensor_metadata, read_tensors, write_tensors
from dpstudy.models.kernel_density import KernelModel
from dpstudy.models.kinds import load_model
from dpstudy.models.linear import LinearModel
from dpstudy.models.network import NetworkModel
from dpstudy.models.networks import build
from dpstudy.models.probabilities import (
    NOISE,
    OFFSETS,
    SHARES,
    SLOPE,
    calibrated,
    calibration_of,
    probabilities,
    where_shares_are,
)
from dpstudy.models.random_features import FeatureMap, RandomFeatureModel, draw_frequencies

SHARED = np.array([0.5, 0.3, 0.2])


def models():
    random = np.random.default_rng(0)
    weights = random.standard_normal((3, 4)).astype(np.float32)
    yield LinearModel(weights, np.ones(3, np.float32), center=np.ones(4, np.float32))
    yield LinearModel(weights, np.ones(3, np.float32), unit=True)
    mapping = FeatureMap(draw_frequencies(5, 4, 0.5, 1), None, "softmax", None)
    yield RandomFeatureModel(mapping, random.standard_normal((3, 10)).astype(np.float32))
    points = random.standard_normal((6, 4)).astype(np.float32)
    yield KernelModel(np.eye(4, dtype=np.float32), points, np.ones(6, np.float32), np.arange(6, dtype=np.int32) % 3, 3)
    state = {name: value.numpy() for name, value in build("wrn-10-1", (3, 8, 8), 3).state_dict().items()}
    yield NetworkModel("wrn-10-1", (3, 8, 8), 3, state)


@pytest.mark.parametrize("model", list(models()), ids=lambda model: type(model).__name__)
def test_every_kind_of_model_has_them_and_its_file_too(model, tmp_path):
    features = np.random.default_rng(1).standard_normal((7, model.inputs)).astype(np.float32)
    offsets = np.array([0.5, -1.0, 0.0])
    found = calibrated(model, 2.5, offsets, SHARED, 0.01)
    expected = 2.5 * model.scores(features).astype(float) + offsets
    np.testing.assert_allclose(found.scores(features), expected, rtol=1e-6, atol=1e-6)
    found.save(tmp_path / "model.safetensors")
    again = load_model(tmp_path / "model.safetensors")
    np.testing.assert_array_equal(again.scores(features), found.scores(features))
    assert calibration_of(again) == {
        "slope": 2.5,
        "offsets": [0.5, -1.0, 0.0],
        "shares": [0.5, 0.3, 0.2],
        "noise": 0.01,
    }
    assert calibration_of(model) is None


@pytest.mark.parametrize(
    "damage",
    [
        {SLOPE: "0"},
        {SLOPE: "nan"},
        {SLOPE: "x"},
        {OFFSETS: "[1, 2]"},
        {OFFSETS: "{}"},
        {OFFSETS: "[1, 2, null]"},
        {SHARES: "[0.5, 0.5]"},
        {SHARES: "[0, 0.5, 0.5]"},
        {NOISE: "-1"},
    ],
)
@pytest.mark.parametrize("model", list(models()), ids=lambda model: type(model).__name__)
def test_a_damaged_calibration_is_one_sentence(model, damage, tmp_path):
    path = tmp_path / "model.safetensors"
    calibrated(model, 2.5, np.zeros(3), SHARED, 0.01).save(path)
    write_tensors(path, read_tensors(path), read_tensor_metadata(path) | damage)
    with pytest.raises(
        StudyError, match="its calibration is no slope above 0 with an offset and a share for each of 3 classes"
    ):
        load_model(path)
    kept = {key: value for key, value in read_tensor_metadata(path).items() if key != next(iter(damage))}
    write_tensors(path, read_tensors(path), kept)
    with pytest.raises(StudyError, match="its calibration is no slope"):
        load_model(path)


def test_probabilities_are_the_softmax_or_each_label_s_sigmoid():
    scores = np.array([[1.0, 2.0, -900.0], [800.0, 0.0, 0.0]])
    p = probabilities(scores, several=False)
    np.testing.assert_allclose(p.sum(1), 1)
    np.testing.assert_allclose(p[0, :2], [1 / (1 + np.e), np.e / (1 + np.e)])
    np.testing.assert_allclose(probabilities(scores, several=True)[0], [1 / (1 + np.exp(-1)), 1 / (1 + np.exp(-2)), 0])


def test_metadata_are_plain_json():
    model = calibrated(next(models()), np.float32(0.1), np.zeros(3, np.float32), SHARED, 0.0)
    assert json.loads(model.metadata[OFFSETS]) == [0, 0, 0] and float(model.metadata[SLOPE]) == pytest.approx(0.1)


@pytest.mark.parametrize("several", [False, True])
def test_where_classes_are_as_common_as_elsewhere_bayes_rule_is_kept(several):
    """Of made-up records with known densities: probabilities by Bayes' rule with the new shares."""
    random = np.random.default_rng(2)
    likelihoods = random.random((50, 3)) + 0.1
    new = np.array([0.1, 0.6, 0.3])
    if several:  # each label against its absence
        absent = random.random((50, 3)) + 0.1
        scores = np.log(SHARED * likelihoods) - np.log((1 - SHARED) * absent)
        expected = new * likelihoods / (new * likelihoods + (1 - new) * absent)
    else:
        scores = np.log(SHARED * likelihoods)
        expected = new * likelihoods / (new * likelihoods).sum(1, keepdims=True)
    told = dict(enumerate(new)) if several else {0: 0.1, 1: 0.6}
    found = probabilities(where_shares_are(scores, SHARED, told, several), several)
    np.testing.assert_allclose(found, expected)
    same = probabilities(where_shares_are(scores, SHARED, {1: 0.3}, several), several)
    np.testing.assert_allclose(same, probabilities(scores, several))


def test_shares_that_cannot_be_are_refused():
    for others, several in (
        ({0: 1.0}, False),
        ({0: 0.0}, True),
        ({0: 0.7, 1: 0.4}, False),
        ({0: 0.2, 1: 0.2, 2: 0.2}, False),
    ):
        with pytest.raises(StudyError, match=r"a share is a number between 0 and 1|add up to 1"):
            where_shares_are(np.zeros((1, 3)), SHARED, others, several)
    where_shares_are(np.zeros((1, 3)), SHARED, {0: 0.7, 1: 0.7}, several=True)


@pytest.mark.parametrize("several", [False, True])
def test_what_noise_hides_is_not_corrected(several):
    where_shares_are(np.zeros((1, 3)), SHARED, {2: 0.1}, several, noise=0.06)
    with pytest.raises(StudyError, match="noise hides how common the classes were in training"):
        where_shares_are(np.zeros((1, 3)), SHARED, {2: 0.1}, several, noise=0.07)
    few = np.array([0.96, 0.02, 0.02])
    if not several:  # nor where it hides all others
        with pytest.raises(StudyError, match="noise hides"):
            where_shares_are(np.zeros((1, 3)), few, {0: 0.5}, several, noise=0.02)
