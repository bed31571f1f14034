import json

import numpy as np
import pytest

from dpstudy.core.errors import StudyError
from dpstudy.core.files import read_table
from dpstudy.data import shards
from dpstudy.data.plant import plant
from dpstudy.data.readers import open_reader
from dpstudy.data.records import Records, concatenate, only
from dpstudy.dedup.grey import grey_squares
from dpstudy.dedup.match import deduplicate, match
from dpstudy.dedup.outcome import resolve
from dpstudy.dedup.rule import SQUARES_THRESHOLD

PUBLIC, TRAIN, TEST = ("web", "train"), ("own", "train"), ("own", "test")


def pairs(public, private, **options):
    """{(public id, private id): kind}."""
    found = match({PUBLIC: public}, {TRAIN: private}, **options).to_pylist()
    return {(row["public_id"], row["private_id"]): row["kind"] for row in found}


def altered(records, change):
    """The same records with `change` done to each image, and ids of their own."""
    images = np.stack([change(image) for image in records.images])
    return Records(np.array([f"copy-{row}" for row in range(len(records))], dtype=object), images, records.labels)


def noisy(image):
    noise = np.random.default_rng(0).normal(0, 4, image.shape)
    return np.clip(image * 0.93 + noise, 0, 255).astype(np.uint8)


@pytest.mark.parametrize(
    ("change", "kind"),
    [
        (lambda image: image, "exact"),
        (noisy, "near"),
        (lambda image: image[:, ::-1], "near"),
        (lambda image: np.roll(image, 1, axis=0), "near"),
        (lambda image: np.roll(image, (-1, 1), axis=(0, 1)), "near"),
    ],
)
def test_copies_are_found_and_nothing_else_is(make_images, change, kind):
    private = make_images("q", 40, (12, 12, 1))
    public = concatenate([make_images("p", 50, (12, 12, 1), seed=1), altered(private.take(np.arange(5)), change)])
    assert pairs(public, private) == {(f"copy-{row}", f"q-{row}"): kind for row in range(5)}


def test_copies_in_another_size_or_colour_are_found(make_images):
    private = make_images("q", 20, (16, 16, 1))
    larger = altered(private, lambda image: image.repeat(2, axis=0).repeat(2, axis=1).repeat(3, axis=2))
    found = pairs(larger, private, threshold=0.9)
    assert set(found) == {(f"copy-{row}", f"q-{row}") for row in range(20)}
    coloured = altered(private, lambda image: image.repeat(3, axis=2))
    assert set(pairs(coloured, private).values()) == {"exact"}


def test_scores_are_correlations_by_numpy(make_images):
    public, private = make_images("p", 6, (8, 8, 1)), make_images("q", 5, (8, 8, 1), seed=1)
    found = match({PUBLIC: public}, {TRAIN: private}, 0.2).to_pylist()
    assert found
    for row in found:
        first = public.images[int(row["public_id"][2:]), :, :, 0].astype(float)
        second = private.images[int(row["private_id"][2:]), :, :, 0].astype(float)
        scores = [np.corrcoef(first[:, ::-1].ravel(), second.ravel())[0, 1]]
        for down in (-1, 0, 1):
            for right in (-1, 0, 1):
                ours = [(r, c) for r in range(8) for c in range(8) if 0 <= r + down < 8 and 0 <= c + right < 8]
                theirs = [(r + down, c + right) for r, c in ours]
                scores.append(np.corrcoef([first[at] for at in ours], [second[at] for at in theirs])[0, 1])
        assert row["score"] == pytest.approx(max(scores), abs=1e-5)


def test_images_of_one_grey_level_are_no_near_copies(make_images):
    flat = altered(make_images("p", 3), lambda image: np.full_like(image, 7))
    other = altered(make_images("q", 3), lambda image: np.full_like(image, 9))
    assert pairs(flat, other) == {}


def test_grey_squares_keep_size_and_mean(make_images):
    images = make_images("p", 4, (24, 12, 1)).images
    np.testing.assert_allclose(grey_squares(images[:, :12], 12), images[:, :12, :, 0], rtol=1e-6)
    squares = grey_squares(np.full((1, 24, 12, 3), 100, np.uint8), 12)
    assert squares.shape == (1, 12, 12)
    np.testing.assert_allclose(squares, 100, rtol=1e-5)


def test_planted_digits_are_found_among_glyphs_and_few_others():
    glyphs = open_reader("glyphs", {"count": 2000}, ".").read("all", np.arange(2000))
    digits = open_reader("digits", {}, ".").read("all", np.arange(1797))
    planted = plant(glyphs, digits, 60, seed=0)
    found = pairs(planted, digits)
    chosen = np.random.default_rng(0).choice(1797, 60, replace=False)
    for turn, row in enumerate(chosen):
        assert found.get((f"planted-{turn:05d}", digits.ids[row])) == ("near" if turn % 3 else "exact")
    wrong = {theirs for ours, theirs in found if not ours.startswith("planted")}
    assert len(wrong) < 0.005 * 1797
    assert SQUARES_THRESHOLD == 0.99  # the value that the docstring's measurement is about


def test_each_mode_drops_its_own_side_and_only_what_matched(make_images):
    train, test = make_images("q", 10), make_images("t", 6, seed=2)
    copies = concatenate([train.take(np.array([3, 4])), test.take(np.array([5]))])
    public = concatenate([make_images("p", 8, seed=1), altered(copies, lambda image: image)])
    sides = {PUBLIC: public}, {TRAIN: train, TEST: test}
    matches = match(*sides)
    for drop, gone in {
        "private": {("own", "train", "q-3"), ("own", "train", "q-4"), ("own", "test", "t-5")},
        "public": {("web", "train", f"copy-{row}") for row in range(3)},
    }.items():
        kept = {tuple(row.values()) for row in resolve(matches, *sides, drop).to_pylist()}
        everything = {(*place, name) for side in sides for place, records in side.items() for name in records.ids}
        assert everything - kept == gone


