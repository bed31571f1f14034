"""De-duplication by alignment: copies are found through what happens to pictures; each decision is one record's own."""

import json

import numpy as np
import pytest
import torch
from PIL import Image

from dpstudy.core.errors import StudyError
from dpstudy.core.files import read_table
from dpstudy.data import shards
from dpstudy.data.readers import open_reader
from dpstudy.data.records import Records
from dpstudy.dedup import align
from dpstudy.dedup.basis import fit, fit_basis
from dpstudy.dedup.calibrate import calibrate
from dpstudy.dedup.compare import compare
from dpstudy.dedup.describe import VARIANTS, Description, Embedding, describe_all, describe_shard
from dpstudy.dedup.distort import changed, changes
from dpstudy.dedup.jobs import Shard, align_shard, merge, search_shard
from dpstudy.dedup.rule import Rule

OWN, WEB = 60, 300


def drawn(count, seed, **options):
    """Pictures of several things, 32 x 32 in colour."""
    reader = open_reader("scenes", {"count": count, "seed": seed, **options}, ".")
    return reader.read("all", np.arange(count)).images


def described(images, private):
    return describe_all(images, Embedding(None), private)


@pytest.fixture(scope="module")
def own():
    return drawn(OWN, 1)


@pytest.fixture(scope="module")
def web():
    return drawn(WEB, 2)


@pytest.fixture(scope="module")
def basis(web):
    return fit(described(web, False))


@pytest.mark.parametrize("change", list(changes()))
def test_changed_copies_are_found_and_nothing_else_is(change, own, web, basis):
    copies = changed(own, changes()[change], 0)
    found = compare(described(np.concatenate([web, copies]), False), described(own, True), basis, Rule())
    planted = found.public >= WEB
    assert (found.public[planted] - WEB == found.private[planted]).all()
    assert not len(found.public[~planted])
    assert planted.sum() >= 0.95 * OWN
    if change == "exact":
        assert found.exact.all() and (found.score == 1).all() and planted.sum() == OWN


def test_copies_in_another_size_or_colour_are_found(own, basis):
    larger = np.stack([np.asarray(Image.fromarray(image).resize((50, 40), 3)) for image in own[:20]])
    colourless = np.stack([np.asarray(Image.fromarray(image).convert("L"))[..., None] for image in own[:20]])
    for copies in (larger, colourless):
        found = compare(described(copies, False), described(own, True), basis, Rule())
        assert {(a, b) for a, b in zip(found.public, found.private, strict=True)} == {(row, row) for row in range(20)}


def test_a_decision_is_about_one_record_and_public_ones_alone(own, web, basis):
    """So dropping private records costs no privacy: who else is private changes nothing but rounding."""
    copies = changed(own[:30], changes()["jpeg-50"], 0)
    public = described(np.concatenate([web, copies]), False)
    loose = Rule(possible=0.6, margin=0.6)
    everyone = described(own, True)
    together = compare(public, everyone, basis, loose)
    some = np.array([2, 3, 5, 29, 31, 59])
    alone = compare(public, everyone.take(some), basis, loose)
    expected = [
        (public_row, int(np.flatnonzero(some == row)[0]), score)
        for public_row, row, score in zip(together.public, together.private, together.score, strict=True)
        if row in some
    ]
    got = list(zip(alone.public, alone.private, alone.score, strict=True))
    assert [pair[:2] for pair in got] == [pair[:2] for pair in expected] and len(got) >= 4
    np.testing.assert_allclose([pair[2] for pair in got], [pair[2] for pair in expected], atol=1e-5)


def test_all_private_copies_of_one_public_picture_go(own, web, basis):
    """Equal ones, and those that were changed in different ways: each by itself, however many there are."""
    several = [own[3:4]] * 2 + [changed(own[3:4], changes()[name], 0) for name in ("jpeg-50", "crop")]
    found = compare(
        described(np.concatenate([web, own[3:4]]), False), described(np.concatenate([own[:8], *several]), True),
        basis, Rule(),
    )  # fmt: skip
    assert set(found.public) == {WEB} and set(found.private) == {3, *range(8, 12)}


