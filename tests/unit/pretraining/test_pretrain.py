import json

import numpy as np
import pyarrow as pa
import pytest
import torch

from dpstudy.core.errors import StudyError
from dpstudy.core.files import read_tensors, write_table
from dpstudy.data.readers import open_reader
from dpstudy.features import open_extractor
from dpstudy.models import networks
from dpstudy.models.small_cnn import SmallCNN
from dpstudy.pretraining.pretrain import pretrain

TINY = {"public": "glyphs", "width": 8, "embedding": 16, "epochs": 2, "batch_size": 64, "learning_rate": 0.01}
WIDE = {"public": "glyphs", "architecture": "wrn-10-1", "epochs": 6, "batch_size": 64}


def run(public, out, options=TINY, **more):
    pretrain("tiny", options, public, out / "model.safetensors", out / "card.json", **more)
    return json.loads((out / "card.json").read_text())


def test_a_rerun_writes_the_same_bytes_and_another_seed_does_not(public, tmp_path):
    torch.manual_seed(5)
    state = torch.get_rng_state()
    run(public, tmp_path / "one")
    assert torch.equal(torch.get_rng_state(), state)  # the caller's random numbers are left alone
    torch.manual_seed(6)
    run(public, tmp_path / "two")
    run(public, tmp_path / "three", TINY | {"seed": 1})
    one, two, three = ((tmp_path / name / "model.safetensors").read_bytes() for name in ("one", "two", "three"))
    assert one == two and one != three
    assert (tmp_path / "one" / "card.json").read_bytes() == (tmp_path / "two" / "card.json").read_bytes()


def test_it_learns_and_the_card_says_what_it_is(public, tmp_path):
    card = run(public, tmp_path, TINY | {"epochs": 15})
    assert card["validation_accuracy"] > 60  # chance is 10
    assert (card["rows_used"], card["public_rows"], card["validation_rows"]) == (400, 400, 100)
    assert card["image_shape"] == [8, 8, 1] and card["public"] == "glyphs" and card["options"]["width"] == 8


def test_features_are_centred_unit_embeddings_of_each_record_alone(public, tmp_path):
    run(public, tmp_path)
    extractor = open_extractor({"extractor": "backbone"}, tmp_path)
    images = open_reader("glyphs", {"count": 500}, ".").read("all", np.arange(400)).images
    features = extractor(images)
    assert extractor.shape((8, 8, 1)) == (16,) and features.shape == (400, 16)
    np.testing.assert_allclose(np.linalg.norm(features, axis=1), 1, rtol=1e-5)
    alone = np.concatenate([extractor(images[row : row + 1]) for row in range(9)])
    np.testing.assert_allclose(features[:9], alone, rtol=1e-5, atol=1e-6)

    network = SmallCNN(1, 10, 8, 16)
    tensors = read_tensors(tmp_path / "model.safetensors")
    network.load_state_dict({name: torch.from_numpy(value) for name, value in tensors.items()})
    with torch.no_grad():
        embedded = network.embed(torch.from_numpy(images / np.float32(255)).permute(0, 3, 1, 2)).numpy()
    centre = embedded.mean(axis=0)
    np.testing.assert_allclose(network.centre.numpy(), centre, rtol=1e-4, atol=1e-5)
    expected = (embedded - centre) / np.linalg.norm(embedded - centre, axis=1, keepdims=True)
    np.testing.assert_allclose(features, expected, rtol=1e-3, atol=1e-4)


