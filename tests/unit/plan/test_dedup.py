"""Every private image is compared with every public set, and what a program drew with nothing."""

from dpstudy.plan import dedup
from tests.unit.plan.conftest import study_with

SCENES = {"reader": "dead_leaves", "count": 10, "shards": 1}


def test_all_splits_of_all_private_images_are_compared(study):
    more = study_with(
        datasets__other={"reader": "digits", "splits": {"test": 0.2}, "delta": "1e-4", "shards": 1},
        datasets__features={"reader": "labels", "location": "f", "splits": {"test": 0.2}, "delta": "1e-4", "shards": 1},
        cells=[{"datasets": ["own"]}],
    )
    assert dedup.private_images(more) == ["own", "other"], "brought features have no images"
    shards = dedup.all_private_shards(more)
    assert [one[0] for one in shards] == [
        *(f"own/{split}/{shard:05d}" for split in ("train", "validation", "test") for shard in range(2)),
        *(f"other/{split}/00000" for split in ("train", "test")),
    ]
    assert [one[3] for one in shards] == dedup.all_private_descriptions(more)
    assert {(one[0], one[1]) for one in dedup.private_folders(more)} >= {("own", "test"), ("other", "train")}


def test_what_a_program_drew_has_no_copies_unless_some_are_planted():
    study = study_with(public__drawn=SCENES)
    assert dedup.is_drawn(study, "drawn") and dedup.is_drawn(study, "web")
    assert dedup.copies_files(study, "drawn") == [] and dedup.calibrations(study, "drawn") == []
    planted = study_with(public__drawn=SCENES | {"plant": {"dataset": "own", "split": "test", "count": 1}})
    assert not dedup.is_drawn(planted, "drawn")
    assert len(dedup.copies_files(planted, "drawn")) == 6 and len(dedup.calibrations(planted, "drawn")) == 1


def test_photographs_are_searched_shard_by_shard():
    study = study_with(public__photos={"reader": "imagenet", "location": "imagenet", "shards": 3})
    assert len(dedup.candidate_files(study, "photos")) == 3 and len(dedup.public_shards(study, "photos")) == 3
    folder, number, path = dedup.described_shard(study, "photos", "train", "00002")
    assert (folder, number) == ("results/data/photos/train", 2) and path.endswith(
        "/photos/train/part-00002.safetensors"
    )
    assert dedup.basis_files(study, "photos") == dedup.descriptions(study, "photos")
    assert {"results/data/photos/train/manifest.json", "results/data/own/test/part-00001.parquet"} <= {
        *dedup.compared_files(study, "photos")
    }


def test_an_embedding_of_the_users_brings_its_network(study):
    assert dedup.embedding_options(study) is None and dedup.embedding_files(study) == []
    assert dedup.embedding_modules(study) == ["dpstudy.features.scatternet"]
    own = study_with(dedup={"embedding": "cnn"})
    assert dedup.embedding_modules(own) == ["dpstudy.features.backbone"]
    assert dedup.embedding_files(own)[0] == "results/backbones/cnn/model.safetensors"


def test_templates_of_the_first_training_shard():
    from dpstudy.plan import paths

    shard = dedup.first_of_training(paths.DATA_SHARD, "{dataset}")
    assert shard == "results/data/{dataset}/train/part-00000.parquet"
