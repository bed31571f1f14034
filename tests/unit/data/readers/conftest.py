"""Small folders in the formats of well-known collections."""

import numpy as np
import pytest
from PIL import Image


def picture(path, seed, shape=(12, 10, 3)):
    path.parent.mkdir(parents=True, exist_ok=True)
    pixels = np.random.default_rng(seed).integers(0, 256, shape, np.uint8)
    Image.fromarray(pixels if shape[2] == 3 else pixels[..., 0]).save(path)
    return path


CHEXPERT = (
    "Path,Sex,Age,Frontal/Lateral,AP/PA,No Finding,Cardiomegaly,Edema,Consolidation,Atelectasis,Pleural Effusion\n"
)


@pytest.fixture
def chexpert(tmp_path):
    folder = tmp_path / "chexpert"
    rows = {
        "train": [
            "patient00001/study1/view1_frontal.jpg,Female,68,Frontal,AP,,1.0,-1.0,,0.0,1.0",
            "patient00001/study1/view2_lateral.jpg,Female,68,Lateral,,,1.0,,,,",
            "patient00002/study3/view1_frontal.jpg,Male,39,Frontal,PA,1.0,,,,,",
        ],
        "valid": ["patient64541/study1/view1_frontal.jpg,Male,85,Frontal,AP,0.0,1.0,0.0,0.0,0.0,0.0"],
    }
    for name, lines in rows.items():
        paths = [f"CheXpert-v1.0-small/{name}/{line}" for line in lines]
        (folder).mkdir(exist_ok=True)
        (folder / f"{name}.csv").write_text(CHEXPERT + "\n".join(paths) + "\n")
        for seed, line in enumerate(lines):
            picture(folder / name / line.split(",")[0], seed, (9, 11, 1))
    return tmp_path
