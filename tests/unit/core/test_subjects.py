"""Whose record it is: a missing person is nobody, wherever it is read, and a number is one name however it is held."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as parquet
import pytest
from PIL import Image

import dpstudy
from dpstudy.core.errors import StudyError
from dpstudy.core.subjects import name_of, names_nobody
from dpstudy.data.prepare import look_through, prepare_shard, sizes
from dpstudy.data.reader import Rows
from dpstudy.data.readers import open_reader
from dpstudy.methods.arguments import subjects_of
from tests.fuzz import sources

NOBODY = [
    *("unknown", "nan", "None", "NA", "N/A", "<NA>", "NaT", "NULL", "-", "?", "", " ", "\t", "UNKNOWN", "Nan", "n/a"),
    *("n.a.", "#N/A", "--", "???", ".", "(unknown)", " null ", "-nan", "<na>", "not available", "-1", "-1.0"),
    *(
        "unbekannt",
        "Inconnu",
        "desconocido",
        "Oka\u0308nd",
        "неизвестно",
        "不明",
        "anonymous",
        "#REF!",
        "#WERT!",
        "#NV",
    ),
    *("ANONYMIZED", "Anon", "ANONYMOUS^PATIENT", "De-identified", "REMOVED", "[redacted]", "XXX", "xxxx^XXXX"),
    *("-99", "-999.0", "nil", "(blank)", "TBD", "no id", "no-name"),
    *("Unknown^Patient", "patient unknown", "ANON^ANON", "Patient^Anonymous", "no patient", "id: unknown", "entfällt"),
]
SOMEBODY = [
    "0",
    "-2",
    "1",
    "P-1",
    "P-4",
    "007",
    "Nadia",
    "Nana",
    "nonesuch",
    "unknown-17",
    "N1",
    "é",
    "李",
    "X",
    "xx",
    "ANON-17",
    "x?",
    "Patient^Anna",
    "patient 7",
    "Na^Li",
    "case",
    "#17",
    "#A!7",
    "ND",
]
OPTIONS = {
    "reader": "image_table", "location": ".", "path_column": "path", "label_column": "label", "classes": ["0", "1"],
    "subject_column": "patient", "unit": "subject", "per_subject": 2, "splits": {"test": 0.3}, "table": "t.csv",
}  # fmt: skip


@pytest.mark.parametrize(("texts", "nobody"), [(NOBODY, True), (SOMEBODY, False)])
def test_who_is_nobody(texts, nobody):
    assert [text for text in texts if names_nobody(text) != nobody] == []


@pytest.fixture
def table(tmp_path):
    """A function: subjects of 60 images -> the options of a table of them."""
    for row in range(60):
        pixels = np.random.default_rng(row).integers(0, 255, (8, 8))
        Image.fromarray(pixels.astype(np.uint8)).save(tmp_path / f"{row}.png")

    def write(subjects, kind="csv"):
        frame = pd.DataFrame({"path": [f"{row}.png" for row in range(60)], "label": ["0", "1"] * 30})
        frame["patient"] = pd.Series(subjects, dtype=None if kind == "parquet" else object)
        name = f"t.{kind}"
        frame.to_parquet(tmp_path / name) if kind == "parquet" else frame.to_csv(tmp_path / name, index=False)
        return OPTIONS | {"table": name}

    return write


def prepared(options, root):
    for split in ("train", "test"):
        prepare_shard("own", options, root, split, 0, root / f"{split}.out", True)
    return {split: parquet.read_table(root / f"{split}.out").to_pydict() for split in ("train", "test")}


@pytest.mark.parametrize("who", [*NOBODY, None, np.nan])
def test_a_table_whose_rows_name_nobody_is_refused_with_their_number(table, tmp_path, who):
    options = table([*[f"P{row}" for row in range(40)], *[who] * 20])
    for look in (
        lambda: prepare_shard("own", options, tmp_path, "train", 0, tmp_path / "o", True),
        lambda: prepare_shard("own", options, tmp_path, "train", 0, tmp_path / "o", True, numbered=True),
        lambda: look_through("own", options, tmp_path, "1e-3"),
        lambda: open_reader("image_table", options, tmp_path),
    ):
        with pytest.raises(StudyError, match=r"t\.csv: row 40 \(line 42\): .*'patient' \(20 of 60 rows\)") as caught:
            look()
        assert "\n" not in str(caught.value) and str(caught.value).endswith("leave them out, or say whose each is")


def nobody_in_parquet(root):
    return sources.table_parquet(root), "table.parquet", "patient", [None, "p2", "p2", "unknown"]


def nobody_in_numbers(root):
    return sources.table_parquet(root), "table.parquet", "patient", [np.nan, 2.0, 2.0, np.nan]


def nobody_in_labels(root):
    return sources.labels_parquet(root), "all.parquet", "subject", ["x", "N/A", "-", "y"]


@pytest.mark.parametrize("write", [nobody_in_parquet, nobody_in_numbers, nobody_in_labels])
def test_so_are_tables_in_parquet(tmp_path, write):
    options, file, column, subjects = write(tmp_path)
    content = parquet.read_table(tmp_path / file)
    content = content.set_column(content.column_names.index(column), column, pa.array(subjects, from_pandas=True))
    parquet.write_table(content, tmp_path / file)
    with pytest.raises(StudyError, match=rf"row [01]: .* in the column '{column}' \(2 of 4 rows\)"):
        sources.read_all(options, tmp_path)


def test_published_lists_of_patients_are_looked_at_too(tmp_path):
    options = sources.nih(tmp_path)
    assert list(sources.read_all(options, tmp_path)["train"].subjects) == ["1", "2", "2"]
    text = sources.csv_text(sources.NIH | {"Patient ID": ["1", "2", "NA", "3"]})
    (tmp_path / "Data_Entry_2017_v2020.csv").write_text(text)
    with pytest.raises(StudyError, match=r"row 2 \(line 4\): .*'NA' in the column 'Patient ID' \(1 of 4 rows\)"):
        sources.read_all(options, tmp_path)


def test_no_reader_can_give_rows_of_nobody():
    """Whatever a new one forgets to look at."""
    with pytest.raises(StudyError, match=r"the record 'b': .*'unknown' \(1 of 2 rows\)"):
        Rows(np.array(["a", "b"], dtype=object), np.array(["p", "unknown"], dtype=object))


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_a_whole_number_is_one_person_however_the_table_has_it(table, tmp_path, kind):
    """pandas makes 17 a 17.0 where a row of the column is, or was, empty."""
    numbers = [row // 4 for row in range(60)]
    plain = prepared(table([str(number) for number in numbers]), tmp_path)
    floats = [float(number) for number in numbers]
    mixed = [str([number, float(number), f" {number}", f"{number}.00"][row % 4]) for row, number in enumerate(numbers)]
    assert len(set(mixed)) > 15
    for written in (floats, mixed):
        found = prepared(table(written, kind), tmp_path)
        assert found == plain
    assert set(plain["train"]["subject"] + plain["test"]["subject"]) == {str(number) for number in range(15)}


@pytest.mark.parametrize("numbered", [False, True])
def test_a_person_counts_once_whatever_names_records_have(table, tmp_path, numbered):
    """Where a budget log has earlier trainings (spending.numbered), 17 and 17.0 were two: in splits, shards and n."""
    options = table([f"{row // 4}{'.0' * (row % 2)}" for row in range(60)]) | {"shards": 1}
    named = {}
    for split in ("train", "test"):
        prepare_shard("own", options, tmp_path, split, 0, tmp_path / split, True, numbered=numbered)
        named[split] = set(parquet.read_table(tmp_path / split).column("subject").to_pylist())
    assert named["train"] | named["test"] == {str(number) for number in range(15)}
    assert not named["train"] & named["test"] and len(named["train"]) == sizes("own", options, tmp_path).units
    with pytest.raises(StudyError, match=f"1/{len(named['train'])}"):
        look_through("own", options, tmp_path, "0.5", numbered)


ALIKE = [
    ["P4", "P4\u200b", "\ufeffP4", "P4\0", "P\u200d4"],
    ["DOE^J", "DOE^J^^^", "DOE^J^", "DOE ^J", "DOE^J=", "DOE^J^^=^"],
    ["Ideo^N=山田^太郎", "Ideo^N^^=山田^太郎^^^="],
    ["DOE^^J", "DOE^^J^^"],
    ["17", 17, 17.0, "17.0\u200b"],
]


@pytest.mark.parametrize("names", ALIKE, ids=lambda names: str(names[0]))
def test_one_name_however_it_is_spelled(names):
    assert {name_of(name) for name in names} == {str(names[0])}
    assert len(set(subjects_of(names, len(names)))) == 1


def test_other_names_are_of_other_persons():
    names = ["DOE^J", "DOE^^J", "^DOE^J", "doe^j", "P4", "p4", "P 4", "P04", "4=", "4", "Doe^J=x"]
    assert len({name_of(name) for name in names}) == len(names)
    with pytest.raises(StudyError, match="names no subject"):
        Rows(np.array(["a"], dtype=object), np.array(["^^\u200b"], dtype=object))


@pytest.mark.parametrize("long", ["1.23457E+15", "9007199254740993.0", "-1e+17", "1.2E+15\u200b", "9" * 5000 + ".0"])
def test_rounded_numbers_are_no_names(table, tmp_path, long):
    """Spreadsheets write long numbers so: several persons have one."""
    options = table([*[f"P{row}" for row in range(58)], long, long])
    with pytest.raises(StudyError, match=r"row 58 .*'patient' is a long number that was rounded \(2 of 60 rows\)"):
        look_through("own", options, tmp_path, "1e-3")


@pytest.mark.parametrize(("kind", "first"), [("float32", 2**24), ("float16", 2**11), ("float64", 2**53)])
def test_numbers_that_parquet_holds_as_short_floats_are_no_names(table, tmp_path, kind, first):
    """70,000,001 and 70,000,003 are one float of 32 bits: 120 persons were 16, without a word."""
    few = np.repeat(np.arange(15), 4).astype(kind)
    look_through("own", table(few, "parquet"), tmp_path, "1e-2")
    options = table(np.append(few[2:], np.array([first, first + 1], kind)), "parquet")
    words = r"row 58: .*'patient' is a long number that was rounded \(2 of 60 rows\)"
    with pytest.raises(StudyError, match=words):
        look_through("own", options, tmp_path, "1e-2")
    content = parquet.read_table(tmp_path / "t.parquet")
    images = [{"bytes": (tmp_path / name).read_bytes(), "path": name} for name in content.column("path").to_pylist()]
    inside = content.drop_columns("path").append_column("image", pa.array(images))
    parquet.write_table(inside.slice(0, 58), tmp_path / "inside-0.parquet")
    parquet.write_table(inside.slice(58), tmp_path / "inside-1.parquet")
    embedded = {key: value for key, value in options.items() if key != "path_column"}
    with pytest.raises(StudyError, match=words):
        look_through("own", embedded | {"table": "inside-*.parquet", "image_column": "image"}, tmp_path, "1e-2")


def fit(subjects, per_subject=40):
    random = np.random.default_rng(0)
    rows = random.normal(size=(40, 5)), np.arange(40) % 2
    return dpstudy.fit("least_squares", *rows, classes=2, epsilon=1, delta=1e-5, unit="subject", subjects=subjects,
                       per_subject=per_subject).ledger["n"]  # fmt: skip


@pytest.mark.parametrize("who", [*NOBODY, None, np.nan, pd.NA, pd.NaT, np.float32("nan"), b"unknown"])
@pytest.mark.parametrize("make", [list, lambda values: pd.Series(values, dtype=object)], ids=["list", "series"])
def test_fit_knows_nobody_either(who, make):
    with pytest.raises(StudyError, match=r"^row 10: names no subject, but .* \(10 of 40 rows\); they would") as caught:
        fit(make([*[str(row) for row in range(10)], *[who] * 10, *[str(row) for row in range(20)]]))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "codes",
    [
        pd.factorize(np.array(["a", None, "b"], dtype=object))[0],
        pd.Categorical(["a", None, "b"]).codes,
        np.array([1, np.iinfo(np.int64).min, 2]),
        np.array([1, np.iinfo(np.int32).min, 2], np.int32),
    ],
)
def test_fit_knows_the_codes_of_missing_values(codes):
    with pytest.raises(StudyError, match=r"row 1: names no subject, but '-\d+' \(1 of 3 rows\)"):
        subjects_of(codes, 3)


@pytest.mark.parametrize(
    ("subjects", "persons"),
    [
        (pd.Series([17, "P4"] * 20), 2),
        ([17, 17.0, "17", "17.0", " 17", np.int64(17), "P4", "p4"] * 5, 3),
        ([17.0, 18.0] * 20, 2),
        (np.array([3, 4] * 20), 2),
        (pd.Series([1, 2] * 20, dtype="Int64"), 2),
        (pd.Categorical(["a", "b"] * 20), 2),
        ([("a"), b"a"] * 20, 1),
        ([True, "P4"] * 20, 2),
        (["007", "7"] * 20, 2),
    ],
)
def test_fit_takes_names_as_text(subjects, persons):
    assert fit(subjects) == persons


@pytest.mark.parametrize(
    "numbers", [np.array([2.0**53, 1]), np.array([2**24 + 1, 1], np.float32), np.array([2048, 1], np.float16)]
)
def test_fit_refuses_numbers_that_were_rounded(numbers):
    with pytest.raises(StudyError, match=r"row 0: .* is a long number that was rounded \(1 of 2 rows\)"):
        subjects_of(numbers, 2)
    assert subjects_of(numbers[1:], 1).tolist() == ["1"]
