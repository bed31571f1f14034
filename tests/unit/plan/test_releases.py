"""What a bundle says of the public data behind its features."""

from dpstudy.config.cells import Cell
from dpstudy.plan import releases
from tests.unit.plan.conftest import study_with

LS, CNN = Cell("own", "pixels", "ls", "1"), Cell("own", "cnn", "ls", "1")


def test_what_was_not_compared_or_chosen_or_planted_is_named():
    plain = releases.facts(study_with(), CNN)
    assert (plain["unmatched"], plain["chosen"], plain["planted"]) == ([], [], [])
    assert plain["backbone"] == "results/backbones/cnn" and plain["fit"] is None
    assert releases.facts(study_with(public__web__matched=False), CNN)["unmatched"] == ["web"]
    assert releases.facts(study_with(dedup={"drop": "public"}), CNN)["chosen"] == ["web"]
    planted = study_with(public__web__plant={"dataset": "own", "split": "train", "count": 1})
    assert releases.facts(planted, CNN)["planted"] == ["web"]
    assert releases.facts(planted, LS)["planted"] == [], "pixels have seen no public set"


def test_a_bundle_decodes_images_as_the_reader_did():
    assert releases.facts(study_with(), LS)["image"] == {"crop": False}
    own = {"reader": "image_folder", "location": "own", "resize": "crop", "frame": 0, "delta": "1e-5"}
    assert releases.facts(study_with(datasets__own=own), LS)["image"] == {"crop": True, "frame": 0}


def test_records_of_ones_own_in_files_may_be_dicom():
    own = {"reader": "image_folder", "location": "own", "delta": "1e-5"}
    assert releases.facts(study_with(datasets__own=own), LS)["may_be_dicom"] is True
    assert releases.facts(study_with(datasets__own=own | {"reader": "arrays"}), LS)["may_be_dicom"] is False
    assert releases.facts(study_with(), LS)["may_be_dicom"] is False


def test_whose_the_test_records_are_is_told():
    assert releases.facts(study_with(), LS)["test_public"] is True
    assert releases.facts(study_with(datasets__own__test_split="private"), LS)["test_public"] is False


def test_a_bundle_needs_its_own_cell_alone(study):
    cell = releases.certified_cell(study, CNN)
    assert cell["name"] == CNN.path and cell["stated"]["manifests"] == [], "what it learned from may be gone"
    assert cell["stated"]["dataset"]["delta"] == "1e-5"
    assert releases.feature_files(study, "pixels") == []
    assert releases.feature_files(study, "projected") == [
        f"results/fits/pca/{name}" for name in ("projection.safetensors", "card.json")
    ]
    assert releases.test_manifest(study, "own") == "results/data/own/test/manifest.json"
