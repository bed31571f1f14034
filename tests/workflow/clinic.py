"""Images of a clinic's patients, and a study of them whose privacy unit is the person."""

import csv

import numpy as np
from PIL import Image

CONFIG = {
    "study": "subjects",
    "datasets": {
        "clinic": {
            "reader": "image_table", "location": "clinic", "table": "table.csv", "label_column": "label",
            "classes": ["a", "b"], "path_column": "path", "subject_column": "patient", "group_columns": ["sex"],
            "size": [8, 8],
            "channels": 1, "splits": {"test": 0.3}, "delta": "1e-3", "unit": "subject", "per_subject": 2, "shards": 2,
        }
    },
    "features": {"pixels": {"extractor": "pixels", "normalise": "l2"}},
    "methods": {
        "least-squares": {"method": "least_squares"},
        "dp-sgd": {
            "method": "first_order", "learning_rate": 1.0, "clipping_norm": 1.0, "steps": 5, "batch_size": 20,
            "tuned_on": "nothing",
        },
    },
    "epsilons": ["2"],
    "evaluation": {"metrics": ["top1", "auc"], "intervals": 50, "smallest_group": 5, "per_label": True},
    "seeds": [0],
    "noise": "secure",
    "release": {"budget": "1000"},  # nobody is asked
}  # fmt: skip


def write_clinic(folder):
    """160 images of 60 patients, one to five each."""
    rng = np.random.default_rng(0)
    (folder / "images").mkdir(parents=True)
    rows, owners = [], np.repeat(np.arange(60), rng.integers(1, 6, 60))
    for row, owner in enumerate(owners):
        label = int(owner % 2)
        picture = rng.integers(0, 128, (8, 8)).astype(np.uint8) + 100 * label
        Image.fromarray(picture.astype(np.uint8)).save(folder / "images" / f"{row}.png")
        rows.append({"path": f"images/{row}.png", "label": "ab"[label], "patient": f"P{owner}", "sex": "fm"[owner % 2]})
    with open(folder / "table.csv", "w", newline="") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows(rows)
