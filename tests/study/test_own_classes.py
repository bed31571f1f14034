"""Classes of private folders are named by the config where a model may be released."""

import pytest

from dpstudy.errors import StudyError
from dpstudy.study.config import load

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
