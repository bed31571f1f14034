"""Records held in memory and records read anew for each pass: the same blocks, sums and models."""

import math
import weakref

import numpy as np
import pytest
import torch

from dpstudy.core.arrays import to_numpy
from dpstudy.core.errors import StudyError
from dpstudy.features import shards
from dpstudy.features.batches import ShardBatches
from dpstudy.methods import feature_covariance, first_order, grams
from dpstudy.methods.gradients import Head, clipped_sum
from dpstudy.methods.grams import gram
from dpstudy.methods.problem import Problem
from dpstudy.methods.records import Records
from dpstudy.methods.row_file import RowFile
from dpstudy.methods.row_map import RowMap
from dpstudy.privacy.budget import Budget
from dpstudy.privacy.noise import NoiseSource

pytestmark = pytest.mark.usefixtures("kind")
DIM, CLASSES, SIZES = 7, 3, (40, 1, 25, 34)
MAPS = [
    RowMap(),
    RowMap(clip=0.9),
    RowMap(unit=True),
    RowMap(center=np.full(DIM, 0.2, np.float32), scale=np.linspace(0.5, 2, DIM, dtype=np.float32)),
    RowMap(unit_first=True, center=np.full(DIM, 0.2, np.float32), unit=True),
]


class Source:
    """Batches that say they exceed memory, fresh arrays in each pass; `most` is the most bytes alive at once."""

    nbytes = 1 << 40

    def __init__(self, batches):
        self._batches = batches
        self.passes = self.alive = self.most = 0

    def __iter__(self):
        self.passes += 1
        for features, labels in self._batches:
            fresh = features.copy()
            self.alive += fresh.nbytes
            self.most = max(self.most, self.alive)
            weakref.finalize(fresh, self._gone, fresh.nbytes)
            yield fresh, labels
            del fresh

    def _gone(self, count):
        self.alive -= count


def make_batches(sizes=SIZES, dtype=np.float16, multi_label=False, dim=DIM):
    """With dead rows: not a number, infinite, and (where the type holds it) too large."""
    rng, found = np.random.default_rng(4), []
    for size in sizes:
        features = (rng.standard_normal((size, dim)) + 0.3).astype(dtype)
        labels = rng.integers(0, 2, (size, CLASSES)) if multi_label else rng.integers(0, CLASSES, size)
        found.append((features, labels))
    found[0][0][3] = math.nan
    found[-1][0][0, 1] = math.inf
    if dtype == np.float32:
        found[0][0][5] = 1e20
    return found


def both(batches, **options):
    """The same records, held and streamed."""
    return Records.read(batches, CLASSES, **options), Records.read(Source(batches), CLASSES, **options)


def blocks_of(records, rows=None):
    found = list(records.blocks(rows))
    return [joined(getattr(block, name) for block in found) for name in ("features", "norms", "labels")]


def joined(parts):
    return np.concatenate([to_numpy(part) for part in parts])


@pytest.mark.parametrize("rule", MAPS)
@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_a_streamed_record_is_mapped_as_a_held_one_bit_for_bit(rule, dtype):
    held, streamed = (records.mapped(rule) for records in both(make_batches(dtype=dtype)))
    assert held.held and not streamed.held
    for one, other in zip(blocks_of(held), blocks_of(streamed, rows=6), strict=True):
        assert one.tobytes() == other.tobytes()
    dead = {3, 99 - 33} | ({5} if dtype == np.float32 else set())
    features, norms, _ = blocks_of(streamed)
    assert set(np.flatnonzero(np.isnan(norms))) == dead
    assert not features[list(dead)].any() and np.isfinite(features).all()


def test_a_map_replaces_the_one_before_it():
    for records in both(make_batches()):
        twice = records.mapped(RowMap(clip=0.1)).mapped(RowMap(unit=True))
        assert blocks_of(twice)[0].tobytes() == blocks_of(records.mapped(RowMap(unit=True)))[0].tobytes()


@pytest.mark.parametrize("rule", MAPS)
@pytest.mark.parametrize("multi_label", [False, True])
def test_streamed_sums_equal_held_ones(rule, multi_label):
    batches = make_batches(multi_label=multi_label)
    held, streamed = (records.mapped(rule) for records in both(batches, positives=CLASSES))
    weights = held.place.array(np.random.default_rng(1).standard_normal((CLASSES, DIM + 1)), "float32")
    head = Head("sigmoid", "learned", 0.2)
    assert gram(streamed) == pytest.approx(gram(held), rel=1e-6, abs=1e-5)
    expected = to_numpy(clipped_sum(held, weights, head))
    assert to_numpy(clipped_sum(streamed, weights, head)) == pytest.approx(expected, rel=1e-5, abs=1e-5)
    one_hot = [joined(block.one_hot(CLASSES) for block in records.blocks(9)) for records in (held, streamed)]
    assert np.array_equal(*one_hot) and one_hot[0].shape == (100, CLASSES)


def test_features_as_they_were_brought_do_not_show_the_map():
    for records in both(make_batches()):
        found = np.concatenate(list(records.mapped(RowMap(unit=True)).stored()))
        expected = np.concatenate([features for features, _ in make_batches()]).astype(np.float32)
        np.testing.assert_array_equal(found, expected)


def test_mini_batches_of_streamed_records_are_refused():
    held, streamed = both(make_batches())
    index = np.array([4, 90])
    assert len(next(held.blocks(index=index)).features) == 2
    with pytest.raises(RuntimeError, match="single ones cannot be picked"):
        next(streamed.blocks(index=index))


