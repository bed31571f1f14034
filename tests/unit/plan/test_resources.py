"""Memory that jobs declare grows with what they hold; python -m benchmarks memory holds it against what they take."""

import pytest

from dpstudy.plan import resources
from tests.unit.plan.conftest import Files, Names, study_with

pytestmark = pytest.mark.usefixtures("no_gpu")
CELL = {"dataset": "own", "features": "pixels", "entry": "ls", "epsilon": "1"}


def test_least_squares_grows_with_the_square_of_the_features(study, manifest):
    small, large = (
        resources.solving(study, Names(CELL), Files(train=[manifest(dim=dim)], size_mb=1.0, size_files_mb=[1.0]))
        for dim in (100, 4000)
    )
    assert large - small == pytest.approx(48e-6 * (4000**2 - 100**2), abs=1)


def test_what_jobs_of_the_papers_took_is_asked_for(manifest):
    """Peaks of mehta2023-imagenet and tramer2021-cifar10-small, which a cluster would have killed."""
    wide = manifest(dim=1280, classes=[str(label) for label in range(100)])
    one = Files(train=[wide], size_mb=662.0, size_files_mb=[662.0])
    two = Files(train=[wide], size_mb=1324.0, size_files_mb=[662.0, 662.0])
    study = study_with()
    assert 1629 < resources.solving(study, Names(CELL), one) < 1.2 * 1629  # a search, by class Grams
    assert 2126 < resources.solving(study, Names(CELL), two) < 1.2 * 2126
    half = study_with(features__pixels__dtype="float16", methods__sgd__batch_size=1638)
    maps = Files(train=[manifest(dim=15_552)], size_mb=593.0, size_files_mb=[150.0])
    took = 3638
    assert took < resources.stepped(half, Names(CELL, entry="sgd"), maps) < 1.2 * took


def test_replays_hold_matrices_of_features_for_those_methods_that_do(manifest):
    wide = Files(layouts=[manifest(dim=15_552)], size_mb=0.0)
    descents = study_with(cells=[{"entries": ["sgd", "net"]}], methods__ls=None, methods__smoothing=None)
    assert resources.certification(descents, Names(dataset="own"), wide) == 2500  # tramer2021-cifar10-small took 896
    solved = resources.certification(study_with(), Names(dataset="own"), wide)
    assert solved == int(2500 + 72e-6 * 15_552**2)


def test_each_seed_scores_the_test_records(study, manifest):
    files = Files(test=[manifest(rows=1_000_000)], size_mb=0.0)
    alone, both = (
        resources.with_scores(resources.by_size(0, 1), seeds)(study, Names(CELL), files) for seeds in (1, None)
    )
    assert (alone, both) == (26, 52)


def test_manifests_that_are_still_to_be_made_or_damaged_raise_nothing(tmp_path):
    (tmp_path / "damaged.json").write_text("{")
    assert resources.matrix_of(str(tmp_path / "damaged.json")) == (0, 0)
    with pytest.raises(FileNotFoundError):  # Snakemake asks again when the file is made
        resources.matrix_of(str(tmp_path / "absent.json"))


@pytest.mark.parametrize(
    ("options", "sampled"),
    [
        ({"method": "first_order", "batch_size": "full"}, False),
        ({"method": "first_order", "batch_size": 10}, True),
        ({"method": "first_order", "tuning": {"space": {"batch_size": {"values": [1, 2]}}}}, True),
        ({"method": "instance_smoothing", "batch_size": 10}, False),
    ],
)
def test_accountants_of_samples_take_memory_where_there_are_samples(options, sampled):
    assert resources.is_sampled(options) == sampled


def test_processes_of_a_seed_each_take_memory(study, manifest):
    net = study_with(methods__net__devices=2)
    names = Names(CELL, features="images", entry="net", seed="0")
    one, two = (
        resources.seed(which, names, Files(train=[manifest()], test=[manifest()], size_mb=1.0, size_files_mb=[1.0]))
        for which in (study, net)
    )
    assert two > 1.5 * one
