"""The model card of a bundle: README.md, with YAML metadata for the Hugging Face Hub.

It is made of what the bundle holds already (bundle.json, the ledger, lines of the statement), of what made the cell,
and of scores on test records only where these are public. What only the owner can say is left open.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from dpstudy.evaluation.aggregate import mean_interval
from dpstudy.evaluation.metrics import metric_of, ordered
from dpstudy.models.operating_points import thresholds
from dpstudy.models.probabilities import TOLD_APART
from dpstudy.release.statement import guarantee_lines
from dpstudy.tables.numbers import interval_text, significant

_LISTED = 20  # classes that are named one by one
_DECIMALS = {True: 2, False: 4}  # of an interval's ends, in percent or as fractions
_CALIBRATED = (
    "- Probabilities are calibrated, on {}: where a class is commoner or rarer than it was there, they are too small "
    "or too large ({})."
)
_CORRECTS = "`predict.py --prevalence CLASS=SHARE` corrects what noise does not hide"
_HIDDEN = "noise hides how common each class was, so that nothing can be corrected"
_SPECIFICITY = 0.9
_OWNER = "*To be written by the owner*"


@dataclass(frozen=True)
class Trained:
    """Facts about a cell for its card besides the ledger, all free of private records.

    Attributes:
        method: the method's name.
        config, library: hashes of the cell's config and of the library's code.
        versions: of what the model was trained with.
        scores: of this model, metric -> (value, its interval over test records or None); None where none may be given.
        calibrated: on what, where its scores are log odds, and probabilities are given.
        hidden: noise hides how common each class was in training.
        before: metrics of probabilities, as they would be without that; of `scores` alone.
    """

    method: str
    config: str
    library: str
    versions: Mapping[str, str]
    scores: Mapping[str, tuple[float, tuple[float, float] | None]] | None
    calibrated: str = ""
    hidden: bool = False
    before: Mapping[str, float] = field(default_factory=dict)


def trained(metrics: Mapping, test_public: bool) -> Trained:
    """The facts in a metrics.json that a card may state.

    Scores are of the first seed, whose model is released: those of other seeds, and so any mean, are of models that
    would spend privacy of their own. Hashes of data are left out, since they are computed from private records.

    Args:
        metrics: the cell's.
        test_public: whether the records of the test split are public.
    """
    first, made_by = metrics["seeds"][0], metrics["made_by"]
    names = [name for name in ordered(first) if not metric_of(name).on_training]
    scores = {name: (first[name], mean_interval([first], name)) for name in names}
    return Trained(
        metrics["method"],
        made_by["config"],
        made_by["library"],
        made_by["versions"],
        scores if test_public else None,
        _source(first.get("calibration")),
        _is_hidden(first.get("calibration")),
        first.get("before", {}),
    )


def card(
    ledger: Mapping,
    facts: Mapping,
    cell: Trained,
    weights: Sequence[Mapping] = (),
    points: tuple[np.ndarray, float] | None = None,
) -> str:
    """The model card as Markdown; equal bundles give equal bytes.

    Args:
        ledger: of the cell.
        facts: what bundle.json says: name, classes, multi_label, image, features.
        cell: what else may be said of the cell.
        weights: whose the weights of public networks are, of each its package, version, licence, source, trained_on.
        points: counts that thresholds are read off, and their noise, where the model brings some.
    """
    sections = {
        "Intended use and limits": _use(facts, cell),
        "Training data": _data(ledger),
        "Preprocessing": _preprocessing(facts, weights),
        "How to use": _how(facts["multi_label"], cell.calibrated),
        **({"Thresholds": _thresholds(facts["classes"], points)} if points else {}),
        "Evaluation": _evaluation(cell.scores, cell.before),
        "Privacy": _privacy(ledger),
        "Provenance": _provenance(facts["name"], cell),
    }
    intro = [
        f"# {facts['name']}",
        "",
        f"An image classifier that was trained with differential privacy, by the method `{cell.method}` of dpstudy.",
    ]
    body = [line for title, lines in sections.items() for line in ("", f"## {title}", "", *lines)]
    return "\n".join([*_head(cell.scores), "", *intro, *body, ""])


def _head(scores: Mapping | None) -> list[str]:
    metrics = [hub for name in scores or {} if (hub := metric_of(name).hub)]
    return [
        "---",
        "# license: to be filled in by the owner, such as apache-2.0",
        "library_name: dpstudy",
        "pipeline_tag: image-classification",
        "tags:",
        "- differential-privacy",
        *(["metrics:", *(f"- {name}" for name in metrics)] if metrics else []),
        "---",
    ]


def _thresholds(classes: Sequence[str], points: tuple[np.ndarray, float]) -> list[str]:
    """What is read off noisy counts of training records, which the ledger accounts for."""
    lines = ["| class | there from a probability of | of those with it are found |", "| --- | --- | --- |"]
    for name, threshold in zip(classes, thresholds(*points, _SPECIFICITY), strict=True):
        fields = ("hidden by noise", "")
        if threshold is not None:
            share, off = threshold.found or (math.nan, math.nan)
            known = "hidden by noise" if math.isnan(share) else f"{100 * share:.0f} % ± {200 * off:.0f} (noise)"
            fields = (f"{threshold.probability:.3g}", known)
        lines.append(f"| {_plain(name)} | {fields[0]} | {fields[1]} |")
    return [
        f"Where {100 * _SPECIFICITY:g} % of the training images without a class are left alone (of persons, where "
        "theirs are averaged), by noisy counts of the training records (`operating_points` in the ledger; on new "
        "images somewhat less is found). `predict.py "
        f"--specificity {_SPECIFICITY:g}` says what is there, and takes any other share.",
        "",
        *lines,
    ]


def _source(calibration: Mapping | None) -> str:
    if calibration is None:
        return ""
    return "public test records" if "on" in calibration else "noisy counts of the training records"


def _is_hidden(calibration: Mapping | None) -> bool:
    """As `probabilities.where_shares_are` has it, of every class."""
    return calibration is not None and max(calibration["shares"]) < TOLD_APART * calibration["noise"]


def _use(facts: Mapping, cell: Trained) -> list[str]:
    classes, several = facts["classes"], facts["multi_label"]
    names = ", ".join(f"`{_plain(name)}`" for name in classes) if len(classes) <= _LISTED else "named in `bundle.json`"
    kind = "labels, of which an image may have several" if several else "classes, of which an image has one"
    return [
        f"- It scores images for {len(classes)} {kind}: {names}.",
        _CALIBRATED.format(cell.calibrated, _HIDDEN if cell.hidden else _CORRECTS)
        if cell.calibrated
        else "- Scores are no probabilities.",
        "- It knows images like those that it was trained on. On others its scores mean nothing.",
        "- Training with privacy may cost rare classes and small groups more than others: measure them before anybody "
        "relies on the model.",
        f"- {_OWNER}: what the model is for, and what it must not be used for.",
    ]


def _data(ledger: Mapping) -> list[str]:
    return [
        "- Private records, which are not part of this folder. `ledger.json` states their unit of privacy "
        f"({ledger['unit']}) and how many there are (n = {ledger['n']}); this card says no more of them.",
        f"- {_OWNER}, from what is public anyway: where the images come from, what they show, when they were taken, "
        "and who labelled them.",
    ]


def _preprocessing(facts: Mapping, weights: Sequence[Mapping]) -> list[str]:
    image, features = facts["image"], dict(facts["features"])
    height, width = image["size"]
    fitted = "by cutting out the middle" if image["crop"] else "by stretching"
    page = f" (of a file with several pictures number {image['frame']}, from 0)" if "frame" in image else ""
    options = ", ".join(f"{key} `{_plain(value)}`" for key, value in features.items() if key != "extractor")
    lines = [
        "`predict.py` does all of this:",
        "",
        f"- An image is decoded as viewers show it{page}{_window(image)} and brought to {height} x {width} pixels with "
        f"{image['channels']} channel{'' if image['channels'] == 1 else 's'}, {fitted}.",
        f"- Features: `{features['extractor']}`" + (f" ({options})." if options else "."),
    ]
    for part, what in (("backbone", "a network"), ("fit", "a projection")):
        if part in features:
            lines.append(
                f"- `{part}/` is {what} that was made of a public set; see `{part}/card.json`, and PRIVACY.md for what "
                "private records had to do with that, if anything."
            )
    return lines + [
        f"- The network's weights are those of {one['package']} {one['version']} ({one['source']}), trained on "
        f"{one['trained_on']}, under the licence {one['licence']}, this copy too."
        for one in weights
    ]


def _window(image: Mapping) -> str:
    """How more than 8 bits become 8, in words."""
    if "window" not in image:
        return ""
    if image["window"] == "file":
        return ", one of more than 8 bits a channel through the window of its file,"
    centre, width = image["window"]
    return f", one of more than 8 bits a channel through a window {width:g} wide around {centre:g},"


def _how(several: bool, calibrated: str) -> list[str]:
    kind = "probability" if calibrated else "score"
    columns = f"`image` and a {kind} for each label" if several else f"`image`, `predicted` and a {kind} for each class"
    return [
        "```sh",
        "pip install -r requirements.txt  # in an environment outside this folder",
        "python verify.py  # whether this folder is as it was released",
        "python predict.py image1.png image2.png > scores.csv",
        "```",
        "",
        f"The CSV has the columns {columns}. An image that cannot be read is left out of it: a sentence on standard "
        "error says which and why, the others are scored, and the exit status is 1 instead of 0. Of an image that is "
        "unlike those that it learned from, in size, colour or depth, standard error says so.",
    ]


def _evaluation(scores: Mapping | None, before: Mapping[str, float]) -> list[str]:
    if scores is None:
        return [
            "No score is given: the test split holds private records, and a score is a statistic of them that no "
            "ledger accounts for."
        ]
    if not scores:
        return ["No score is given: the public test records give none of the metrics a value."]
    rows = (
        f"| {metric.label} | {significant(value)} | {interval_text(interval, _DECIMALS[metric.percent])} |"
        for metric, (value, interval) in ((metric_of(name), score) for name, score in scores.items())
    )
    return [
        "On the test split, whose records are public:",
        "",
        "| metric | score | 95 % interval over test records |",
        "| --- | --- | --- |",
        *rows,
        "",
        *_earlier(before),
        "The scores are of this model alone. Means over seeds are not given: they are of other models too, which would "
        "spend privacy of their own.",
    ]


def _earlier(before: Mapping[str, float]) -> list[str]:
    if not before:
        return []
    listed = ", ".join(f"{metric_of(name).label} {significant(value)}" for name, value in before.items())
    return [f"Before its scores were calibrated: {listed}.", ""]


def _privacy(ledger: Mapping) -> list[str]:
    return [
        "[PRIVACY.md](PRIVACY.md) is the privacy statement, computed from [ledger.json](ledger.json), which lists "
        "every release; whoever passes the model on passes both on. It says:",
        "",
        *guarantee_lines(ledger),
        "",
        "It goes on with how this was computed, and with what it does not cover.",
    ]


def _provenance(name: str, cell: Trained) -> list[str]:
    versions = ", ".join(f"{package} {version}" for package, version in cell.versions.items())
    return [
        f"- Cell: `{name}`, first seed",
        f"- Config hash: `{cell.config}`",
        f"- Library hash: `{cell.library}`",
        f"- Trained with: {versions}",
    ]


def _plain(value: object) -> str:
    """A value for a code span, on one line."""
    return " ".join(str(value).split()).replace("`", "'")
