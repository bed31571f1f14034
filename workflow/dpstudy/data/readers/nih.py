"""NIH ChestX-ray14: `Data_Entry_2017*.csv`, the images in `images*/`, and the official split lists if present.

The subject is the patient; groups are sex, age band and view, unless `group_columns` says otherwise. With
`train_val_list.txt` and `test_list.txt` the pools are train and test (they share no patient), else all.
"""

from dataclasses import replace
from pathlib import Path

import numpy as np

from dpstudy.core.errors import StudyError
from dpstudy.data.findings import classes_of, labels_of
from dpstudy.data.group_columns import groups_of
from dpstudy.data.listed import ListedImages, Listing, age_bands, sized_location
from dpstudy.data.reader import IMAGE_FILES, Declared, Reader
from dpstudy.data.source import read_text
from dpstudy.data.table import TextTable, read_text_table

READER = Declared(keys=("location", *IMAGE_FILES, "findings", "group_columns"), shape=(None, None, 1))

FINDINGS = (
    "Atelectasis", "Cardiomegaly", "Consolidation", "Edema", "Effusion", "Emphysema", "Fibrosis", "Hernia",
    "Infiltration", "Mass", "Nodule", "Pleural_Thickening", "Pneumonia", "Pneumothorax",
)  # fmt: skip
_NONE = "No Finding"
_LISTS = {"train": "train_val_list.txt", "test": "test_list.txt"}
_SEX = ("Patient Sex", "Patient Gender")  # its name in the tables of 2020 and 2017


def open(options: dict, data_root: Path) -> Reader:
    """List the images of `location`, the folder that holds the table.

    Options: `size` (needed), `channels` (1 where absent), `resize` (stretch where absent), `findings` (all fourteen
    where absent; one alone makes two classes), `group_columns`.

    Raises:
        StudyError: the table, a column or an image is missing, a finding is unknown, or a list names an image that the
            table has not.
    """
    folder = sized_location("nih", options, data_root)
    tables = sorted(folder.glob("Data_Entry_2017*.csv"))
    if len(tables) != 1:
        raise StudyError(f"{folder}: it must hold one table Data_Entry_2017*.csv; there are {len(tables)}")
    table = read_text_table(tables[0])
    findings = [str(name) for name in options.get("findings") or FINDINGS]
    names = table.column("Image Index")
    places = {str(name): row for row, name in enumerate(names)}
    files = {path.name: path.relative_to(folder).as_posix() for path in folder.glob("images*/**/*.png")}
    if all((folder / name).is_file() for name in _LISTS.values()):
        rows = {pool: _rows(folder / name, places) for pool, name in _LISTS.items()}
    else:
        rows = {"all": np.arange(table.rows)}
    labels = labels_of(_labels(table, findings))
    groups = groups_of(table, options["group_columns"]) if options.get("group_columns") else _groups(table)
    ids = np.array([files.get(str(name), "") for name in names], dtype=object)
    whole = Listing(ids, folder, labels, str(table.path), groups=groups)
    listings = {pool: _part(whole, table, chosen) for pool, chosen in rows.items()}
    return ListedImages(listings, classes_of(findings), {"channels": 1} | options)


def _rows(path: Path, places: dict[str, int]) -> np.ndarray:
    rows = []
    for number, line in enumerate(read_text(path).split(), start=1):
        if line not in places:
            raise StudyError(f"{path}: line {number}: the image {line!r} does not stand in the table")
        rows.append(places[line])
    return np.array(rows, np.int64)


def _groups(table: TextTable) -> dict[str, np.ndarray]:
    """Sex, age band and view of every line."""
    sex = next((column for column in _SEX if column in table.columns), _SEX[0])
    return {
        "sex": table.column(sex),
        "age": age_bands(table.column("Patient Age")),
        "view": table.column("View Position"),
    }


def _part(whole: Listing, table: TextTable, rows: np.ndarray) -> Listing:
    missing = next((row for row in rows if not whole.ids[row]), None)
    if missing is not None:
        name = table.column("Image Index")[missing]
        raise StudyError(f"{table.where(missing)}: no image {name} in {whole.folder}/images*/")
    return replace(whole.take(rows), subjects=table.subjects("Patient ID")[rows])


def _labels(table: TextTable, findings: list[str]) -> np.ndarray:
    """(n, m) of 0 and 1: which findings each line names."""
    known = {*FINDINGS, *findings, _NONE}
    labels = np.zeros((table.rows, len(findings)), np.int8)
    for row, text in enumerate(table.column("Finding Labels")):
        for name in str(text).split("|"):
            if name not in known:
                raise StudyError(f"{table.where(row)}: unknown finding {name!r}; there are {', '.join(sorted(known))}")
            if name in findings:
                labels[row, findings.index(name)] = 1
    return labels
