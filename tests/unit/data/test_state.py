"""A user's own images, seen from outside: what is replaced, added or removed shows, and what is not does not."""

import os

import numpy as np
import pytest
from PIL import Image

from dpstudy.core.errors import StudyError
from dpstudy.data.readers import open_reader
from dpstudy.data.source import files_of
from dpstudy.data.state import state_of
from dpstudy.privacy.data_book import NAME

FOLDER = {"reader": "image_folder", "location": "own", "classes": ["a", "b"], "size": [8, 8], "channels": 1}
TABLE = FOLDER | {"reader": "image_table", "table": "t.csv", "path_column": "path", "label_column": "label"}
ARRAYS = {"reader": "arrays", "location": "arrays", "classes": ["a", "b"]}


@pytest.fixture
def root(tmp_path):
    rng = np.random.default_rng(0)
    rows = ["path,label"]
    for number in range(4):
        path = f"{'ab'[number % 2]}/{number}.png"
        (tmp_path / "own" / path).parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(rng.integers(0, 256, (8, 8)).astype(np.uint8)).save(tmp_path / "own" / path)
        rows.append(f"{path},{path[0]}")
    (tmp_path / "arrays").mkdir()
    for pool in ("train", "test"):
        np.save(tmp_path / "arrays" / f"{pool}_images.npy", np.zeros((3, 4, 4), np.uint8))
        np.save(tmp_path / "arrays" / f"{pool}_labels.npy", np.array([0, 1, 0]))
    (tmp_path / "table.csv").write_text("\n".join(rows) + "\n")
    return tmp_path


def with_table(root):
    (root / "table.csv").rename(root / "own" / "t.csv")
    return TABLE


@pytest.mark.parametrize("options_in", [lambda root: FOLDER, with_table], ids=["folder", "table"])
def test_a_replaced_added_or_removed_image_shows(root, options_in):
    options, first = options_in(root), root / "own/a/0.png"
    states, kept = [state_of(options, root)], first.stat()
    assert state_of(options, root) == states[0] and len(states[0]) == 16
    content = first.read_bytes()
    Image.fromarray(np.full((8, 8), 9, np.uint8)).save(first)
    states.append(state_of(options, root))
    first.write_bytes(content)
    os.utime(first, ns=(kept.st_atime_ns, kept.st_mtime_ns))
    assert state_of(options, root) == states[0], "put back as it was"
    os.utime(first, ns=(kept.st_atime_ns, kept.st_mtime_ns + 1))
    states.append(state_of(options, root))
    os.utime(first, ns=(kept.st_atime_ns, kept.st_mtime_ns))
    if options is FOLDER:
        (root / "own/b/9.png").write_bytes(content)
        states.append(state_of(options, root))
        (root / "own/b/9.png").unlink()
        first.unlink()
        states.append(state_of(options, root))
    else:
        (root / "own/b/9.png").write_bytes(content)
        assert state_of(options, root) == states[0], "the table does not name it"
        first.unlink()
        states.append(state_of(options, root))
    assert len(set(states)) == len(states)


@pytest.mark.parametrize("options", [FOLDER, ARRAYS])
def test_the_budget_log_is_no_record(root, options):
    """Where `location` is the data root itself it lies among the records, from the first training on.

    To be told that it may not stand there would have its owner move it, and the budget begin anew.
    """
    folder = root / options["location"]
    rows = [list(open_reader(options["reader"], options, root).rows(pool).ids) for pool in pools(options)]
    before = state_of(options, root)
    for name in (NAME, f".{NAME}.lock"):
        (folder / name).write_text("{}\n")
    assert state_of(options | {"location": "."}, folder) == before
    reader = open_reader(options["reader"], options | {"location": "."}, folder)
    assert [list(reader.rows(pool).ids) for pool in pools(options)] == rows
    assert files_of(folder, "*.jsonl") == [], "a table's pattern does not take it for a part of the table"


def pools(options):
    return ("all",) if options is FOLDER else ("train", "test")


def test_arrays_and_what_enlarges_a_benchmark_show(root):
    enlarged = {"reader": "digits", "extra": FOLDER}
    before = state_of(ARRAYS, root), state_of(enlarged, root)
    np.save(root / "arrays" / "test_labels.npy", np.array([0, 1, 0, 1]))
    (root / "own/b/1.png").unlink()
    after = state_of(ARRAYS, root), state_of(enlarged, root)
    assert after[1] != before[1] and after[0] != before[0]
    assert state_of({"reader": "digits"}, root) == "" == state_of({"reader": "cifar", "location": "nowhere"}, root)
    assert len(state_of(FOLDER | {"location": "nowhere"}, root)) == 16, "the job will say what is wrong"
    unnamed = {"reader": "cifar", "location": "nowhere", "extra": {"reader": "arrays", "location": "arrays"}}
    before = state_of(unnamed, root)
    np.save(root / "arrays" / "test_labels.npy", np.array([0, 1]))
    assert state_of(unnamed, root) != before, "whose classes the benchmark names"