def test_rows_that_were_dropped_are_not_trained_on(public, tmp_path):
    ids = [f"glyphs-{row:06d}" for row in range(500)]
    kept = {"dataset": ["glyphs"] * 480, "split": ["train"] * 390 + ["validation"] * 90, "id": ids[10:400] + ids[410:]}
    write_table(tmp_path / "kept.parquet", pa.table(kept))
    whole = run(public, tmp_path / "whole")
    settings = {"drop": "public", "method": "squares"}
    card = run(public, tmp_path / "less", kept=tmp_path / "kept.parquet", dedup=settings)
    assert (card["rows_used"], card["validation_rows"], card["dedup"]["drop"]) == (390, 90, "public")
    other = run(public, tmp_path / "else", kept=tmp_path / "kept.parquet", dedup=settings | {"threshold": 0.9})
    assert card["dedup"]["sha256"] != other["dedup"]["sha256"] and whole["dedup"] is None
    assert card["rows_sha256"] != whole["rows_sha256"] and card["sha256"] != whole["sha256"]
    # In the mode `private`, kept.parquet also lists private rows: they must change neither weights nor card.
    cards = []
    for mine in (["p1", "p2"], ["p1"]):
        lists = {"dataset": kept["dataset"] + ["own"] * len(mine), "split": kept["split"] + ["train"] * len(mine)}
        write_table(tmp_path / "kept.parquet", pa.table(lists | {"id": kept["id"] + mine}))
        cards.append(run(public, tmp_path / "free", kept=tmp_path / "kept.parquet", dedup={"drop": "private"}))
    assert cards[0] == cards[1]


def test_a_backbone_refuses_images_of_another_shape(public, tmp_path):
    run(public, tmp_path)
    with pytest.raises(StudyError, match="'tiny' was trained on"):
        open_extractor({"extractor": "backbone"}, tmp_path).shape((28, 28, 1))


def test_weights_that_do_not_fit_the_card_are_refused(public, tmp_path):
    card = run(public, tmp_path)
    card["options"]["width"] = 16
    (tmp_path / "card.json").write_text(json.dumps(card))
    with pytest.raises(StudyError, match="do not fit"):
        open_extractor({"extractor": "backbone"}, tmp_path)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (TINY | {"epoch": 3}, "'epoch'"),
        (TINY | {"objective": "contrast", "mixup": 0.1}, "mixup does not go with objective 'contrast'"),
        (TINY | {"augmentation": "contrast"}, "objective 'contrast' and augmentation 'contrast' go together"),
        (TINY | {"rand_augment": {"layers": 1, "magnitude": 9}}, "goes with augmentation 'inception' alone"),
        ({"public": "glyphs", "architecture": "timm:no_such_network"}, "'no_such_network' is not one of timm"),
        (WIDE | {"width": 3}, "unknown key 'width' of architecture 'wrn-10-1'"),
        (TINY | {"architecture": "big_cnn"}, "'big_cnn' does not exist"),
        (TINY | {"learning_rate": 1e30}, "diverged"),
    ],
)
def test_an_option_that_does_not_work_is_named_and_nothing_is_written(public, tmp_path, options, words):
    with pytest.raises(StudyError, match=words):
        run(public, tmp_path / "out", options)
    assert not (tmp_path / "out").exists() or not list((tmp_path / "out").iterdir())


def test_several_labels_a_record_are_refused(tmp_path, make_records, make_folder):
    folder = make_folder(make_records(8, multi_label=True), "many", private=False)
    with pytest.raises(StudyError, match="one label a record"):
        run(folder.parent, tmp_path)


def test_a_wide_resnet_learns_and_gives_what_its_classifier_sees(public, tmp_path):
    card = run(public, tmp_path, WIDE | {"augmentation": "warp", "epochs": 12})
    assert card["validation_accuracy"] > 40  # chance is 10
    extractor = open_extractor({"extractor": "backbone"}, tmp_path)
    images = open_reader("glyphs", {"count": 500}, ".").read("all", np.arange(20)).images
    assert extractor.shape((8, 8, 1)) == (64,) and extractor(images).shape == (20, 64)
    tensors = read_tensors(tmp_path / "model.safetensors")
    scores = extractor(images) @ tensors["8.weight"].T + tensors["8.bias"]
    network = networks.build("wrn-10-1", (1, 8, 8), 10)
    network.load_state_dict({name: torch.from_numpy(value) for name, value in tensors.items()})
    with torch.no_grad():
        whole = network(torch.from_numpy(images / np.float32(255)).permute(0, 3, 1, 2)).numpy()
    np.testing.assert_allclose(scores, whole, rtol=1e-3, atol=1e-4)
    weights = []
    for name in ("one", "two"):
        run(public, tmp_path / name, WIDE | {"epochs": 1})
        weights.append((tmp_path / name / "model.safetensors").read_bytes())
    assert weights[0] == weights[1]
