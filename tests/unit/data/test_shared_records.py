"""One image under two subjects is refused before anything is made of the data."""

import logging
import shutil

import numpy as np
import pyarrow as pa
import pytest
from PIL import Image

from dpstudy.core.errors import StudyError
from dpstudy.data import shards
from dpstudy.data.prepare import look_through, prepare_manifest, prepare_shard
from dpstudy.data.shared_records import SeenImages
from tests.unit.data.conftest import OWN, prepare


def both(root, **changes):
    """The mistake that preparing train or test is refused for, or None."""
    try:
        for split in ("train", "test"):
            prepare(root, split, **changes)
    except StudyError as error:
        return str(error)
    return None


def test_equal_files_of_two_subjects_are_refused_wherever_they_fall(own):
    root, write = own
    folder = root / "own"
    assert both(root) is None
    for other in range(2, 24):  # some in the same split as image 0, some in the other
        whole = (folder / f"{other}.png").read_bytes()
        (folder / f"{other}.png").write_bytes((folder / "0.png").read_bytes())
        assert both(root) == (
            f"data set 'own': the images '0.png' of the subject 'p0' and '{other}.png' of the subject 'p{other // 2}' "
            "are the same; an image belongs to one subject: leave one of the two rows out, or mend its subject"
        )
        with pytest.raises(StudyError):  # each split finds it by itself, before its own features can be extracted
            prepare(root, "test")
        (folder / f"{other}.png").write_bytes(whole)
    (folder / "9.png").write_bytes((folder / "0.png").read_bytes())
    write("9.png")
    assert both(root) is None


def test_where_files_may_be_missing_the_others_are_compared(own):
    root, _ = own
    (root / "own" / "7.png").unlink()
    assert "row 7 (line 9): no such file: " in both(root)
    assert both(root, unreadable=0.5) is None
    for row in (2, 4):  # nothing is no image that two persons share
        (root / "own" / f"{row}.png").write_bytes(b"")
    assert both(root, unreadable=0.5) is None
    (root / "own" / "9.png").write_bytes((root / "own" / "0.png").read_bytes())
    assert "'0.png' of the subject 'p0' and '9.png' of the subject 'p4' are the same" in both(root, unreadable=0.5)


def test_equal_files_of_one_subject_are_no_mistake(own):
    root, _ = own
    (root / "own" / "1.png").write_bytes((root / "own" / "0.png").read_bytes())
    assert both(root) is None


def test_equal_pixels_of_two_subjects_are_refused_within_a_split(own):
    """The same image saved in another way."""
    root, _ = own
    with Image.open(root / "own" / "0.png") as image:
        image.load()
    image.save(root / "own" / "9.png", compress_level=0)
    everything = {"splits": {"test": 0}}
    with pytest.raises(StudyError) as caught:
        prepare(root, "train", **everything)
    assert "'0.png' of the subject 'p0' and '9.png' of the subject 'p4' are the same" in str(caught.value)
    assert not (root / "out" / "train" / "manifest.json").exists()


def test_images_that_are_equal_since_nothing_is_seen_of_them_are_called_so(own):
    """Through a wrong window, say: who takes them for one image would leave persons out."""
    root, _ = own
    for name, level in (("0.png", 1), ("9.png", 0)):
        Image.new("L", (6, 6), 255).save(root / "own" / name, compress_level=level)
    with pytest.raises(StudyError, match="of one colour throughout: where the files are not, mend `window` or `frame`"):
        prepare(root, "train", splits={"test": 0})


def test_equal_pixels_of_two_subjects_are_refused_across_splits_too(own):
    """As the workflow asks: each manifest looks at the shards of the other split."""
    root, _ = own
    files = {split: root / "out" / split / "part-00000.parquet" for split in ("train", "test")}
    apart = []
    for other in range(2, 24):
        path = root / "own" / f"{other}.png"
        whole = path.read_bytes()
        with Image.open(root / "own" / "0.png") as image:
            image.load()
        image.save(path, compress_level=0)
        if both(root) is None:
            apart.append(other)
            for split, rest in (("train", "test"), ("test", "train")):
                with pytest.raises(StudyError) as caught:
                    manifest = root / "out" / split / "again.json"
                    prepare_manifest("own", OWN, root, split, [files[split]], manifest, True, [files[rest]])
                assert "'0.png' of the subject 'p0'" in str(caught.value) and f"'{other}.png'" in str(caught.value)
                assert not manifest.exists()
        path.write_bytes(whole)
    assert 2 < len(apart) < 20


