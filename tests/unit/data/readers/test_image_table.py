"""A table of image paths, labels, subjects and groups."""

import csv
import unicodedata

import numpy as np
import pyarrow as pa
import pyarrow.parquet as parquet
import pytest
from PIL import Image

from dpstudy.core.errors import StudyError
from dpstudy.data.readers import open_reader
from dpstudy.data.readers.image_table import unlisted
from tests.dicom_files import write_dicom

TABLE = {
    "reader": "image_table",
    "location": "scans",
    "table": "labels.csv",
    "path_column": "path",
    "label_column": "finding",
    "classes": ["well", "ill"],
    "subject_column": "patient",
    "group_columns": ["sex"],
    "splits": {"test": 0.3},
}
ROWS = 12


def picture(seed, size=(7, 5), channels=3):
    shape = size if channels == 1 else (*size, channels)
    return np.random.default_rng(seed).integers(0, 256, shape).astype(np.uint8)


def save(path, pixels):
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(pixels).save(path)


@pytest.fixture
def scans(tmp_path):
    rows = []
    for seed in range(ROWS):
        save(tmp_path / "scans" / "files" / f"{seed}.png", picture(seed, channels=1))
        rows.append(
            {
                "path": f"files/{seed}.png",
                "finding": ("well", "ill")[seed % 2],
                "patient": f"p{seed // 3}",
                "sex": "FM"[seed % 2],
                "edema": seed % 2,
                "mass": int(seed % 3 == 0),
            }
        )
    write_csv(tmp_path / "scans" / "labels.csv", rows)
    return tmp_path, rows


def test_images_without_a_row_are_found(scans):
    """By suffix, or as DICOM; nothing hidden, and no other file."""
    root, rows = scans
    assert unlisted(TABLE, root) == []
    write_csv(root / "scans" / "labels.csv", [row | {"path": f"./{row['path']}"} for row in rows[1:]])
    write_dicom(root / "scans" / "files" / "IM0001", picture(0, channels=1), 8)
    for name in (".hidden/a.png", "notes.txt", ".b.png", "c.PNG"):
        save(root / "scans" / "as.png", picture(0))
        (root / "scans" / name).parent.mkdir(exist_ok=True)
        (root / "scans" / "as.png").rename(root / "scans" / name)
    assert unlisted(TABLE, root) == ["c.PNG", "files/0.png", "files/IM0001"]
    mosaic = {key: value for key, value in TABLE.items() if key != "path_column"}
    assert unlisted(mosaic | {"mosaic": "all.png", "tile": [7, 5]}, root) == []


def write_csv(path, rows):
    with open(path, "w", newline="") as file:
        writer = csv.DictWriter(file, rows[0].keys())
        writer.writeheader()
        writer.writerows(rows)


def assert_is_scans(reader, rows, multi):
    chosen = np.array([10, 0, 3])
    records = reader.read("all", chosen)
    np.testing.assert_array_equal(records.images[..., 0], [picture(seed, channels=1) for seed in chosen])
    assert list(records.ids) == [rows[seed]["path"] for seed in chosen]
    assert list(records.subjects) == ["p3", "p0", "p1"]
    assert list(records.groups["sex"]) == ["F", "F", "M"]
    np.testing.assert_array_equal(records.labels, [[0, 0], [0, 1], [1, 1]] if multi else [0, 0, 1])
    assert reader.multi_label == multi
    assert list(reader.rows("all").subjects) == [row["patient"] for row in rows]


