"""CheXpert: `train.csv` and `valid.csv`, with a column per finding (1, 0, -1 for uncertain, or empty), and images.

The subject is the patient, who stands in the path; groups are sex, age band and view, unless `group_columns` says
otherwise. `valid.csv` serves as the split
test.
"""

import re
from pathlib import Path

import numpy as np

from dpstudy.core.errors import StudyError
from dpstudy.data.findings import classes_of, labels_of
from dpstudy.data.group_columns import groups_of
from dpstudy.data.listed import ListedImages, Listing, age_bands, sized_location
from dpstudy.data.reader import IMAGE_FILES, Declared, Reader
from dpstudy.data.source import inside
from dpstudy.data.table import TextTable, read_text_table

READER = Declared(
    keys=("location", *IMAGE_FILES, "findings", "uncertain", "views", "group_columns"), shape=(None, None, 1)
)

FINDINGS = ("Atelectasis", "Cardiomegaly", "Consolidation", "Edema", "Pleural Effusion")  # those that are ranked
_LISTS = {"train": "train.csv", "test": "valid.csv"}
_PATIENT = re.compile(r"(?:^|/)(patient[0-9]+)/")
_MEANINGS = {"1": 1, "0": 0, "": 0, "-1": -1}


def open(options: dict, data_root: Path) -> Reader:
    """List the images of `location`, the folder that holds the tables.

    Options: `size` (needed), `channels` (1 where absent), `resize` (stretch where absent), `findings` (the five that
    are ranked, where absent; one alone makes two classes), `uncertain` (zeros where absent; ones; or ignore, which
    leaves out a record with any), `views` (frontal where absent, lateral, all), `group_columns`. An empty field counts
    as 0: the finding is not mentioned.

    Raises:
        StudyError: a table or a column is missing, a field has no meaning, or a path names no patient.
    """
    folder = sized_location("chexpert", options, data_root)
    views, uncertain = options.get("views", "frontal"), options.get("uncertain", "zeros")
    findings = [str(name) for name in options.get("findings") or FINDINGS]
    entries = options.get("group_columns")
    listings = {pool: _list(folder, name, findings, views, uncertain, entries) for pool, name in _LISTS.items()}
    return ListedImages(listings, classes_of(findings), {"channels": 1} | options)


def _list(folder: Path, name: str, findings: list[str], views: str, uncertain: str, entries: list | None) -> Listing:
    table = read_text_table(folder / name)
    labels = np.stack([_labels(table, finding) for finding in findings], axis=1)
    view = table.column("Frontal/Lateral")
    kept = np.ones(table.rows, bool) if views == "all" else np.char.lower(view.astype(str)) == views
    if uncertain == "ignore":
        kept &= (labels >= 0).all(1)
    labels = np.where(labels < 0, int(uncertain == "ones"), labels).astype(np.int8)
    rows = np.flatnonzero(kept)
    places = [table.where(row) for row in rows.tolist()]
    paths = table.column("Path")
    ids = np.array(
        [_path(folder, str(path), place) for path, place in zip(paths[rows], places, strict=True)], dtype=object
    )
    if entries:
        groups = groups_of(table, entries)
    else:
        groups = {"sex": table.column("Sex"), "age": age_bands(table.column("Age")), "view": view}
    groups = {name: values[rows].astype(object) for name, values in groups.items()}
    patients = np.array([_patient(path, place) for path, place in zip(ids, places, strict=True)], dtype=object)
    return Listing(ids, folder, labels_of(labels[rows]), str(table.path), patients, groups)


def _labels(table: TextTable, finding: str) -> np.ndarray:
    values = []
    for row, text in enumerate(table.column(finding, empty=True)):
        meaning = _MEANINGS.get(text.removesuffix(".0"))
        if meaning is None:
            raise StudyError(f"{table.where(row)}: {text!r} in the column {finding!r}; it must be 1, 0, -1 or empty")
        values.append(meaning)
    return np.array(values, np.int8)


def _path(folder: Path, text: str, where: str) -> str:
    """Below `folder`: the tables' paths begin with the name of the unpacked archive, whatever it is called now."""
    parts = text.split("/", 1)
    below = parts[1] if len(parts) == 2 and parts[0].lower().startswith("chexpert") else text
    return inside(folder, below, where).relative_to(folder).as_posix()


def _patient(path: str, where: str) -> str:
    match = _PATIENT.search(path)
    if not match:
        raise StudyError(f"{where}: the path {path!r} names no patient (patient00001/...)")
    return match[1]
