"""What a figure shows, in words, by its style."""

from collections.abc import Mapping, Sequence

from dpstudy.evaluation.metrics import METRICS
from dpstudy.tables.remarks import figure_remarks

_DRAWN = {  # style of a figure -> what it shows, and how
    "curve": ("along training", "mean over seeds, bands are one standard deviation"),
    "size": ("against the number of training records", "mean over seeds, bars are one standard deviation"),
    "settings": (
        "or the chosen setting against what each cell was given",
        "mean over seeds, bars are one standard deviation; a setting that was searched is that of the best trial",
    ),
    "search": (
        "on the validation split by one hyper-parameter",
        "over all trials of each search with that value; the split is of private records, which no ledger accounts for",
    ),
}


def figure_captions(spec: Mapping, axes: Mapping, numbers: str) -> tuple[str, str]:
    """What a figure shows: the caption below it, and the text for those who do not see it.

    Args:
        spec: the figure's value in the config.
        axes: the study's names, in config order.
        numbers: where its numbers stand, in words.
    """
    style, metric = spec.get("style", "epsilons"), METRICS[spec.get("metric", "top1")]
    if style in _DRAWN:
        drawn, detail = _DRAWN[style]
        more = "" if style == "search" else figure_remarks(spec, axes)
        return f"{metric} {drawn}; {detail}.{_cited(spec)}{more}", f"{metric} {drawn}; {numbers}."
    if style == "noise":
        caption = "noise on a sum of gradients, in units of the bound on a record's gradient."
        return caption, f"noise multipliers; {numbers}."
    if style == "disparity":
        by = spec["column"].replace("_", " ")
        detail = "mean over seeds, bars are 95 % intervals over seeds and test records where there are any"
        return (
            f"{metric} on the test split by {by}; {detail}.{figure_remarks(spec, axes)}",
            f"{metric} by {by}; {numbers}.",
        )
    if style == "neighbours":
        shown = f"distances from training records of {spec['dataset']} to the nearest of their class"
        caption = (
            f"{shown}, on the features {spec['features']}. They are computed from private records without noise: no "
            "guarantee covers this figure, and it is not for publication."
        )
        return caption, f"{shown}, a histogram a class; {numbers}."
    kinds, entries = (
        enumerated(spec.get("features", axes["features"])),
        enumerated(spec.get("entries", axes["entries"])),
    )
    more = _cited(spec) + figure_remarks(spec, axes)
    return (
        f"{metric} against the target ε; mean over seeds, bars are one standard deviation.{more}",
        f"{metric} against the privacy budget epsilon for {entries} on {kinds}; {numbers}.",
    )


def _cited(spec: Mapping) -> str:
    """A sentence about what papers print beside lines of ours, where there is such."""
    papers = sorted({(spec.get("published", {}) | row["published"]).get("paper", "") for row in spec.get("cited", [])})
    return f" Grey: what {enumerated(papers)} prints, of others too, each as it is printed there." if papers else ""


def enumerated(names: Sequence[str]) -> str:
    """Names as a text: "a, b and c".

    >>> enumerated(["pixels", "scatternet", "vit"])
    'pixels, scatternet and vit'
    """
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