def test_pictures_are_aligned_by_the_pose_that_made_them(own):
    """Against warping by Pillow: a picture mirrored, turned, enlarged and shifted, is brought back."""
    private = torch.from_numpy(own[:20].transpose(0, 3, 1, 2).copy()).float() / 255
    moved = []
    for image in own[:20]:
        picture = Image.fromarray(image[:, ::-1].copy()).rotate(6, 3)
        moved.append(np.asarray(picture.transform((32, 32), Image.Transform.AFFINE, (0.85, 0, 4, 0, 0.85, 1), 3)))
    public = torch.from_numpy(np.stack(moved).transpose(0, 3, 1, 2).copy()).float() / 255

    def plainly(one, two):
        one, two = one.flatten(1) - one.flatten(1).mean(1, True), two.flatten(1) - two.flatten(1).mean(1, True)
        return (one * two).sum(1) / (one.norm(dim=1) * two.norm(dim=1))

    windows, templates = align.prepare_public(public), align.prepare_private(private)
    _, starts = align.coarse(windows, templates)
    found = align.fine(public, private, starts)
    assert plainly(public, private).median() < 0.6 and found.median() > 0.98
    others = align.fine(public, private.roll(1, 0), align.coarse(windows, templates.roll(1, 0))[1])
    assert others.median() < 0.8


def strokes(count, seed):
    """Strokes of one pen that differ a little in slant, bend and length: figures that resemble each other."""
    random = np.random.default_rng(seed)
    pictures = []
    for _ in range(count):
        slant, bend, length, pen = random.uniform((-0.3, -0.02, 7, 1.4), (0.3, 0.02, 11, 2.4))
        y, x = np.mgrid[:28, :28] - 13.5
        away = np.abs(x - slant * y - bend * y**2) / np.hypot(1, slant)
        pictures.append(255 * np.clip(pen - away, 0, 1) * np.clip(length - np.abs(y), 0, 1))
    return np.rint(np.stack(pictures)).astype(np.uint8)[..., None]


def test_alike_is_not_enough_where_much_is_alike():
    """Figures that resemble many public ones must match more closely than photographs."""
    figures = strokes(400, 3)
    private, public = described(figures[:60], True), described(figures[60:], False)
    basis = fit(public)
    found = {margin: compare(public, private, basis, Rule(1.0, 0.95, margin)) for margin in (0.12, 0.999)}
    matched = {margin: len(set(matches.private)) for margin, matches in found.items()}
    assert 3 * matched[0.12] < matched[0.999] >= 30


def test_small_images_and_thresholds_out_of_order_are_refused():
    with pytest.raises(StudyError, match="images of 8 x 8 pixels are too small to be aligned .*`method: squares`"):
        described(np.zeros((2, 8, 8, 1), np.uint8), False)
    with pytest.raises(StudyError, match="possible is 0.99 and threshold 0.9"):
        Rule(threshold=0.9, possible=0.99)
    with pytest.raises(StudyError, match="margin is 1.5"):
        Rule(margin=1.5)


def test_a_blank_picture_matches_nothing_but_its_like(web, basis):
    blank = np.full((3, 32, 32, 3), 200, np.uint8)
    found = compare(described(np.concatenate([web, blank[:1]]), False), described(blank, True), basis, Rule())
    assert found.exact.all() and set(found.public) == {WEB} and len(found.private) == 3


@pytest.fixture(scope="module")
def files(tmp_path_factory, own, web):
    """Shards, descriptions and a basis: two shards of public images with ten copies, one of private ones."""
    root = tmp_path_factory.mktemp("dedup")
    copies = changed(own[:10], changes()["crop"], 0)
    public = np.concatenate([web[:150], copies, own[:1]])
    made = {}
    for name, images, cuts, private in (("web", public, (0, 80, 161), False), ("own", own, (0, OWN), True)):
        folder = root / "data" / name / "train"
        for shard, (start, end) in enumerate(zip(cuts, cuts[1:], strict=False)):
            ids = np.array([f"{name}-{row}" for row in range(start, end)], dtype=object)
            records = Records(ids, images[start:end], np.zeros(end - start, np.int32))
            shards.write_shard(folder / f"part-{shard:05d}.parquet", records, private)
        shards.write_manifest(
            folder / "manifest.json", dataset=name, split="train", classes=["thing"], private=private,
            shard_paths=[folder / f"part-{shard:05d}.parquet" for shard in range(len(cuts) - 1)],
        )  # fmt: skip
        made[name] = []
        for shard in range(len(cuts) - 1):
            path = root / "images" / name / f"{shard}.safetensors"
            describe_shard(folder, shard, path, Embedding(None), private=private)
            made[name].append(Shard(str(folder), shard, str(path)))
    fit_basis([shard.description for shard in made["web"]], root / "basis.safetensors")
    basis, mine = root / "basis.safetensors", made["own"][0]
    searched = [root / f"found-{shard.number}.safetensors" for shard in made["web"]]
    for shard, path in zip(made["web"], searched, strict=True):
        search_shard(shard, [("mine", mine)], basis, path)
    public = [("train", shard) for shard in made["web"]]
    align_shard(public, searched, ("own", "train"), "mine", mine, basis, root / "part.parquet")
    return root