@pytest.mark.parametrize("multi", [False, True])
@pytest.mark.parametrize("kind", ["csv", "bom", "parquet", "booleans"])
def test_tables(scans, kind, multi):
    root, rows = scans
    options = dict(TABLE)
    if multi:
        del options["label_column"], options["classes"]
        options["label_columns"] = ["edema", "mass"]
    if kind == "bom":
        file = root / "scans" / "labels.csv"
        file.write_bytes(b"\xef\xbb\xbf" + file.read_bytes())
    elif kind != "csv":
        options["table"] = "labels.parquet"
        columns = {name: [row[name] for row in rows] for name in rows[0]}
        if kind == "booleans":
            columns["edema"] = [bool(value) for value in columns["edema"]]
            columns["mass"] = [float(value) for value in columns["mass"]]
        parquet.write_table(pa.table(columns), root / "scans" / "labels.parquet")
    assert_is_scans(open_reader("image_table", options, root), rows, multi)


def test_table_of_mosaic_tiles(scans):
    root, rows = scans
    tiles = np.stack([picture(seed, channels=1) for seed in range(ROWS)])
    canvas = np.zeros((14, 50), np.uint8)
    for seed in range(ROWS):
        y, x = 7 * (seed // 10), 5 * (seed % 10)
        canvas[y : y + 7, x : x + 5] = tiles[seed]
    save(root / "scans" / "images.png", canvas)
    options = {**TABLE, "mosaic": "images.png", "tile": [7, 5]}
    assert_is_scans(open_reader("image_table", options, root), rows, False)
    del options["path_column"]
    assert list(open_reader("image_table", options, root).rows("all").ids[:2]) == ["row-00000", "row-00001"]
    write_csv(root / "scans" / "labels.csv", rows[:5])
    with pytest.raises(StudyError, match="labels.csv: 5 rows for 20 tiles"):
        open_reader("image_table", options, root)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"finding": "odd"}, ["row 7 (line 9)", "unknown class 'odd'"]),
        ({"finding": ""}, ["row 7 (line 9)", "no value in the column 'finding'"]),
        ({"patient": " "}, ["row 7 (line 9)", "no value in the column 'patient'"]),
        ({"sex": ""}, ["row 7 (line 9)", "no value in the column 'sex'"]),
        ({"path": "files/absent.png"}, ["row 7 (line 9): no such file: /", "absent.png; mend the column 'path'"]),
        ({"finding": "wel"}, ["row 7 (line 9)", "unknown class 'wel' in the column 'finding' (did you mean 'well'?)"]),
        ({"path": "files/3.png", "patient": "p1"}, ["row 7 (line 9)", "'files/3.png' stands in row 3 (line 5) too"]),
        ({"path": "files/./3.png"}, ["'files/3.png' of the subject 'p2'", "in row 3 (line 5)", "of the subject 'p1'"]),
        ({"path": "../secret.png"}, ["row 7 (line 9)", "'../secret.png' leaves"]),
        ({"path": "files/../../secret.png"}, ["row 7 (line 9)", "leaves"]),
        ({"path": "/etc/passwd"}, ["row 7 (line 9)", "'/etc/passwd' leaves"]),
        ({"path": "..\\secret.png"}, ["row 7 (line 9)", "leaves"]),
        ({"path": "C:\\secret.png"}, ["row 7 (line 9)", "leaves"]),
    ],
)
def test_a_bad_row_is_named(scans, refused, change, words):
    root, rows = scans
    rows[7].update(change)
    write_csv(root / "scans" / "labels.csv", rows)
    refused({**TABLE, "splits": {"test": 0}}, root, "labels.csv", *words)


def test_one_label_column_makes_two_classes(scans):
    root, rows = scans
    options = {key: TABLE[key] for key in TABLE if key not in ("label_column", "classes")}
    reader = open_reader("image_table", options | {"label_columns": ["mass"]}, root)
    assert reader.classes == ["no mass", "mass"] and not reader.multi_label
    labels = reader.read("all", np.arange(len(rows))).labels
    assert labels.tolist() == [int(float(row["mass"])) for row in rows] and labels.dtype == np.int32