@pytest.mark.parametrize(
    ("contrast", "change"),
    [(1, np.array), (1, noisy), (1, lambda image: image.repeat(3, axis=2)), (0, np.array)],
    ids=["exact", "near", "coloured", "without contrast"],
)
def test_all_private_copies_of_one_public_image_go(make_images, contrast, change):
    """Each by itself, however many there are, in one split or several: were one kept for another's sake, that one's
    absence would drop it."""
    one = altered(
        make_images("q", 1).take(np.zeros(3, int)), lambda image: image if contrast else np.full_like(image, 7)
    )
    copies = [
        Records(np.array([f"{place}-{row}" for row in range(3)], dtype=object), one.images, one.labels)
        for place in ("train", "test")
    ]
    private = {
        TRAIN: concatenate([make_images("a", 5, seed=1), copies[0]]),
        TEST: concatenate([copies[1], make_images("b", 4, seed=2)]),
    }
    public = {PUBLIC: altered(concatenate([make_images("p", 6, seed=3), one.take(np.array([0]))]), change)}
    kept = resolve(match(public, private, 0.9), public, private).to_pylist()
    assert {row["id"] for row in kept if row["dataset"] == "own"} == {f"a-{row}" for row in range(5)} | {
        f"b-{row}" for row in range(4)
    }


def test_dropping_private_records_is_a_rule_about_each_record_alone(make_images):
    private = make_images("q", 25, (8, 8, 1))
    near = altered(private.take(np.arange(12)), noisy)
    public = concatenate([make_images("p", 30, (8, 8, 1), seed=1), near])
    threshold = float(np.median([row["score"] for row in match({PUBLIC: public}, {TRAIN: private}, 0.9).to_pylist()]))

    def dropped(records):  # the threshold is the score of some pair itself, so that rounding would show
        sides = {PUBLIC: public}, {TRAIN: records}
        kept = resolve(match(*sides, threshold), *sides, "private").to_pylist()
        return set(records.ids) - {row["id"] for row in kept if row["dataset"] == "own"}

    whole = dropped(private)
    assert 0 < len(whole) < 25
    for row in range(25):
        rest = private.take(np.delete(np.arange(25), row))
        assert dropped(rest) == whole - {private.ids[row]}


def test_a_score_depends_on_its_two_images_alone_to_the_last_bit(make_images):
    public, private = make_images("p", 30, (9, 9, 1)), make_images("q", 25, (9, 9, 1), seed=1)
    for row in match({PUBLIC: public}, {TRAIN: private}, 0.35).to_pylist():
        one = public.take(public.ids == row["public_id"]), private.take(private.ids == row["private_id"])
        assert match({PUBLIC: one[0]}, {TRAIN: one[1]}, 0.35).to_pylist() == [row]


def test_files_say_what_was_done_and_hide_private_ids(tmp_path, make_images, caplog):
    caplog.set_level("INFO", "dpstudy")
    train = make_images("q", 10)
    labels_only = Records(train.ids, None, train.labels)
    public = concatenate([make_images("p", 8, seed=1), altered(train.take(np.array([3, 4])), lambda image: image)])
    folders = {}
    for (dataset, split), records in {PUBLIC: public, TRAIN: train, ("bare", "train"): labels_only}.items():
        folder = folders[dataset, split] = tmp_path / dataset / split
        shards.write_shard(folder / "part.parquet", records, private=dataset != "web")
        shards.write_manifest(
            folder / "manifest.json",
            dataset=dataset,
            split=split,
            shard_paths=[folder / "part.parquet"],
            classes=["a", "b", "c"],
            private=dataset != "web",
        )
    out = {name: tmp_path / name for name in ("matches.parquet", "kept.parquet", "report.json")}
    matches, kept, report = out.values()
    public_folders = {PUBLIC: folders.pop(PUBLIC)}
    deduplicate(public_folders, folders, {"matches": matches, "kept": kept, "report": report})
    assert only(train, shards.kept_ids(kept, "own", "train")).ids.tolist() == [
        f"q-{row}" for row in range(10) if row not in (3, 4)
    ]
    assert len(only(labels_only, shards.kept_ids(kept, "bare", "train"))) == 10
    assert len(read_table(matches)) == 2
    assert [(record.levelname, record.getMessage()) for record in caplog.records if record.levelno > 20] == [
        ("NOTICE", "2 of 10 private records of own/train (20 %) match public images and are left out"),
        ("NOTICE", "2 of 10 public images match private ones and stay"),
    ]
    assert not any(path.stat().st_mode & 0o077 for path in (matches, kept, report))
    said = json.loads(report.read_text())
    assert said["drop"] == "private" and said["threshold"] == SQUARES_THRESHOLD and "private records" in said["publish"]
    counts = {
        row["dataset"]: (row["compared"], row["rows"], row["exact"], row["near"], row["dropped"])
        for row in said["sets"]
    }
    assert counts == {"web": (True, 10, 2, 0, 0), "own": (True, 10, 2, 0, 2), "bare": (False, 10, 0, 0, 0)}


def test_an_option_that_does_not_exist_is_refused(make_images):
    sides = {PUBLIC: make_images("p", 3)}, {TRAIN: make_images("q", 3)}
    with pytest.raises(StudyError, match="'both'"):
        resolve(match(*sides), *sides, "both")
