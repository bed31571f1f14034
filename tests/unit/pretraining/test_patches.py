"""Filters from public pictures: whitened, of norm 1, cut where pictures show something, and the same in each run."""

import json

import numpy as np
import pytest
import torch

from dpstudy.core.errors import StudyError
from dpstudy.core.files import read_tensors
from dpstudy.data.readers import open_reader
from dpstudy.features import open_extractor
from dpstudy.models.patches import Patches
from dpstudy.pretraining import patches
from dpstudy.pretraining.options import complete
from dpstudy.pretraining.pretrain import pretrain
from dpstudy.pretraining.rows import PublicRows
from tests.scenarios.data.test_alone import check_alone

OPTIONS = {"architecture": "patches", "public": "glyphs", "sizes": [3, 4], "filters": 12, "patches": 2000}


def run(public, out, options=OPTIONS, **more):
    pretrain("p", options, public, out / "model.safetensors", out / "card.json", **more)
    return json.loads((out / "card.json").read_text())


def test_public_patches_have_unit_covariance_behind_the_whitening_and_filters_norm_one(public):
    options = complete(OPTIONS | {"sizes": [3], "floor": 1e-6})
    rows = PublicRows(public / "train")
    network = patches.cut(rows, options, (8, 8), 1)
    drawn = np.random.default_rng(7)
    planes = torch.cat(list(patches._planes(rows, "unit", (8, 8))))
    found = patches._some(planes, 3, 40, drawn).double()
    mean, whitening = patches._whitening(found, 1e-6)
    behind = (found - mean) @ whitening
    values = torch.linalg.eigvalsh(behind.T @ behind / len(behind))
    assert values[1:] == pytest.approx(np.ones(8), abs=1e-3), "a patch's mean is gone: eight directions are left"
    filters, offsets = (values.double() for values in network.of_size(3))
    responses = filters @ found.T - offsets[:, None]
    assert responses.var(1) == pytest.approx(np.ones(12), rel=0.25), "of public patches, each filter's vary by one"
    assert responses.mean(1).abs().max() < 0.2


def test_a_filter_answers_most_to_the_patch_that_it_was(public):
    options = complete(OPTIONS | {"sizes": [4], "patches": 400, "filters": 30})
    rows = PublicRows(public / "train")
    network = patches.cut(rows, options, (8, 8), 1)
    drawn = np.random.default_rng([0, 0])
    found = torch.cat([patches._some(planes, 4, 1, drawn) for planes in patches._planes(rows, "unit", (8, 8))])
    own = found[torch.from_numpy(drawn.permutation(len(found))[:400])]
    filters, offsets = network.of_size(4)
    responses = filters @ own.T - offsets[:, None]
    mean, whitening = patches._whitening(own, options["floor"])
    lengths = ((own.double() - mean) @ whitening).norm(dim=1)
    for row, response in enumerate(responses[:, :400]):
        assert response[row] == pytest.approx(float(lengths[row]), rel=1e-4)
        assert (response.double() / lengths).argmax() == row


def test_what_shows_nothing_is_no_patch():
    planes = torch.zeros(3, 1, 9, 9)
    planes[2] = torch.rand(9, 9, generator=torch.Generator().manual_seed(1))
    found = patches._some(planes, 3, 50, np.random.default_rng(1))
    assert len(found) == 50 and found.mean(1).abs().max() < 1e-5 and found.var(1, correction=0).min() > 0.5


def test_the_files_make_an_extractor_whose_features_depend_on_a_record_alone(public, tmp_path):
    card = run(public, tmp_path / "one")
    assert run(public, tmp_path / "two") == card and card["validation_by"] == "20 nearest neighbours"
    assert card["validation_accuracy"] > 50, "chance is 10"
    again = [(tmp_path / name / "model.safetensors").read_bytes() for name in ("one", "two")]
    run(public, tmp_path / "three", OPTIONS | {"seed": 1})
    assert again[0] == again[1] != (tmp_path / "three/model.safetensors").read_bytes()
    extractor = open_extractor({"extractor": "backbone", "mirror": True}, tmp_path / "one")
    images = open_reader("glyphs", {"count": 500}, ".").read("all", np.arange(100)).images
    assert extractor.shape((8, 8, 1)) == (2 * 2 * 12 * 4,)
    check_alone(extractor, images)
    network = Patches(1, [3, 4], 12, 2)
    network.load_state_dict(
        {name: torch.from_numpy(value) for name, value in read_tensors(tmp_path / "one/model.safetensors").items()}
    )
    planes = torch.from_numpy(images / np.float32(255)).permute(0, 3, 1, 2)
    expected = (network(planes) + network(planes.flip(3))) / 2
    np.testing.assert_allclose(extractor(images), expected.numpy(), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"sizes": [9]}, "backbone 'p': sizes: patches of 9 pixels do not fit into pictures of 8x8"),
        ({"filters": 3000}, "backbone 'p': filters: 3000 of 1[0-9]{3} patches that show anything; ask for fewer"),
        ({"epochs": 3}, "unknown key 'epochs' of architecture 'patches'"),
    ],
)
def test_what_cannot_be_cut_is_one_sentence(public, tmp_path, change, sentence):
    with pytest.raises(StudyError, match=sentence):
        run(public, tmp_path, OPTIONS | change)
    assert not list(tmp_path.glob("*.*"))