def test_elsewhere_than_on_own_data_equal_pixels_are_a_warning(caplog):
    shard = pa.table({"id": ["a", "b"], "subject": ["p", "q"], "image": pa.array([b"blank", b"blank"], pa.binary())})
    with caplog.at_level(logging.WARNING, "dpstudy"):
        SeenImages("nih").look(shard)
    assert "'a' of the subject 'p' and 'b' of the subject 'q' are the same" in caplog.text
    with pytest.raises(StudyError):
        SeenImages("image_table").look(shard)
    SeenImages("image_table").look(shard.drop_columns("subject"))


def copied(root, pairs, **changes):
    """What is told of images that are copies of others, of each split; the test split is compared with train."""
    whole = {copy: (root / "own" / copy).read_bytes() for _, copy in pairs}
    for first, copy in pairs:
        (root / "own" / copy).write_bytes((root / "own" / first).read_bytes())
    log, told, options = logging.getLogger("dpstudy"), [], OWN | changes
    log.addHandler(handler := logging.Handler())
    handler.emit = lambda record: told.append(record.getMessage())
    log.setLevel("NOTICE")
    try:
        folders = [prepare(root, "train", **changes)]
        prepare_shard("own", options, root, "test", 0, root / "out/test/part-00000.parquet", True)
        shards = [folder / "part-00000.parquet" for folder in (*folders, root / "out/test")]
        prepare_manifest("own", options, root, "test", shards[1:], root / "out/test/manifest.json", True, shards[:1])
    finally:
        log.removeHandler(handler)
        log.setLevel("NOTSET")
        for copy, content in whole.items():
            (root / "own" / copy).write_bytes(content)
    return told


def test_copies_are_told_where_records_are_protected_one_by_one(own):
    root, _ = own
    records = {"unit": "record", "subject_column": None}
    prepare(root, "train", **records)
    train = shards.load(root / "out/train").ids.tolist()
    test = sorted({f"{row}.png" for row in range(24)} - set(train))
    assert copied(root, [], **records) == []
    (within,) = copied(root, [(train[0], train[1]), (train[0], train[2])], **records)
    assert within.startswith("2 images are copies of others, such as ") and repr(train[0]) in within
    assert "protected by itself, and who is in k of them by k times epsilon" in within
    (across,) = copied(root, [(train[0], test[0])], **records)
    assert across.startswith(f"1 image is a copy of another, such as {test[0]!r} of {train[0]!r}: with unit: record")
    assert len(copied(root, [("0.png", "1.png")], unit="record")) == 1, "of one person"
    assert copied(root, [("0.png", "1.png")]) == [], "who is protected with all images"


def test_an_image_in_train_and_test_is_told(tmp_path):
    """Scores would be of images that were learned from; twice in one pool it stands as it may."""
    options = {"reader": "image_folder", "location": "own", "classes": ["a", "b"], "size": [8, 8], "channels": 1}
    options |= {"shards": 1, "unit": "record"}
    rng = np.random.default_rng(0)
    for number in range(8):
        path = tmp_path / "own" / ("train", "test")[number % 2] / "ab"[number // 4] / f"{number}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(rng.integers(0, 256, (8, 8)).astype(np.uint8)).save(path)
    own = tmp_path / "own"
    shutil.copy(own / "train/a/0.png", own / "train/b/again.png")
    assert look_through("own", options, tmp_path, "1e-3") == []
    shutil.copy(own / "train/a/0.png", own / "test/b/copy.png")
    (told,) = look_through("own", options, tmp_path, "1e-3")
    assert told.startswith("'train/a/0.png' and 'test/b/copy.png' are the same image: scores would be of images")
    shutil.copy(own / "train/a/2.png", own / "test/a/another.png")
    assert "are the same image (1 more likewise): scores" in look_through("own", options, tmp_path, "1e-3")[0]
