"""Images inside parquet files and tar archives, through the reader that people use."""

import io
import json
import tarfile

import numpy as np
import pyarrow as pa
import pyarrow.parquet as parquet
import pytest
from PIL import Image

from dpstudy.data.prepare import prepare_shard
from dpstudy.data.readers import open_reader
from tests.dicom_files import write_dicom

COUNT = 14
PICTURES = np.random.default_rng(0).integers(0, 256, (COUNT, 6, 5)).astype(np.uint8)
LABELS = [("well", "ill")[place % 3 == 0] for place in range(COUNT)]
PERSONS = [f"P{place // 2}" for place in range(COUNT)]
TABLE = {
    "reader": "image_table", "location": "scans", "label_column": "finding", "classes": ["well", "ill"],
    "subject_column": "patient", "group_columns": ["sex"], "splits": {"test": 0.3},
}  # fmt: skip


def png(pixels):
    held = io.BytesIO()
    Image.fromarray(pixels).save(held, "png")
    return held.getvalue()


def write_parquet(path, start, stop, structs=True, names=True, groups=3):
    path.parent.mkdir(parents=True, exist_ok=True)
    rows = range(start, stop)
    images = [png(PICTURES[row]) for row in rows]
    if structs:
        images = [
            {"bytes": image, "path": f"{row}.png" if names else None} for row, image in zip(rows, images, strict=True)
        ]
    columns = {
        "image": images,
        "finding": [LABELS[row] for row in rows],
        "patient": [PERSONS[row] for row in rows],
        "sex": ["FM"[row // 2 % 2] for row in rows],
    }
    parquet.write_table(pa.table(columns), path, row_group_size=groups)


@pytest.fixture
def hub(tmp_path):
    """Two parquet files of several row groups, as the Hugging Face Hub has them."""
    write_parquet(tmp_path / "scans/data/train-0.parquet", 0, 8)
    write_parquet(tmp_path / "scans/data/train-1.parquet", 8, COUNT)
    return tmp_path, TABLE | {"table": "data/train-*.parquet", "image_column": "image"}


def add(archive, name, content):
    member = tarfile.TarInfo(name)
    member.size = len(content)
    archive.addfile(member, io.BytesIO(content))


@pytest.fixture
def web(tmp_path):
    """Two archives of WebDataset's: a picture, a class and JSON a sample; other members beside them."""
    (tmp_path / "scans").mkdir()
    for number, rows in enumerate((range(8), range(8, COUNT))):
        with tarfile.open(tmp_path / f"scans/train-{number}.tar", "w") as archive:
            for row in rows:
                facts = {"patient": PERSONS[row], "sex": "FM"[row // 2 % 2], "box": [1, 2], "weight": row / 2}
                add(archive, f"./{row:04d}.png", png(PICTURES[row]))
                add(archive, f"./{row:04d}.cls", f"{LABELS[row]}\n".encode())
                add(archive, f"./{row:04d}.json", json.dumps(facts).encode())
    return tmp_path, TABLE | {"table": "train-*.tar", "label_column": "cls"}


@pytest.mark.parametrize("kind", ["hub", "web"])
def test_records_are_those_that_were_put_in(kind, request):
    root, options = request.getfixturevalue(kind)
    reader = open_reader("image_table", options, root)
    for asked in (np.arange(COUNT), np.array([13, 0, 7, 8, 2]), np.array([5])):
        records = reader.read("all", asked)
        np.testing.assert_array_equal(records.images[..., 0], PICTURES[asked])
        assert [("well", "ill")[label] for label in records.labels] == [LABELS[row] for row in asked]
        assert records.subjects.tolist() == [PERSONS[row] for row in asked]
        assert records.groups["sex"].tolist() == ["FM"[row // 2 % 2] for row in asked]
        assert records.ids.tolist() == [reader.rows("all").ids[row] for row in asked]
    first = {"hub": "0.png", "web": "train-0/0000"}[kind]
    assert reader.rows("all").ids[0] == first and reader.rows("all").named


@pytest.mark.parametrize("kind", ["hub", "web"])
def test_shards_of_both_splits_hold_each_record_once(kind, request, tmp_path):
    root, options = request.getfixturevalue(kind)
    seen = []
    for split in ("train", "test"):
        for shard in (0, 1):
            path = tmp_path / f"{split}-{shard}.parquet"
            prepare_shard("own", options | {"shards": 2}, root, split, shard, str(path), True)
            seen += parquet.read_table(path).column("id").to_pylist()
    assert sorted(seen) == sorted(open_reader("image_table", options, root).rows("all").ids)


@pytest.mark.parametrize(("structs", "names"), [(False, False), (True, False)])
def test_images_without_names_are_numbered(tmp_path, structs, names):
    write_parquet(tmp_path / "scans/a.parquet", 0, COUNT, structs, names)
    reader = open_reader("image_table", TABLE | {"table": "a.parquet", "image_column": "image"}, tmp_path)
    rows = reader.rows("all")
    assert not rows.named and rows.ids[3] == "row-00003"
    np.testing.assert_array_equal(reader.read("all", np.array([9, 3])).images[..., 0], PICTURES[[9, 3]])


def test_names_that_not_all_have_or_that_two_have_are_refused(tmp_path, refused):
    """Were all named by what they hold for the sake of one, that one would decide on the splits of all."""
    options = TABLE | {"table": "a-*.parquet", "image_column": "image"}
    write_parquet(tmp_path / "scans/a-0.parquet", 0, 8)
    write_parquet(tmp_path / "scans/a-1.parquet", 0, 8)
    refused(options, tmp_path, "row 8: its image is called '0.png', as that of row 0 is")
    write_parquet(tmp_path / "scans/a-1.parquet", 8, COUNT, names=False)
    refused(options, tmp_path, "row 8: its image has no `path`, and others have; give all one, or none")


def test_archives_of_one_name_in_two_folders_hold_different_records(web):
    root, options = web
    for number in (0, 1):
        (root / f"scans/{number}").mkdir()
        (root / f"scans/train-{number}.tar").rename(root / f"scans/{number}/train.tar")
    rows = open_reader("image_table", options | {"table": "*/train.tar"}, root).rows("all")
    assert rows.ids[0] == "0/train/0000" and rows.ids[8] == "1/train/0008" and len(set(rows.ids)) == COUNT


def test_a_page_that_is_damaged_is_told(hub, refused):
    root, options = hub
    path = root / "scans/data/train-0.parquet"
    parquet.write_table(parquet.read_table(path), path, write_page_checksum=True)
    content = bytearray(path.read_bytes())
    content[content.index(b"IHDR") + 30] ^= 1
    path.write_bytes(content)
    refused(options, root, "train-0.parquet: damaged parquet file")


def test_scans_in_an_archive_are_seen_through_a_window(tmp_path):
    (tmp_path / "scans").mkdir()
    deep = PICTURES.astype(np.uint16) * 16
    with tarfile.open(tmp_path / "scans/a.tar", "w") as archive:
        for row in range(COUNT):
            scan = write_dicom(tmp_path / "scan", deep[row])
            add(archive, f"{row}.dcm", scan.read_bytes())
            add(archive, f"{row}.cls", b"01"[row % 2 : row % 2 + 1])
    options = {"reader": "image_table", "location": "scans", "table": "a.tar", "label_column": "cls", "classes": 2}
    reader = open_reader("image_table", options | {"window": [2048, 4096]}, tmp_path)
    records = reader.read("all", np.arange(COUNT))
    np.testing.assert_array_equal(records.images[..., 0], np.rint(deep * (255 / 4095)))
    assert records.labels.tolist() == [row % 2 for row in range(COUNT)]


def test_lines_of_json_are_a_table(tmp_path):
    (tmp_path / "scans").mkdir()
    lines = []
    for row in range(COUNT):
        (tmp_path / f"scans/{row}.png").write_bytes(png(PICTURES[row]))
        facts = {"file_name": f"{row}.png", "finding": LABELS[row], "patient": row // 2, "sex": "F", "boxes": [[1, 2]]}
        lines.append(json.dumps(facts))
    (tmp_path / "scans/metadata.jsonl").write_text("\n".join(lines) + "\n\n")
    options = TABLE | {"table": "metadata.jsonl", "path_column": "file_name"}
    records = open_reader("image_table", options, tmp_path).read("all", np.arange(COUNT))
    np.testing.assert_array_equal(records.images[..., 0], PICTURES)
    assert records.subjects.tolist() == [str(row // 2) for row in range(COUNT)]


def test_mistakes_in_parquet_files_are_told(hub, refused):
    root, options = hub
    refused(options | {"image_column": "picture"}, root, "no column 'picture'; there are image, finding")
    refused(options | {"table": "test-*.parquet"}, root, "test-*.parquet: no such file; mend `table`")
    refused(options | {"path_column": "finding"}, root, "go with neither path_column nor mosaic nor tags")
    refused(options | {"table": "../*.parquet"}, root, "leaves")
    path = root / "scans/data/train-1.parquet"
    table = parquet.read_table(path)
    parquet.write_table(table.rename_columns(["image", "finding", "patient", "gender"]), path)
    refused(options, root, "train-1.parquet: has other columns than train-0.parquet")
    images = pa.array([{"bytes": None, "path": f"{row}.png"} for row in range(8, COUNT)], table["image"].type)
    parquet.write_table(table.set_column(0, "image", images), path)
    refused(options, root, "no image in the column 'image'; leave the row out")
    parquet.write_table(
        table.set_column(0, "image", pa.array([{"bytes": b"no", "path": f"a{row}"} for row in range(6)])), path
    )
    refused(options, root, "the image of row", "is not an image, or is damaged")
    path.write_bytes(path.read_bytes()[:100])
    refused(options, root, "train-1.parquet: damaged parquet file")


def test_mistakes_in_archives_are_told(web, refused):
    root, options = web
    path = root / "scans/train-1.tar"

    def holding(*members):
        with tarfile.open(path, "w") as archive:
            for name, content in members:
                add(archive, name, content)

    good = png(PICTURES[0])
    refused(options | {"label_column": "class"}, root, "no column 'class'", "cls")
    refused(options | {"image_column": "png"}, root, "go with neither path_column nor mosaic nor tags")
    holding(("a.cls", b"well"))
    refused(options, root, "train-1.tar: the sample 'a' has 0 images; it must have one")
    holding(("a.png", good), ("a.left.jpg", good))
    refused(options, root, "train-1.tar: the sample 'a' has 2 images")
    holding(("a.png", good), ("a.png", good))
    refused(options, root, "two members have the name 'a.png'")
    holding(("a.png", good), ("a.json", b"{"))
    refused(options, root, "a.json: no text of UTF-8, or no JSON")
    holding(("a.png", good), ("a.json", b"[1]"))
    refused(options, root, "its JSON is no object")
    holding(("a.png", good), ("a.cls", b"well"))
    refused(options, root, "row 8", "patient")
    path.write_bytes(path.read_bytes()[:300])
    refused(options, root, "train-1.tar: it is no tar file, or damaged")
    with tarfile.open(path, "w:gz") as archive:
        add(archive, "a.png", good)
    refused(options, root, "train-1.tar: it is no tar file", "if it is compressed, unpack it")