@pytest.mark.parametrize("rule", MAPS)
@pytest.mark.parametrize("dtype", [np.uint8, np.float16, np.float32])
def test_mini_batches_from_a_file_of_rows_are_those_from_memory_bit_for_bit(rule, dtype, monkeypatch):
    batches = make_batches(dtype=dtype) if dtype != np.uint8 else make_grey()
    held = Records.read(batches, CLASSES, picked=True).mapped(rule)
    monkeypatch.setattr("dpstudy.methods.records.PICK_BYTES", 0)
    source = Source(batches)
    filed = Records.read(source, CLASSES, picked=True).mapped(rule)
    assert filed.held and source.passes == 1
    for index in (np.array([99, 0, 40, 41, 41]), np.arange(100), np.array([], np.int64)):
        for one, other in zip(held.blocks(3, index), filed.blocks(3, index), strict=True):
            for name in ("features", "norms", "labels"):
                assert to_numpy(getattr(one, name)).tobytes() == to_numpy(getattr(other, name)).tobytes()
    for one, other in zip(blocks_of(held), blocks_of(filed, rows=6), strict=True):
        assert one.tobytes() == other.tobytes()
    np.testing.assert_array_equal(np.concatenate(list(filed.stored())), np.concatenate(list(held.stored())))


def make_grey():
    rng = np.random.default_rng(5)
    return [
        (rng.integers(0, 256, (size, DIM)).astype(np.uint8), rng.integers(0, CLASSES, size)) for size in SIZES if size
    ]


@pytest.mark.parametrize("picked", [False, True])
def test_what_is_held_depends_on_what_the_source_says_it_takes(picked, monkeypatch):
    name = "PICK_BYTES" if picked else "HOLD_BYTES"
    source = Source(make_batches())
    source.nbytes = 1000
    monkeypatch.setattr(f"dpstudy.methods.records.{name}", 1000)
    assert isinstance(Records.read(source, CLASSES, picked=picked)._stored, np.ndarray | torch.Tensor)
    monkeypatch.setattr(f"dpstudy.methods.records.{name}", 999)
    assert isinstance(Records.read(source, CLASSES, picked=picked)._stored, RowFile if picked else type(None))


def test_a_file_of_rows_has_no_name_and_reading_it_takes_two_batches_of_memory(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr("dpstudy.methods.records.PICK_BYTES", 0)
    source = Source(make_batches(sizes=(3000,) * 12, dim=64))
    records = Records.read(source, CLASSES, picked=True)
    assert list(tmp_path.iterdir()) == [] and records._stored.shape == (36_000, 64)
    assert source.most <= 2 * 3000 * 64 * 2


def test_no_rows_and_labels_out_of_range_are_refused_of_either_kind():
    for kind in (list, Source):
        with pytest.raises(StudyError, match="no training rows"):
            Records.read(kind([(np.zeros((0, DIM), np.float16), np.zeros(0, np.int64))]), CLASSES)
        with pytest.raises(StudyError, match="label 3 lies outside"):
            Records.read(kind([(np.zeros((1, DIM), np.float16), np.array([3]))]), CLASSES)


def test_a_pass_holds_two_batches_at_most():
    source = Source(make_batches(sizes=(3000,) * 12, dim=64))
    records = Records.read(source, CLASSES).mapped(RowMap(unit=True))
    clipped_sum(records, records.place.zeros(CLASSES, 64), Head("softmax", 0.0, 1.0))
    gram(records)
    assert source.passes == 3
    assert source.most <= 2 * 3000 * 64 * 2


@pytest.mark.parametrize("improved", [True, False])
def test_models_of_streamed_records_equal_those_of_held_ones(tmp_path, improved):
    """From shards of two splits, several of them per pass, noise included."""
    batches, folders, start = make_batches(), [], 0
    for split, parts in (("train", batches[:3]), ("validation", batches[3:])):
        folders.append(tmp_path / split)
        paths = []
        for number, (features, labels) in enumerate(parts):
            ids = np.array([str(start + row) for row in range(len(labels))], dtype=object)
            table = shards.FeatureTable(ids, np.nan_to_num(features), labels.astype(np.int32), shape=(DIM,))
            start += len(labels)
            paths.append(folders[-1] / f"part-{number:05d}.parquet")
            shards.write_shard(paths[-1], table, private=True)
        shards.write_manifest(
            folders[-1] / "manifest.json", dataset="toy", features="own", split=split, shard_paths=paths,
            classes=["a", "b", "c"], private=True,
        )  # fmt: skip
    problem = Problem(100, (DIM,), CLASSES, Budget("4", 1e-5))
    if improved:
        method, parameters = feature_covariance, feature_covariance.Parameters(steps=3)
    else:
        options = {"optimiser": "adam", "loss": "sigmoid", "bias": -10.0, "steps": 3}
        method, parameters = first_order, first_order.Parameters(0.1, 0.5, **options)
    plan, models = method.plan(parameters, problem), []
    for claimed in (0, 1 << 40):
        source = ShardBatches(folders)
        source.nbytes = claimed
        data = method.prepare(source, parameters, problem)
        assert data.records.held == (claimed == 0)
        models.append(method.fit(data, parameters, problem, plan, NoiseSource("seeded", "records", 5)).model)
    assert models[1].weights == pytest.approx(models[0].weights, rel=1e-4, abs=1e-4)


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_grams_of_several_threads_add_up(threads, monkeypatch):
    """More blocks than threads, and fewer."""
    monkeypatch.setattr(grams, "threads_of_products", lambda: threads)
    before = torch.get_num_threads()
    for rows in (3, 40, 1000):
        monkeypatch.setattr(grams, "_ROWS", rows)
        for records in both(make_batches()):
            mapped = records.mapped(RowMap(clip=0.9))
            wide = [to_numpy(block.features).astype(float) for block in mapped.blocks()]
            assert gram(mapped) == pytest.approx(sum(x.T @ x for x in wide), rel=1e-6, abs=1e-5)
            assert torch.get_num_threads() == before
