"""A hospital's folder of DICOM files, made from the public NIH X-rays: python -m tests.xray_scans NIH-FOLDER FOLDER.

Each scan has 12 bits and tags of its patient, sex, age and view; labels.csv has a line a scan and a column a finding.
"""

import csv
import sys
from pathlib import Path

import numpy as np
from PIL import Image

from tests.dicom_files import write_dicom

FINDINGS = ("Effusion", "Infiltration", "Atelectasis", "Cardiomegaly", "Pneumothorax", "Nodule")
TILE, COLUMNS = 64, 10


def write_scans(nih: Path, folder: Path) -> int:
    """Write the scans and their table; how many there are."""
    folder.mkdir(parents=True)
    mosaic = np.asarray(Image.open(nih / "images.png").convert("L")).astype(np.uint16)
    with open(nih / "metadata.csv", newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    with open(folder / "labels.csv", "w", newline="", encoding="utf-8") as file:
        lines = csv.writer(file, lineterminator="\n")
        lines.writerow(["path", *FINDINGS])
        for place, row in enumerate(rows):
            top, left = place // COLUMNS * TILE, place % COLUMNS * TILE
            tags = {"PatientID": row["patient_id"], "PatientSex": row["patient_gender"]}
            tags |= {"PatientAge": f"{int(row['patient_age']):03d}Y", "ViewPosition": row["view_position"]}
            name = f"IM{place:04d}.dcm"
            write_dicom(folder / name, 16 * mosaic[top : top + TILE, left : left + TILE], **tags)
            lines.writerow([name, *(row[finding] for finding in FINDINGS)])
    return len(rows)


if __name__ == "__main__":
    print(f"{write_scans(Path(sys.argv[1]), Path(sys.argv[2]))} scans in {sys.argv[2]}")
