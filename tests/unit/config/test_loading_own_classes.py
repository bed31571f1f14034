"""Classes of private folders are named by the config where a model may be released."""

import pytest

from dpstudy.config.loading import load
from dpstudy.core.errors import StudyError

FOLDER = {"reader": "image_folder", "location": "own", "splits": {"test": 0.2}, "delta": "1e-5"}


def study(**changes):
    return {
        "study": "own", "datasets": {"own": FOLDER | changes}, "features": {"pixels": {"extractor": "pixels"}},
        "methods": {"ls": {"method": "least_squares"}}, "epsilons": ["1"], "seeds": [0], "noise": "secure",
    }  # fmt: skip


def test_names_that_would_be_read_off_private_folders_are_asked_for():
    with pytest.raises(StudyError) as refused:
        load(study())
    assert str(refused.value) == (
        "datasets.own: the key 'classes' is missing; name the classes, in label order: read off the folders, they "
        "would depend on private records"
    )
    load(study(classes=["ill", "well"]))
    load(study() | {"noise": "seeded"})  # which is not for release
    public = {"reader": "image_folder", "location": "web"}
    load(study(classes=["ill", "well"]) | {"public": {"web": public}})


@pytest.mark.parametrize(
    "reader", ["imagenet", "places365", "idx", "cifar", "nih", "chexpert", "imagenet32", "mosaics"]
)
def test_whoever_draws_secure_noise_says_whether_files_in_a_benchmarks_format_are_their_own(reader):
    """Where nothing was said the scores of a hospital's test records passed for public ones."""
    data = {"reader": reader, "location": "own", "splits": {"test": 0.2}, "delta": "1e-5"}
    data |= {"size": [32, 32]} if reader in ("imagenet", "places365", "nih", "chexpert") else {}
    data |= {"classes": ["ill", "well"]} if reader not in ("nih", "chexpert") else {}
    with pytest.raises(StudyError, match=rf"^datasets.own: the key 'test_split' is missing; .* {reader!r} finds"):
        load(study() | {"datasets": {"own": data}})
    load(study() | {"datasets": {"own": data}, "noise": "seeded"})
    for said in ("public", "private"):
        load(study() | {"datasets": {"own": data | {"test_split": said}}})


def test_class_names_are_not_read_off_imagenets_folders_either():
    data = {"reader": "imagenet", "location": "own", "size": [32, 32], "splits": {"test": 0.2}, "delta": "1e-5"}
    with pytest.raises(StudyError, match="the key 'classes' is missing; name the classes"):
        load(study() | {"datasets": {"own": data | {"test_split": "private"}}})


def test_a_budget_in_words_is_told_how_it_is_written():
    with pytest.raises(StudyError, match=r"^release.budget: 'ten' must be a number in quotes, such as \"10\"$"):
        load(study(classes=["ill", "well"]) | {"release": {"budget": "ten"}})


def test_a_budget_is_refused_beside_a_search_that_it_cannot_count():
    methods = {"sgd": {
        "method": "first_order", "clipping_norm": 1.0, "batch_size": 10, "epochs": 1,
        "tuning": {"trials": 5, "space": {"learning_rate": {"low": 0.1, "high": 1.0}}, "sampler": "random"},
    }}  # fmt: skip
    searched = study(classes=["ill", "well"], splits={"test": 0.2, "validation": 0.1})
    searched |= {"methods": methods, "release": {"budget": "2"}}
    with pytest.raises(StudyError, match=r"^release.budget: the search of methods.sgd is not paid for"):
        load(searched)
    load(searched | {"noise": "seeded"})
    methods["sgd"]["tuning"] |= {"pay": "repeats"}
    load(searched)
