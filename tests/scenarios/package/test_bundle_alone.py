"""A bundle in an environment that has the packages of its requirements.txt alone."""

import csv
import io
import subprocess
from dataclasses import replace

import numpy as np
import pytest
from PIL import Image

from dpstudy.features.scatternet import ScatterNet
from dpstudy.release.bundle import write_bundle
from dpstudy.release.predictor import Predictor
from tests.dicom_files import write_dicom
from tests.packages import environment
from tests.unit.release.test_bundle import METHODS, PIXELS, origin_of, pictures, train

SCANS = "scans of 12 bits"
CASES = {
    "pixels": (METHODS["least squares"], PIXELS, {"extractor": "pixels"}),
    "scatternet": (METHODS["least squares"], ScatterNet("unit"), {"extractor": "scatternet"}),
    "random features": (METHODS["kernel means"], PIXELS, {"extractor": "pixels"}),
    SCANS: (METHODS["least squares"], PIXELS, {"extractor": "pixels"}),
}
pytestmark = pytest.mark.slow


@pytest.mark.parametrize("name", CASES)
def test_it_predicts(name, tmp_path):
    options, extractor, features = CASES[name]
    cell, bundle = train(tmp_path / "cell", options, 1, extractor=extractor), tmp_path / "bundle"
    features |= {"scaling": "unit", "normalise": "none", "dtype": "float32"}
    origin = origin_of(cell, features=features)
    scans = name == SCANS
    if scans:
        origin = replace(origin, image=origin.image | {"window": [2048, 4096]})
    write_bundle("toy", origin, [], str(bundle))
    listed = [line for line in (bundle / "requirements.txt").read_text().splitlines() if not line.startswith("#")]
    assert sorted(line.partition("==")[0] for line in listed) == [
        "numpy", "pillow", *["pydicom", "python-gdcm"][: 2 * scans], "safetensors",
    ]  # fmt: skip
    python = environment(tmp_path / "alone", listed)
    images, paths = pictures(5, 4)[0], []
    for number, image in enumerate(images):
        paths.append(tmp_path / f"{number}.png")
        if scans and number % 2:
            write_dicom(paths[-1], image[..., 0].astype(np.uint16) * 16)  # known by what it holds
        else:
            Image.fromarray(image[..., 0]).save(paths[-1])
    done = subprocess.run(
        [python, "-I", bundle / "predict.py", *paths], cwd=tmp_path, env={}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert ("features by numpy, where the study had torch" in done.stderr) == (name == "scatternet")
    rows = list(csv.DictReader(io.StringIO(done.stdout)))
    found = np.array([[float(row[label]) for label in "abc"] for row in rows])
    expected = Predictor(bundle).scores(paths)  # here, with torch
    assert np.allclose(found, expected, rtol=2e-5, atol=1e-6 if name != "scatternet" else 1e-4)
    assert Predictor(bundle).other_backend() == ""
    size = sum(path.stat().st_size for path in bundle.rglob("*") if path.is_file())
    assert size < 1.5e6