@pytest.mark.parametrize("value", ["2", "-1", "yes", "0.5"])
def test_a_bad_multi_label_is_named(scans, refused, value):
    root, rows = scans
    rows[7]["mass"] = value
    write_csv(root / "scans" / "labels.csv", rows)
    options = {key: TABLE[key] for key in TABLE if key not in ("label_column", "classes")}
    options["label_columns"] = ["edema", "mass"]
    refused(options, root, "labels.csv: row 7 (line 9)", f"{value!r} in the column 'mass'")


def test_undecodable_images_name_the_row(scans, refused):
    root, _ = scans
    (root / "scans" / "files" / "7.png").write_bytes(b"damaged")
    refused({**TABLE, "splits": {"test": 0}}, root, "labels.csv: row 7 (line 9)", "7.png is not an image")
    save(root / "scans" / "files" / "7.png", picture(7, (8, 8), 1))
    refused({**TABLE, "splits": {"test": 0}}, root, "row 7 (line 9)", "(8, 8, 1)", "(7, 5, 1)")


def test_bad_tables_and_options_are_refused(scans, refused):
    root, rows = scans
    file = root / "scans" / "labels.csv"
    for key, column in (("path_column", "path"), ("label_column", "finding"), ("subject_column", "patient")):
        refused({**TABLE, key: "absent"}, root, "labels.csv: no column 'absent'", column)
        asked = f"no column {column.upper()!r}, as `{key}` says"
        close = f"{asked} (did you mean {column!r}?); there are path, finding, patient, sex"
        refused({**TABLE, key: column.upper()}, root, close)
    refused({**TABLE, "group_columns": ["sex", "age"]}, root, "no column 'age'")
    refused({**TABLE, "label_columns": ["edema"]}, root, "either `label_column` or `label_columns`")
    refused({key: TABLE[key] for key in TABLE if key != "path_column"}, root, "`path_column` is missing")
    refused({key: TABLE[key] for key in TABLE if key != "classes"}, root, "name the classes")
    refused({**TABLE, "classes": ["ill", "well", "ill"]}, root, "'ill' stands twice")
    refused({**TABLE, "table": "absent.csv"}, root, "absent.csv: no such file")
    refused({**TABLE, "table": "../labels.csv"}, root, "leaves")
    refused({**TABLE, "mosaic": "images.png"}, root, "`mosaic` needs `tile`")
    whole = file.read_text()
    file.write_text(whole.splitlines()[0])
    refused(TABLE, root, "labels.csv: no rows")
    file.write_text("")
    refused(TABLE, root, "labels.csv: is empty, or begins with an empty line; its first line names the columns")
    file.write_text(whole.replace(",", ";"))
    refused(TABLE, root, "labels.csv: its header has no comma but ';'; save it with commas between the values")
    file.write_text(whole.replace("sex", "path", 1))
    refused(TABLE, root, "labels.csv", "its header names the column 'path' twice")
    file.write_text(whole.replace("p2,", "p2,extra,", 1))
    refused(TABLE, root, "labels.csv: line 8 has 7 values for 6 columns")
    file.write_text(whole + '"never closed')
    refused(TABLE, root, "labels.csv: line 14 is not CSV")
    file.write_bytes(whole.encode() + b"\xff\xfe")
    refused(TABLE, root, "labels.csv: not UTF-8")
    (root / "scans" / "labels.parquet").write_bytes(b"PAR1 damaged")
    refused({**TABLE, "table": "labels.parquet"}, root, "labels.parquet: damaged parquet")