def test_own_records_in_a_benchmarks_format_show(root):
    (root / "own/all_labels.npy").write_bytes(b"1")
    options = {"reader": "mosaics", "location": "own", "test_split": "private"}
    before = state_of(options, root)
    (root / "own/all_labels.npy").write_bytes(b"12")
    assert state_of(options, root) != before
    assert state_of(options | {"test_split": "public"}, root) == ""
    assert state_of({"reader": "digits", "test_split": "private"}, root) == "", "which lie in no folder"


def test_a_file_that_may_be_absent_hides_no_other(root):
    options = with_table(root) | {"unreadable": 0.5}
    states = [state_of(options, root)]
    (root / "own/a/0.png").unlink()
    states.append(state_of(options, root))
    Image.fromarray(np.full((8, 8), 9, np.uint8)).save(root / "own/b/1.png")
    states.append(state_of(options, root))
    assert len(set(states)) == 3


def test_an_absolute_folder_is_seen_as_a_relative_one_is(root):
    assert state_of(FOLDER | {"location": str(root / "own")}, root) == state_of(FOLDER, root)


def test_a_mosaic_in_a_folder_below_shows(root):
    options = with_table(root) | {"mosaic": "a/0.png", "tile": [4, 4]}
    before = state_of(options, root)
    Image.fromarray(np.full((8, 8), 9, np.uint8)).save(root / "own/a/0.png")
    assert state_of(options, root) != before


def replaced(path):
    """Another picture in the same place."""
    Image.fromarray(np.full((8, 8), 9, np.uint8)).save(path)


# what is learned of an image may be read off its file (`tags`), so that no column has it
OF_TAGS = [
    {"tags": {"view": "ViewPosition"}, "label_column": "view"},
    {"tags": {"ill": "ViewPosition"}, "label_column": None, "label_columns": ["ill"]},
    {"tags": {"who": "PatientID"}, "subject_column": "who", "unit": "subject"},
    {"tags": {"sex": "PatientSex"}, "group_columns": ["sex"]},
    {"tags": {"sex": "PatientSex"}, "group_columns": [{"column": "sex", "bands": [40]}]},
    {"label_column": "nowhere"},
    {"classes": ["others", "altogether"]},
]


@pytest.mark.parametrize("changes", OF_TAGS, ids=str)
def test_images_are_found_whatever_is_learned_of_them(root, changes):
    """In a folder below, whose own time a picture that is replaced leaves as it is."""
    options = with_table(root) | changes
    before = state_of(options, root)
    assert state_of(options, root) == before
    replaced(root / "own/a/0.png")
    assert state_of(options, root) != before


@pytest.mark.parametrize("changed", ["own/t.csv", "own/a/0.png"])
def test_a_table_that_enlarges_shows_with_its_images(root, changed):
    """Its classes are those of what it enlarges, and no rule has its table among the inputs."""
    extra = {key: value for key, value in with_table(root).items() if key != "classes"}
    options = {"reader": "digits", "extra": extra}
    before = state_of(options, root)
    assert state_of(options, root) == before
    if changed.endswith("csv"):
        table = root / changed
        table.write_text(table.read_text().replace(",a", ",b"))
    else:
        replaced(root / changed)
    assert state_of(options, root) != before


@pytest.mark.parametrize("reader", ["nih", "imagenet", "places365", "chexpert", "cifar"])
def test_a_benchmarks_format_may_have_its_images_below(root, reader):
    options = {"reader": reader, "location": "own", "test_split": "private"}
    (root / "own/a/again").symlink_to(root / "own")  # in a circle
    before = state_of(options, root)
    assert state_of(options, root) == before
    replaced(root / "own/a/0.png")
    assert state_of(options, root) != before


@pytest.mark.parametrize(
    "harm",
    [
        lambda options, table: options | {"path_column": "nowhere"},
        lambda options, table: options | {"table": "nowhere.csv"},
        lambda options, table: [options, table.write_text("path,label\na/0.png,a\na/0.png,a\n")][0],
        lambda options, table: [options, table.write_bytes(b"PK\x03\x04")][0],
    ],
)
def test_what_cannot_be_listed_is_never_unchanged(root, harm):
    """Behind a state like any other changes would go unseen; the job that is due for it says what is wrong."""
    options = with_table(root)
    options = harm(options, root / "own/t.csv")
    assert state_of(options, root) != state_of(options, root)
    with pytest.raises(StudyError):
        open_reader(options["reader"], options, root)
