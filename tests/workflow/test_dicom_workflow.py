"""A hospital's DICOM files in the real workflow: persons and groups from tags, and no other tag anywhere."""

import csv
import os
import subprocess
import sys

import numpy as np
import pytest

from tests.dicom_files import write_dicom
from tests.workflow.clinic import CONFIG
from tests.workflow.conftest import make_folder

pytestmark = pytest.mark.slow
SECRETS = {"PatientName": "Grozny^Ivana", "InstitutionName": "Sanatorium Berghof", "AccessionNumber": "ACC7731"}
LS = "clinic/pixels/least-squares/eps=2"


def write_hospital(folder):
    """100 scans of 50 patients, 12 bits, some MONOCHROME1, in files without a suffix; a table of paths and labels."""
    rng = np.random.default_rng(0)
    folder.mkdir(parents=True)
    with open(folder / "table.csv", "w", newline="") as file:
        lines = csv.writer(file)
        lines.writerow(["path", "label"])
        for scan in range(100):
            owner, label = scan // 2, scan // 2 % 2
            counts = (rng.integers(0, 1500, (8, 8)) + 2000 * label).astype(np.uint16)
            inverse = scan % 5 == 0
            kind = {"PhotometricInterpretation": "MONOCHROME1" if inverse else "MONOCHROME2"}
            who = {"PatientID": f"P{owner}", "PatientSex": "FM"[owner % 2], "PatientAge": f"{30 + owner % 40:03d}Y"}
            write_dicom(folder / f"IM{scan:04d}", 4095 - counts if inverse else counts, **kind, **who, **SECRETS)
            lines.writerow([f"IM{scan:04d}", "ab"[label]])


def test_from_scans_to_a_bundle(tmp_path):
    study = make_folder(tmp_path / "study")
    write_hospital(study.path / "data/clinic")
    own = CONFIG["datasets"]["clinic"] | {
        "window": [2048, 4096],
        "tags": {"patient": "PatientID", "sex": "PatientSex", "age": "PatientAge"},
        "group_columns": ["sex", {"column": "age", "bands": [50]}],
    }
    config = CONFIG | {"datasets": {"clinic": own}, "methods": {"least-squares": {"method": "least_squares"}}}
    by_age = {"style": "disparity", "dataset": "clinic", "metric": "auc", "column": "age"}
    by_age["rows"] = [{"features": "pixels", "entry": "least-squares"}]
    study.write_config(config | {"tables": {"age": by_age}})
    result = study.snakemake("results/tables/age.csv", f"results/release/{LS}")
    assert result.returncode == 0, result.stdout + result.stderr
    rows = list(csv.DictReader((study.path / "results/tables/age.csv").open()))
    assert {"below 50", "50 and above"} <= {row["group"] for row in rows}
    for root, _, names in os.walk(study.path):
        if "data/clinic" in root:
            continue
        for name in names:
            content = (study.path / root / name).read_bytes()
            for secret in SECRETS.values():
                assert secret.encode() not in content, f"{root}/{name} has {secret}"
    assert not any(secret in result.stdout + result.stderr for secret in SECRETS.values())
    bundle = study.path / "results/release" / LS
    new = write_dicom(tmp_path / "new", np.full((30, 20), 3400, np.uint16), **SECRETS)
    command = [sys.executable, "-I", bundle / "predict.py", new]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    (row,) = csv.DictReader(done.stdout.splitlines())
    assert row["predicted"] in ("a", "b") and "pydicom==" in (bundle / "requirements.txt").read_text()
