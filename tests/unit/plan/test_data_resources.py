"""Memory of jobs that make data sets, features and sums."""

import pytest

from dpstudy.plan import data_resources
from tests.unit.plan.conftest import Files, Names, study_with

pytestmark = pytest.mark.usefixtures("no_gpu")


def test_sums_of_each_class_and_exact_ones_take_more(study, manifest):
    files = Files(features=[manifest(dim=1000)], size_mb=1.0, size_files_mb=[1.0])
    secure = study_with(noise="secure", datasets__own__test_split="public")
    names = Names(dataset="own", features="pixels", split="train", grams="shared")
    shared, per_class = (
        data_resources.sums(study, Names(names, grams=kind), files) for kind in ("shared", "per-class")
    )
    assert per_class - shared == pytest.approx(10 + 2 * (4 + 1), abs=1)
    exact = data_resources.sums(secure, Names(names, grams="per-class"), files)
    assert exact - per_class == pytest.approx(2 * 4, abs=1), "of float64 instead of float32"


def test_what_jobs_of_the_papers_took_is_asked_for(manifest):
    """Peaks of mehta2023-imagenet and transfer-imagenet, which a cluster would have killed."""
    names = Names(dataset="own", features="pixels", split="train", grams="per-class")
    files = Files(features=[manifest(dim=1280, classes=[str(label) for label in range(100)])])
    files.size_mb, files.size_files_mb = 1.0, [1.0]
    assert 920 < data_resources.sums(study_with(), names, files) < 1.2 * 920
    options = {"extractor": "timm", "backend": "openvino", "normalise": None}
    assert 1631 < data_resources.extraction_mb(options, images=15.4, extracted=10.2, weights=24.0) < 1.2 * 1631


def test_squares_are_compared_in_memory_of_decoded_images(study, manifest):
    """transfer-imagenet: CIFAR-10 and CIFAR-100 took 1,309 MB, and 6,080 were asked for."""
    splits = [manifest(rows=rows, image_shape=[32, 32, 3]) for rows in (50_000, 10_000, 45_000, 5_000, 10_000)]
    files = Files(compared=[*splits, manifest(rows=9, image_shape=None), "part-00000.parquet"])
    assert 1309 < data_resources.comparing(study, Names(public="web"), files) < 1.2 * 1309


def test_fits_with_many_components_take_more(manifest):
    """Peaks of beyond: 1,000 and 3,000 components of 10,113 features of 8,000 drawn pictures."""
    both = {"extractor": "joined", "parts": ["maps", "cut"]}
    study = study_with(
        backbones__patches={"architecture": "patches", "public": "web", "filters": 768},
        features__maps={"extractor": "scatternet"},
        features__cut={"extractor": "backbone", "backbone": "patches"},
        features__both=both,
        fits__few={"public": "web", "features": "both", "dim": 1000},
        fits__many={"public": "web", "features": "both", "dim": 3000},
    )
    files = Files(public=[manifest(image_shape=[28, 28, 1], shards=[{"rows": 4000}, {"rows": 4000}])])
    for fit, took in (("few", 1797), ("many", 2477)):
        assert took < data_resources.projection(study, Names(fit=fit), files) < 1.2 * took


def test_drawn_images_take_memory_by_their_size_and_number(study):
    names = Names(source="web", split="train", shard="00000")
    large = study_with(public__web={"reader": "dead_leaves", "count": 1_000_000, "shards": 2})
    assert data_resources.reading(large, names, Files()) - data_resources.reading(
        study, names, Files()
    ) == pytest.approx(3e-6 * 32 * 32 * 3 * (1_000_000 - 100) / 2, abs=2)


def test_features_in_half_precision_are_worked_on_twice_as_large(study):
    half = study_with(features__pixels__dtype="float16")
    files, names = Files(size_mb=10.0, size_files_mb=[10.0]), Names(features="pixels")
    assert data_resources.description_of_features(half, names, files) > data_resources.description_of_features(
        study, names, files
    )


def test_networks_take_a_gpu_each_where_there_is_one(study, monkeypatch):
    monkeypatch.setattr(data_resources, "gpus", lambda: 1)
    assert [data_resources.extraction_gpus(study, name) for name in ("pixels", "cnn")] == [0, 1]
    assert data_resources.projection_gpus(study, "pca") == 0
    assert data_resources.pretraining_gpus(study_with(backbones__cnn__devices=3), "cnn") == 3