def test_a_table_and_a_disk_may_spell_accents_differently(scans, refused):
    root, rows = scans
    form = unicodedata.normalize
    save(root / "scans" / form("NFD", "Brüche") / form("NFD", "é.png"), picture(7, channels=1))
    names = {"finding": form("NFD", "krank, älter"), "sex": form("NFD", "ü"), "patient": form("NFD", "Müller")}
    rows[7].update(names | {"path": form("NFC", "Brüche/é.png")})
    rows[6].update(sex="ü", patient="Müller")
    write_csv(root / "scans" / "labels.csv", rows)
    options = TABLE | {"classes": ["well", "ill", "krank, älter"], "own_names": True}
    reader = open_reader("image_table", options, root)
    records = reader.read("all", np.array([6, 7]))
    np.testing.assert_array_equal(records.images[1, ..., 0], picture(7, channels=1))
    assert list(records.subjects) == ["Müller"] * 2 and list(records.groups["sex"]) == ["ü"] * 2
    assert records.labels.tolist() == [0, 2] and records.ids[1] == rows[7]["path"]
    rows[8]["path"] = form("NFD", rows[7]["path"])
    write_csv(root / "scans" / "labels.csv", rows)
    refused(options, root, "row 8 (line 10): the path", "in row 7 (line 9) too")


def test_a_column_that_lists_findings(scans, refused):
    root, rows = scans
    for row in rows:
        row["finding"] = "|".join(name for name in ("edema", "mass") if row[name]) or "none"
    write_csv(root / "scans" / "labels.csv", rows)
    options = TABLE | {"classes": ["edema", "mass"], "separator": "|", "no_label": ["none"]}
    assert_is_scans(open_reader("image_table", options, root), rows, True)
    options = TABLE | {"classes": ["mass"], "separator": "|", "no_label": ["none", "edema"]}
    reader = open_reader("image_table", options, root)
    assert reader.classes == ["no mass", "mass"] and not reader.multi_label
    assert reader.read("all", np.arange(ROWS)).labels.tolist() == [row["mass"] for row in rows]
    refused(TABLE | {"classes": ["edema", "mass"]}, root, "give `separator: '|'`")
    refused(TABLE | {"no_label": ["none"]}, root, "`no_label` goes with `label_column` and `separator`")


@pytest.mark.parametrize("words", [("False", "True"), ("FALSE", "TRUE"), ("0.0", "1.0"), ("0.", "1.00")])
def test_zeros_and_ones_as_pandas_and_spreadsheets_write_them(scans, words):
    root, rows = scans
    for row in rows:
        row.update(edema=words[row["edema"]], mass=words[row["mass"]])
    write_csv(root / "scans" / "labels.csv", rows)
    options = {key: TABLE[key] for key in TABLE if key not in ("label_column", "classes")}
    assert_is_scans(open_reader("image_table", options | {"label_columns": ["edema", "mass"]}, root), rows, True)


def test_a_file_that_is_not_there_is_asked_for_by_a_name_like_it(scans, refused):
    root, rows = scans
    refused(
        TABLE | {"table": "Labels.CSV"}, root, "Labels.CSV: no such file (did you mean 'labels.csv'?); mend `table`"
    )


