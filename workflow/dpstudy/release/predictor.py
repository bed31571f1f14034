"""Predictions of a bundle: from image files to scores, with nothing but the bundle's folder."""

import argparse
import csv
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from dpstudy.data.images import decode_all
from dpstudy.errors import StudyError
from dpstudy.evaluation.csv_file import guarded
from dpstudy.features import open_extractor
from dpstudy.features.normalise import normalise
from dpstudy.features.projection import Projection
from dpstudy.files import read_json, sha256
from dpstudy.models.kinds import load_model
from dpstudy.privacy.errata import errata

_BATCH = 256


class Predictor:
    """The model of a bundle, behind all that stands before it.

    Args:
        folder: of the bundle, as `release.bundle` writes it.

    Raises:
        StudyError: a file is missing or damaged, or the model is not the one that the ledger is of.
    """

    def __init__(self, folder: str | Path):
        folder = Path(folder)
        self._facts = read_json(folder / "bundle.json")
        _check_model(folder)
        self._model = load_model(folder / "model.safetensors")
        self.classes = self._facts["classes"]
        self.multi_label = self._facts["multi_label"]
        options = self._facts["features"]
        self._extractor = self._projection = None
        if options["extractor"] != "images":
            self._extractor = open_extractor(options, folder / "backbone", folder)
            self._projection = Projection(folder / "fit") if (folder / "fit").is_dir() else None

    def scores(self, paths: Sequence[str | Path]) -> np.ndarray:
        """(n, classes) scores of image files; the largest is the predicted class, or each its label's.

        Raises:
            StudyError: a file is missing, or no image.
        """
        found = [
            self._model.scores(self._features(paths[start : start + _BATCH])) for start in range(0, len(paths), _BATCH)
        ]
        return np.concatenate(found) if found else np.empty((0, len(self.classes)), np.float32)

    def _features(self, paths: Sequence[str | Path]) -> np.ndarray:
        image, options = self._facts["image"], self._facts["features"]
        files = [Path(path) for path in paths]
        images = decode_all(
            files, [str(path) for path in files], tuple(image["size"]), image["channels"], image["crop"]
        )
        if self._extractor is None:
            return np.ascontiguousarray(images.transpose(0, 3, 1, 2)).reshape(len(images), -1)
        features = self._extractor(images)
        if self._projection is not None:
            features = self._projection(features.reshape(len(features), -1))
        flat = normalise(features, options["normalise"]).reshape(len(features), -1)
        return flat.astype(options["dtype"])


def _check_model(folder: Path) -> None:
    """Refuse a model whose privacy the ledger does not state; one of an earlier version names no model."""
    files = read_json(folder / "ledger.json").get("files", {})
    if files and sha256(folder / "model.safetensors") != files.get("model.safetensors"):
        raise StudyError(
            f"{folder}/model.safetensors: is not the model that ledger.json is of (another SHA-256), so that nobody "
            "knows what privacy it has; take the bundle from its owner again (verify.py says more)"
        )


def main(folder: Path, arguments: Sequence[str]) -> int:
    """`python predict.py IMAGE ...`: a CSV of scores on standard output; the exit status."""
    parser = argparse.ArgumentParser(prog="predict.py", description="Scores of images, as CSV on standard output.")
    parser.add_argument("images", nargs="+", metavar="IMAGE", help="image files")
    images = parser.parse_args(arguments).images
    try:
        predictor = Predictor(folder)
        for sentence in errata(read_json(folder / "ledger.json")):
            print(f"predict.py: an earlier version of dpstudy wrote the ledger: {sentence}", file=sys.stderr)
        scores = predictor.scores(images)
    except StudyError as error:
        print(f"predict.py: {error}", file=sys.stderr)
        return 1
    writer = csv.writer(sys.stdout)
    named = [] if predictor.multi_label else ["predicted"]
    writer.writerow(map(guarded, ["image", *named, *predictor.classes]))
    for path, row in zip(images, scores, strict=True):
        best = [] if predictor.multi_label else [predictor.classes[int(row.argmax())]]
        writer.writerow(map(guarded, [path, *best, *(f"{value:.6g}" for value in row)]))
    return 0
