"""Claims of de2022 about accuracies: from random weights (sections 3.1 to 3.3, Tables 3 and 4), by fine-tuning on CIFAR
(4.1, B.2 to B.4), on ImageNet and Places-365 (1, 4.2, 4.3; Figures 1, 4, 5): judges, and what comparisons in
workflow/published/claims/de2022.yaml compare."""

from itertools import product

from dpstudy.tables.claims.de2022_printed import CIFAR10, IMAGENET, level
from dpstudy.tables.claims.de2022_privacy import ABOUT, Setting, records, settings
from dpstudy.tables.claims.finding import PRINTED, Finding, decided
from dpstudy.tables.claims.grid import Triples, Value, highest, number
from dpstudy.tables.claims.scores import Evidence, Scores

_PROSE = 78.7  # of section 3.2, for WRN-16-4 at epsilon 8
_DIFFERING = {(CIFAR10, 1.0), (CIFAR10, 8.0)}  # the cells in which Tables 1 and 5 are said to differ
_WELL = 5.0  # points that read as "well below"
_BEST, _DISTANCE = 91.0, 4.3  # without privacy (Yu et al. 2022), and how far below it the headline is said to lie
_LAST_DIGIT = 0.05  # half of the last one that is printed
_FIGURE_4_EPOCHS = 136
_FIGURE_5_EPOCHS = 800  # at epsilon 8
_ROUGHLY = 0.05  # relative difference of epochs that still reads as the same


def prose_and_table(evidence: Evidence) -> Finding:
    """Judge the claim: section 3.2 and Table 3 give different numbers for WRN-16-4 at epsilon 8."""
    key = (CIFAR10, "wrn-16-4", 8.0)
    table, ours = evidence.printed.values[key].number, evidence.ours.get(*key)
    here = f"WRN-16-4 at ε = 8: {ours.mean:.1f}" if ours else ""
    return decided(table != _PROSE, PRINTED, f"Section 3.2 has {_PROSE}, Table 3 {table}", here)


def updates_in_epochs(evidence: Evidence) -> tuple[bool, str]:
    """How many epochs the printed updates from scratch on ImageNet are, which refutes nothing."""
    (setting,) = [setting for setting in settings(evidence) if setting.table == "15"]
    epochs = setting.epochs(records(evidence, IMAGENET)[0])
    return True, f"Table 15's {setting.steps:,} updates are {epochs:.0f} epochs"


def without_privacy_beside(scores: Scores, network: str, goal: float) -> Triples:
    """(network, its best accuracy on CIFAR-10 without privacy, what Zagoruyko and Komodakis exceed)."""
    runs = [run for run in scores.of_role("nonprivate-wrn") if run.dataset == CIFAR10]
    alike = [run for run in runs if run.metrics["hyperparameters"].get("network", "").startswith(network)]
    yield network, highest(run.accuracy for run in alike), level(scores, CIFAR10, Value(goal))


def prose_and_table_of_fine_tuning(evidence: Evidence) -> Finding:
    """Judge the claim: Tables 1 and 5 differ in two cells."""
    own = [row for row in evidence.rows if row["model"] == "WRN-28-10" and not row["source"]]
    first, fifth = (
        {(row["dataset"], float(row["epsilon"]), row["method"]): row["value"] for row in own if row["table"] == table}
        for table in ("1", "5")
    )
    shared = [key for key in first if key in fifth]
    differing = {key[:2] for key in shared if first[key] != fifth[key]}
    both = [(*key[:2], first[key], fifth[key]) for key in shared if key[:2] in differing]
    text = ", ".join(f"{name} ε = {number(e)}: {one} in Table 1, {two} in Table 5" for name, e, one, two in both)
    text = f"{len(differing)} of {len(shared)} cells differ: {text}" if differing else "No cell differs"
    return decided(differing == _DIFFERING, PRINTED, text)


def added_by_imagenet(scores: Scores) -> Triples:
    """(place, what pre-training on ImageNet-32 adds to that on CIFAR-100, what reads as much)."""
    pairs = scores.pairs("all-layers-smaller", "all-layers-cifar100", [CIFAR10])
    return [(name, better - worse, Value(_WELL)) for name, better, worse in pairs]


def headline_lies_below(evidence: Evidence) -> tuple[bool, str]:
    """Whether NFNet-F3 at epsilon 8 lies as far below the best without privacy as is said."""
    value = evidence.printed.values[IMAGENET, "nfnet", 8.0].number
    text = f"{_BEST:g} − {value} = {_BEST - value:.1f}, said to be {_DISTANCE}"
    return abs(_BEST - value - _DISTANCE) <= _LAST_DIGIT, text


def figure_4_spends(evidence: Evidence) -> tuple[bool, str]:
    """Whether Figure 4's settings spend the stated epsilon."""
    size, batch = records(evidence, IMAGENET)[0], 1024
    steps = round(_FIGURE_4_EPOCHS * size / batch)
    one = Setting("figure 4", IMAGENET, "DP-SGD", epsilon=8.0, delta=8e-7, batch=batch, sigma=0.6, steps=steps)
    text = f"B = {batch:,}, σ = {one.sigma}, N = {size:,}, {_FIGURE_4_EPOCHS} epochs spend ε = {one.shown(size)}"
    return abs(one.off(size)) <= ABOUT, text


def last_layer_and_all(scores: Scores) -> Triples:
    """(cell, last layer, all layers) of NF-ResNets at each depth."""
    for last, whole in product(scores.in_order("nf-resnets-classifier"), scores.in_order("nf-resnets-all")):
        if last[0].at == whole[0].at and len(last) == len(whole):
            for one, other in zip(last, whole, strict=True):
                yield f"{one.at}, {one.entry}", one.accuracy, other.accuracy


def shallowest_beside(scores: Scores, goal: float) -> Triples:
    """(cell, last layer of the shallowest NF-ResNet, what was reached before)."""
    before = level(scores, IMAGENET, Value(goal))
    return [(g[0].entry, g[0].accuracy, before) for g in scores.in_order("nf-resnets-classifier")]


def figure_5_spends(evidence: Evidence) -> tuple[bool, str]:
    """Whether Figure 5's settings are the stated epochs and spend the stated epsilon."""
    (one,) = [one for one in settings(evidence) if (one.table, one.epsilon) == ("21", 8.0)]
    size = records(evidence, IMAGENET)[0]
    epochs = one.epochs(size)
    text = f"Table 21 at ε = 8: {epochs:.0f} epochs, said to be about {_FIGURE_5_EPOCHS}; "
    text += f"they spend ε = {one.shown(size)}"
    return abs(epochs / _FIGURE_5_EPOCHS - 1) <= _ROUGHLY and abs(one.off(size)) <= ABOUT, text