def merged(root, **options):
    names = {"matches": "matches.parquet", "kept": "kept.parquet", "report": "report.json", "picture": "matches.png"}
    out = {key: root / name for key, name in names.items()}
    data = root / "data"
    sides = {("web", "train"): data / "web" / "train"}, {("own", "train"): data / "own" / "train"}
    merge([root / "part.parquet"], *sides, out, **options)
    return out


def test_shards_are_compared_one_by_one_and_put_together(files):
    out = merged(files)
    matches = read_table(out["matches"]).to_pylist()
    assert {(row["public_id"], row["private_id"]) for row in matches} == {
        *((f"web-{150 + row}", f"own-{row}") for row in range(10)),
        ("web-160", "own-0"),
    }
    assert [row["kind"] for row in matches].count("exact") == 1
    kept = read_table(out["kept"]).to_pylist()
    assert {row["id"] for row in kept if row["dataset"] == "own"} == {f"own-{row}" for row in range(10, OWN)}
    said = json.loads(out["report"].read_text())
    assert said["method"] == "aligned" and said["threshold"] == 0.997 and "private records" in said["publish"]
    assert [(each["dataset"], each["dropped"]) for each in said["sets"]] == [("web", 0), ("own", 10)]
    for name in ("matches", "kept", "report", "picture"):
        assert out[name].stat().st_mode & 0o077 == 0
    page = np.asarray(Image.open(out["picture"]))
    assert page.shape[1] > 600 and (page != 255).any()
    assert (files / "images" / "own" / "0.safetensors").stat().st_mode & 0o077 == 0


def test_the_other_side_is_dropped_on_request(files):
    kept = read_table(merged(files, drop="public")["kept"]).to_pylist()
    assert sum(row["dataset"] == "own" for row in kept) == OWN
    assert {row["id"] for row in kept if row["dataset"] == "web"} == {f"web-{row}" for row in range(150)}


def test_descriptions_are_kept_as_they_are(files, own):
    read, made = Description.read(files / "images" / "own" / "0.safetensors"), described(own, True)
    assert (
        read.shape == (32, 32, 3) and read.colour.shape == (OWN, len(VARIANTS), 243) and read.hashes.shape[1:] == (2, 8)
    )
    for name in ("exact", "levels", "hashes", "grey", "colour", "thumbnails"):
        np.testing.assert_array_equal(getattr(read, name), getattr(made, name))


def test_calibration_counts_the_copies_that_are_found(files):
    folder, own_file = files / "data" / "own" / "train", files / "images" / "own" / "0.safetensors"
    web_file, path = files / "images" / "web" / "0.safetensors", files / "calibration.json"
    calibrate(folder, own_file, web_file, files / "basis.safetensors", path, Embedding(None), sample=20)
    said = json.loads(path.read_text())
    assert path.stat().st_mode & 0o077 == 0
    assert said["sample"] == 20 and said["unplanted"] == 0 and set(said["changes"]) == set(changes())
    assert all(counts["found"] >= 19 and counts["mistaken"] == 0 for counts in said["changes"].values())
    calibrate(
        folder,
        own_file,
        web_file,
        files / "basis.safetensors",
        path,
        Embedding(None),
        sample=20,
        rule={"possible": 1.0, "threshold": 1.0},
    )
    said = json.loads(path.read_text())
    assert said["changes"]["exact"]["found"] == 20 and said["changes"]["jpeg-50"]["found"] == 0
    assert json.loads(merged(files, calibrations=[path])["report"].read_text())["calibration"] == [said]


def test_a_calibration_warns_where_what_nobody_planted_matches(files, monkeypatch, caplog):
    """By a rule that takes anything for a copy; and the last job tells it to the owner."""
    monkeypatch.setattr("dpstudy.dedup.calibrate.changes", dict)
    caplog.set_level("INFO", "dpstudy")
    paths = [files / each for each in ("images/own/0.safetensors", "images/web/0.safetensors", "basis.safetensors")]
    for possible, warned in ((1.0, 0), (0.01, 1)):
        caplog.clear()
        rule = {"possible": possible, "threshold": possible}
        calibrate(files / "data/own/train", *paths, files / "counts.json", Embedding(None), rule=rule, sample=20)
        assert len(caplog.records) == warned
        merged(files, calibrations=[files / "counts.json"])
        assert sum("though nothing was planted" in record.getMessage() for record in caplog.records) == 2 * warned