@pytest.fixture
def dicoms(tmp_path):
    """Nine scans of three patients, in files without a suffix; a table with paths and findings alone."""
    rows = []
    (tmp_path / "scans").mkdir()
    for place in range(9):
        who = {"PatientID": f"P{place // 3}", "PatientName": "Doe^Jane", "PatientSex": "FMO"[place // 3]}
        age = {"PatientAge": ("035Y", "061Y", "")[place // 3], "ViewPosition": "" if place == 4 else "PA"}
        counts = picture(place, channels=1).astype(np.uint16) * 16
        write_dicom(tmp_path / "scans" / f"IM{place}", counts, 12, **who, **age)
        rows.append({"path": f"IM{place}", "finding": ("well", "ill")[place % 2]})
    write_csv(tmp_path / "scans" / "labels.csv", rows)
    tags = {"patient": "PatientID", "sex": "PatientSex", "age": "PatientAge", "view": "ViewPosition"}
    groups = ["sex", {"column": "age", "bands": [40]}, "view"]
    return tmp_path, rows, TABLE | {"window": [2048, 4096], "tags": tags, "group_columns": groups}


def test_columns_that_are_read_off_dicom_files(dicoms):
    root, _, options = dicoms
    reader = open_reader("image_table", options, root)
    records = reader.read("all", np.arange(9))
    assert records.subjects.tolist() == [f"P{place // 3}" for place in range(9)]
    assert reader.rows("all").subjects.tolist() == records.subjects.tolist()
    assert set(records.groups) == {"sex", "age", "view"}
    assert records.groups["sex"].tolist() == ["F"] * 3 + ["M"] * 3 + ["O"] * 3
    assert records.groups["age"].tolist() == ["below 40"] * 3 + ["40 and above"] * 3 + ["unknown"] * 3
    assert records.groups["view"].tolist() == ["PA"] * 4 + ["unknown"] + ["PA"] * 4
    known = np.stack([np.rint(picture(place, channels=1) * 16.0 * 255 / 4095) for place in range(9)])
    np.testing.assert_array_equal(records.images[..., 0], known)


def test_tags_that_cannot_be_read_are_told(dicoms, refused):
    root, _, options = dicoms
    refused(options | {"mosaic": "m.png", "tile": [2, 2]}, root, "`tags` need `path_column`")
    refused(options | {"tags": {"path": "PatientID"}}, root, "tags: the table has a column 'path' already")
    refused(options | {"tags": {"patient": "Patient"}}, root, "tags: DICOM has no tag 'Patient'")
    refused(options | {"tags": {"who": "PatientID"}}, root, "no column 'patient'")
    write_dicom(root / "scans" / "IM7", np.zeros((7, 5), np.uint16), PatientID="")
    refused(
        options, root, "row 7 (line 9): the tag PatientID of ", "IM7 has no value, and `subject_column` is 'patient'"
    )
    save(root / "scans" / "a.png", picture(0))
    (root / "scans" / "a.png").rename(root / "scans" / "IM7")
    refused(options, root, "row 7 (line 9)", "IM7 is not a DICOM file, and `tags` are read from such")
    (root / "scans" / "IM7").unlink()
    refused(options | {"unreadable": 0.5}, root, "row 7 (line 9)", "no such file")


def test_what_must_be_known_of_each_row_is_not_called_unknown(dicoms, refused):
    """The word for groups is nobody's name and no class, unless the config has such a class."""
    root, _, options = dicoms
    labelled = options | {"label_column": "view", "classes": ["PA", "AP"]}
    refused(
        labelled, root, "row 4 (line 6): the tag ViewPosition of ", "IM4 has no value, and `label_column` is 'view'"
    )
    known = open_reader("image_table", labelled | {"classes": ["PA", "unknown"]}, root).read("all", np.arange(9))
    assert known.labels.tolist() == [0] * 4 + [1] + [0] * 4
    for place in (2, 5):  # two persons, both of whom would be "P\\ufffd"
        path = root / "scans" / f"IM{place}"
        write_dicom(path, np.zeros((7, 5), np.uint16), PatientID="P0#", SpecificCharacterSet="ISO_IR 192")
        path.write_bytes(path.read_bytes().replace(b"P0#", b"P0" + bytes([0xF0 + place])))
    refused(
        options, root, "the tag PatientID of ", "IM2 has characters that its SpecificCharacterSet lacks (the first of"
    )


def test_unreadable_does_not_tolerate_files_without_tags_and_says_so(dicoms, refused):
    root, _, options = dicoms
    tolerant, file = options | {"unreadable": 0.5}, root / "scans" / "IM7"
    whole = file.read_bytes()
    file.write_bytes(whole[: len(whole) - 20])
    assert len(open_reader("image_table", tolerant, root).rows("all")) == 9, "a picture that is cut off has its tags"
    words = "`unreadable` leaves out images alone, whose tags can be read"
    for content, what in (
        (b"", "IM7 is empty, and no DICOM file"),
        (whole[:300], "IM7 has no picture, or ends before"),
    ):
        file.write_bytes(content)
        refused(tolerant, root, "row 7 (line 9)", what, words)
    file.unlink()
    refused(tolerant, root, "row 7 (line 9)", "no such file", words)
