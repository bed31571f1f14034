"""Predicting with a bundle: from image files to scores, with nothing but the bundle's folder."""

import argparse
import csv
import math
import sys
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from dpstudy.cell.errata import errata
from dpstudy.core.errors import StudyError, in_a_sentence
from dpstudy.core.files import read_json, sha256
from dpstudy.data.images import decode
from dpstudy.data.unlike import unlike
from dpstudy.data.windows import OptionError
from dpstudy.evaluation.csv_file import guarded
from dpstudy.features import open_extractor
from dpstudy.features.normalise import check_normalise, normalise
from dpstudy.features.projection import Projection
from dpstudy.models.kinds import HOLDS_RECORDS, kind_of, load_model
from dpstudy.models.operating_points import Threshold, counts_of, thresholds
from dpstudy.models.probabilities import calibration_of, probabilities, where_shares_are
from dpstudy.release.facts import check_facts

_BATCH = 256
_LONGEST = 1000  # characters of a sentence, which may repeat what a file says
_PIXELS = 1 << 24  # decoded at once, or one image


class Predictor:
    """The model of a bundle with its preprocessing.

    A bundle comes from somebody else: none of its files makes this ask for much more memory than they take, an image of
    4,096 pixels a side, and what a network makes of that.

    Args:
        folder: of the bundle, as `release.bundle` writes it.
        max_pixels: of the largest image that is decoded; Pillow's limit (89 million) where None.
        prevalence: class -> the share of images that bear it where the model is used, if it is not as in training.
        specificity: also say what is there, by thresholds that leave alone so many of the images without it.

    Raises:
        StudyError: a file is missing or damaged, or does not fit the others; the ledger is of another model.
    """

    def __init__(
        self,
        folder: str | Path,
        max_pixels: int | None = None,
        prevalence: Mapping[str, float] | None = None,
        specificity: float | None = None,
    ):
        self._folder, self._max_pixels = Path(folder), max_pixels
        with self._fitting():
            self._open()
        self._prevalence = self._known(prevalence or {})
        self.specificity, self._thresholds = specificity, self._read_off(specificity)

    def _open(self) -> None:
        self._facts = read_json(self._folder / "bundle.json")
        check_facts(self._facts, str(self._folder / "bundle.json"))
        self.classes, self.multi_label = self._facts["classes"], self._facts["multi_label"]
        if kind_of(self._folder / "model.safetensors") == HOLDS_RECORDS:
            raise StudyError(f"{self._folder}: its model holds a point for each private record, which no bundle does")
        self._model = load_model(self._folder / "model.safetensors")
        self._calibration = calibration_of(self._model)
        self.calibrated = self._calibration is not None
        image, options = self._facts["image"], self._facts["features"]
        shape = (*image["size"], image["channels"])
        self._extractor = self._projection = None
        if options["extractor"] != "images":
            self._extractor = open_extractor(options, self._folder / "backbone", self._folder)
            shape = self._extractor.shape(shape)
            if (self._folder / "fit").is_dir():
                self._projection = Projection(self._folder / "fit")
                self._projection.check(math.prod(shape))
                shape = (self._projection.dim,)
            check_normalise(options["normalise"], shape)
        if math.prod(shape) != self._model.inputs:
            raise StudyError(
                f"{self._folder}: an image gives {math.prod(shape)} numbers, and its model takes {self._model.inputs}"
            )
        _check_model(self._folder)

    def _fitting(self):
        return in_a_sentence(f"{self._folder}: its files do not fit together; take it anew from where it came")

    def other_backend(self) -> str:
        """A sentence if features are computed by another package than in the study; else ""."""
        ours, study = getattr(self._extractor, "backend", None), self._facts.get("backend")
        if study is None or ours == study:
            return ""
        return f"features by {ours}, where the study had {study}: scores may differ from its own in their last digits"

    def scores(self, paths: Sequence[str | Path]) -> np.ndarray:
        """(n, classes) scores of image files; the largest is the predicted class, or each belongs to one label.

        Raises:
            StudyError: a file is missing, or no image.
        """
        scores, bad = self.scores_or_reasons(paths)
        if bad:
            raise StudyError(next(iter(bad.values())))
        return scores

    def scores_or_reasons(self, paths: Sequence[str | Path]) -> tuple[np.ndarray, dict[int, str]]:
        """The scores of the readable image files, in order, and position -> the reason for each other file.

        Raises:
            StudyError: the bundle's files do not fit together.
        """
        batch = max(1, min(_BATCH, _PIXELS // math.prod(self._facts["image"]["size"])))
        blocks: list[np.ndarray] = []
        bad, images = {}, []
        for place, path in enumerate(paths):
            try:
                images.append(self._decoded(path, f"image {place + 1}"))
            except OptionError as error:  # of the config, which whoever has the bundle has not
                bad[place] = f"{error.fact}; {self._wanted()}"
            except StudyError as error:
                bad[place] = str(error)
            if len(images) == batch:  # of good files alone: a bad one changes no digit of the others
                blocks.append(self._scored(images))
                images = []
        if images:
            blocks.append(self._scored(images))
        return np.concatenate(blocks) if blocks else np.empty((0, len(self.classes)), np.float32), bad

    def told(self, scores: np.ndarray) -> np.ndarray:
        """The values to print: probabilities if the model is calibrated, else the scores."""
        if self._calibration is None:
            return scores
        if self._prevalence:
            shares = np.array(self._calibration["shares"])
            scores = where_shares_are(scores, shares, self._prevalence, self.multi_label, self._calibration["noise"])
        return probabilities(scores, self.multi_label)

    def there(self, scores: np.ndarray) -> list[list[str]]:
        """For each image and class "1" if it is predicted, "0" if not, "" if noise hides the threshold."""
        p = probabilities(scores, self.multi_label)
        return [
            ["" if t is None else str(int(one >= t.probability)) for t, one in zip(self._thresholds, row, strict=True)]
            for row in p
        ]

    def _read_off(self, specificity: float | None) -> list[Threshold | None]:
        """
        Raises:
            StudyError: a specificity that is none, or the model brings no counts.
        """
        if specificity is None:
            return []
        with in_a_sentence(f"{self._folder / 'model.safetensors'}: its operating points are no counts"):
            counts = counts_of(getattr(self._model, "metadata", {}), len(self.classes))
        if counts is None:
            raise StudyError(
                "--specificity: the model brings no counts that thresholds are read off: its entry had no "
                "`thresholds`, or too few units"
            )
        try:
            return thresholds(*counts, specificity)
        except StudyError as error:
            raise StudyError(f"--specificity: {error}") from None

    def _known(self, prevalence: Mapping[str, float]) -> dict[int, float]:
        """The same by places of classes.

        Raises:
            StudyError: no such class, shares that cannot be, or scores that are no probabilities.
        """
        if prevalence and self._calibration is None:
            raise StudyError("--prevalence: the model's scores are no probabilities, so none can be corrected")
        for name in prevalence:
            if name not in self.classes:
                raise StudyError(f"--prevalence: no class {name!r}; there are {', '.join(self.classes)}")
        shares_by_class = {self.classes.index(name): share for name, share in prevalence.items()}
        if shares_by_class and self._calibration is not None:
            shares = np.array(self._calibration["shares"])
            try:
                where_shares_are(
                    np.zeros((1, len(shares))), shares, shares_by_class, self.multi_label, self._calibration["noise"]
                )
            except StudyError as error:
                raise StudyError(f"--prevalence: {error}") from None
        return shares_by_class

    def unlike(self, path: str | Path, where: str) -> list[str]:
        """The ways in which an image differs from the training images, each as the end of a sentence."""
        return list(unlike(Path(path), where, **self._how()))

    def _wanted(self) -> str:
        image = self._facts["image"]
        alone = "" if image.get("frame") is not None else " as a file of one picture"
        seen = ", as it is seen through the window that README.md names" if "window" in image else ""
        return f"save it{alone} with 8 bits a channel{seen}"

    def _how(self) -> dict:
        return self._facts["image"] | {"size": tuple(self._facts["image"]["size"]), "max_pixels": self._max_pixels}

    def _decoded(self, path: str | Path, where: str) -> np.ndarray:
        with in_a_sentence(f"{where}: {path} cannot be decoded"):
            return decode(Path(path), where, **self._how())

    def _scored(self, images: list[np.ndarray]) -> np.ndarray:
        with self._fitting():
            scores = self._model.scores(self._features(np.stack(images)))
            if scores.shape != (len(images), len(self.classes)):
                raise ValueError(f"scores of shape {scores.shape} for {len(self.classes)} classes")
            return scores

    def _features(self, images: np.ndarray) -> np.ndarray:
        options = self._facts["features"]
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


def options() -> argparse.ArgumentParser:
    """The command line of predict.py, all of which `dpstudy predict` takes too."""
    parser = argparse.ArgumentParser(prog="predict.py", description="Scores of images, as CSV on standard output.")
    parser.add_argument("images", nargs="+", metavar="IMAGE", help="image files")
    parser.add_argument("--max-pixels", type=int, metavar="N", help="of the largest image that is decoded")
    parser.add_argument(
        "--prevalence",
        action="append",
        default=[],
        metavar="CLASS=SHARE",
        help="the share of images that bear a class where they come from, if it is not as in training; repeatable",
    )
    parser.add_argument(
        "--specificity",
        type=float,
        metavar="SHARE",
        help="also say which classes are there (1 or 0), by thresholds that leave alone that share of images without "
        "one, such as 0.9",
    )
    return parser


def main(folder: Path, arguments: Sequence[str]) -> int:
    """Run `python predict.py IMAGE ...`: print scores or probabilities as CSV; the exit status, 1 if an image fails."""
    given = options().parse_args(arguments)
    images = given.images
    try:
        with warnings.catch_warnings(action="ignore"):  # of libraries, beside a sentence of ours
            predictor = Predictor(folder, given.max_pixels, dict(map(_share, given.prevalence)), given.specificity)
            with in_a_sentence(f"{folder / 'ledger.json'}: is no ledger"):
                for sentence in errata(read_json(folder / "ledger.json")):
                    print(f"predict.py: an earlier version of dpstudy wrote the ledger: {sentence}", file=sys.stderr)
            if warning := predictor.other_backend():
                print(f"predict.py: {warning}", file=sys.stderr)
            scores, bad = predictor.scores_or_reasons(images)
    except StudyError as error:
        _say(str(error))
        return 1
    for sentence in bad.values():
        _say(sentence)
    if len(scores):
        if bad:
            _say(f"{len(bad)} of {len(images)} images are left out of the CSV, for the reasons above")
        good = {place: path for place, path in enumerate(images) if place not in bad}
        for place, path in good.items():
            for way in predictor.unlike(path, f"image {place + 1}"):
                _say(f"image {place + 1}: {path} {way}: what it is told of may mean nothing")
        _write_csv(list(good.values()), scores, predictor)
    return 1 if bad else 0


def _share(text: str) -> tuple[str, float]:
    """A class and its share, such as Effusion=0.02.

    Raises:
        StudyError: it is no such text.
    """
    name, _, share = text.rpartition("=")
    try:
        return name, float(share)
    except ValueError:
        raise StudyError(f"--prevalence: {text!r}: must be CLASS=SHARE, such as Effusion=0.02") from None


def _say(sentence: str) -> None:
    print(f"predict.py: {sentence}".replace("\n", " ")[:_LONGEST], file=sys.stderr)


def _write_csv(images: Sequence[str], scores: np.ndarray, predictor: Predictor) -> None:
    writer = csv.writer(sys.stdout)
    named = [] if predictor.multi_label else ["predicted"]
    asked = predictor.specificity is not None
    further = [f"{name} at {predictor.specificity:g}" for name in predictor.classes] if asked else []
    findings = predictor.there(scores) if asked else [[]] * len(scores)
    writer.writerow(map(guarded, ["image", *named, *predictor.classes, *further]))
    for path, row, more in zip(images, predictor.told(scores), findings, strict=True):
        best = [] if predictor.multi_label else [predictor.classes[int(row.argmax())]]
        writer.writerow(map(guarded, [path, *best, *(f"{value:.6g}" for value in row), *more]))
