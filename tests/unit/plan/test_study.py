"""The study of a run: its config, and that what it names is there."""

import os

import pytest

from dpstudy.core.errors import StudyError
from dpstudy.plan.study import load_study, used
from tests.unit.plan.conftest import BASE, study_with

DIGITS = BASE | {
    "datasets": {"own": {"reader": "digits", "splits": {"test": 0.2}, "delta": "1e-4"}},
    "public": {"web": {"reader": "glyphs", "count": 100}},
}


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def test_missing_data_are_named(tmp_path):
    with pytest.raises(StudyError, match="datasets.own"):
        load_study(BASE | {"data_root": str(tmp_path / "nowhere")})


def test_what_a_confidential_study_makes_is_its_owners():
    umask = os.umask(0o022)
    try:
        for folder in ("results", ".snakemake", "results/records"):
            os.mkdir(folder, 0o755)
        load_study(DIGITS)
        assert os.stat("results").st_mode & 0o077, "of public data nothing is closed"
        assert load_study(DIGITS | {"noise": "secure"})["noise"] == "secure"
        for folder in ("results", ".snakemake", "results/records"):
            assert os.stat(folder).st_mode & 0o077 == 0, folder
        os.mkdir("results/later")
        assert os.stat("results/later").st_mode & 0o077 == 0, "nor is what is made from now on for others"
    finally:
        os.umask(umask)


def test_a_switch_of_the_gpu_that_is_none_is_named(monkeypatch):
    from dpstudy.plan import resources

    resources.gpus.cache_clear()
    monkeypatch.setenv("DPSTUDY_GPU", "yes")
    with pytest.raises(StudyError, match="DPSTUDY_GPU"):
        load_study(DIGITS)
    resources.gpus.cache_clear()


def test_a_part_needs_what_its_cells_are_made_of_and_no_more(tmp_path):
    (tmp_path / "here").mkdir()
    folder = {"reader": "image_folder", "splits": {"test": 0.2}, "delta": "1e-4", "classes": ["a", "b"]}
    sets = {"own": folder | {"location": "here"}, "other": folder | {"location": "gone"}}
    brought = {"extractor": "precomputed", "location": "gone-too"}
    groups = [{"dataset": "own", "features": "pixels"}, {"dataset": "other", "features": "brought"}]
    table = {"style": "grouped", "groups": groups, "rows": [{"entry": "ls"}]}
    study = {"study": "part", "data_root": str(tmp_path), "epsilons": ["1"], "seeds": [0]}
    study |= {"datasets": sets, "features": {"pixels": {"extractor": "pixels"}, "brought": brought}}
    study |= {"methods": {"ls": {"method": "least_squares"}}}
    study |= {"tables": {"own": table | {"dataset": "own"}, "both": table | {"datasets": ["own", "other"]}}}
    part = load_study(study | {"only": "own"})
    assert used(part) == {"datasets": {"own"}, "public": set(), "features": {"pixels"}, "methods": {"ls"}}
    for whole in (study, study | {"only": "both"}):
        with pytest.raises(StudyError, match=r"gone does not exist.*Nor are there: .*gone"):
            load_study(whole)


def test_a_public_set_is_compared_with_every_private_one(study):
    more = study_with(features__brought={"extractor": "pixels", "fit": "pca"})
    more["datasets"]["unread"] = more["datasets"]["own"]
    more["cells"] = [{"datasets": ["own"], "features": ["pixels"]}]
    assert used(more)["datasets"] == {"own"} and used(more)["public"] == set()
    more["cells"] = [{"datasets": ["own"], "features": ["brought"]}]
    assert used(more)["datasets"] == {"own", "unread"} and used(more)["public"] == {"web"}
