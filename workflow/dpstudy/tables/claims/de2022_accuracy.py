"""Claims of de2022 about training from random weights, without extra data (sections 3.1 to 3.3, Tables 3 and 4)."""

import math
from collections.abc import Sequence

from dpstudy.tables.claims.de2022_printed import CIFAR10, IMAGENET, PRIOR, SCATTERNET, level
from dpstudy.tables.claims.de2022_settings import records, settings
from dpstudy.tables.claims.finding import PRINTED, Finding, Part, by_roles, decided, noted, number, on_cells
from dpstudy.tables.claims.grid import Value
from dpstudy.tables.claims.role_evidence import Evidence
from dpstudy.tables.claims.scores import Scores
from dpstudy.tables.published import RESULTS, published_rows

WRNS = ("wrn-16-4", "wrn-40-4")
_OVERTAKES = 3.0  # the epsilon from which Wide ResNets are said to be ahead
_PROSE = 78.7  # of section 3.2, for WRN-16-4 at epsilon 8
_WITHOUT_PRIVACY = {"wrn-16-4": 94.0, "wrn-40-4": 95.0}  # that Zagoruyko and Komodakis exceed


def _better(scores: Scores, epsilon: float) -> Value | None:
    """The better of the two Wide ResNets on CIFAR-10; None where one was not run, which might be it."""
    values = [value for role in WRNS if (value := scores.get(CIFAR10, role, epsilon))]
    return max(values, key=lambda value: value.number) if len(values) == len(WRNS) else None


def _epsilons(scores: Scores) -> list[float]:
    return sorted({e for role in WRNS for e in scores.epsilons(CIFAR10, role) if not math.isinf(e)})


def _earlier(scores: Scores, epsilon: float, roles: Sequence[str] = (PRIOR, SCATTERNET)) -> Value | None:
    """The best that others had with no more epsilon."""
    values = [value for role in roles if (value := scores.best(CIFAR10, role, epsilon))]
    return max(values, key=lambda value: value.number, default=None)


def best_from_three(evidence: Evidence) -> Finding:
    """Judge the claim: from epsilon 3 on, better than earlier work at no larger epsilon."""

    def parts(scores: Scores) -> list[Part]:
        triples = [(number(e), _better(scores, e), _earlier(scores, e)) for e in _epsilons(scores) if e >= _OVERTAKES]
        return [Part.of("Better of the Wide ResNets at ε ≥ 3 over the best earlier result at no more ε", triples)]

    return by_roles(evidence, parts, "wrn-16-4 and wrn-40-4 (CIFAR-10, ε ≥ 3, all records)")


def scatternet_first(evidence: Evidence) -> Finding:
    """Judge the claim: ScatterNet models are best below epsilon 3, Wide ResNets from there on."""

    def parts(scores: Scores) -> list[Part]:
        low = [(number(e), scores.get(CIFAR10, SCATTERNET, e), _better(scores, e)) for e in _epsilons(scores)]
        high = [
            (number(e), _better(scores, e), _earlier(scores, e, [SCATTERNET]))
            for e in _epsilons(scores)
            if e >= _OVERTAKES
        ]
        below = [triple for triple in low if float(triple[0]) < _OVERTAKES]
        return [
            Part.of("ε < 3: the ScatterNet model of tramer2021 over both Wide ResNets", below),
            Part.of("ε ≥ 3: the better Wide ResNet over the ScatterNet model at no more ε", high),
        ]

    finding = by_roles(evidence, parts, "wrn-16-4 and wrn-40-4 (CIFAR-10, below ε = 3 and above, all records)")
    return noted(finding, _capacity())


def _capacity() -> str:
    """What ScatterNet models reach without privacy; it takes no part in the verdict."""
    limits = {
        row["model"]: row["value"]
        for row in published_rows(RESULTS, "tramer2021")
        if (row["table"], row["dataset"], row["pretraining"]) == ("11", CIFAR10, "scatternet")
    }
    text = ", ".join(f"{value} ({model})" for model, value in limits.items())
    return f"Without privacy, said to be 71 %, tramer2021's Table 11 has {text}; 69.3 at ε = 3 is of the latter"


def prose_and_table(evidence: Evidence) -> Finding:
    """Judge the claim: section 3.2 and Table 3 give different numbers for WRN-16-4 at epsilon 8."""
    table = evidence.printed.values[CIFAR10, "wrn-16-4", 8.0].number
    ours = evidence.ours.get(CIFAR10, "wrn-16-4", 8.0)
    here = f"WRN-16-4 at ε = 8: {ours.mean:.1f}" if ours else ""
    return decided(table != _PROSE, PRINTED, f"Section 3.2 has {_PROSE}, Table 3 {table}", here)


def best_depth(evidence: Evidence) -> Finding:
    """Judge the claim: WRN-16-4 is slightly better at epsilon 1, WRN-40-4 above."""

    def parts(scores: Scores) -> list[Part]:
        pairs = [(name, scores.get(CIFAR10, WRNS[0], e), scores.get(CIFAR10, WRNS[1], e)) for name, e in _named(scores)]
        return [
            Part.of("ε = 1: WRN-16-4 over WRN-40-4", [pair for pair in pairs if pair[0] == "1"]),
            Part.of("ε > 1: WRN-40-4 over WRN-16-4", [(name, b, a) for name, a, b in pairs if float(name) > 1]),
        ]

    return by_roles(evidence, parts, "wrn-16-4 and wrn-40-4 (CIFAR-10, ε = 1 and more)")


def _named(scores: Scores) -> list[tuple[str, float]]:
    return [(number(epsilon), epsilon) for epsilon in _epsilons(scores)]


def imagenet(evidence: Evidence) -> Finding:
    """Judge the claim: NF-ResNet-50 at epsilon 8 is far above ResNet-18 at 13.2 on ImageNet."""
    target = evidence.printed.values[IMAGENET, "scratch-imagenet", 8.0]

    def parts(scores: Scores) -> list[Part]:
        accuracy = scores.get(IMAGENET, "scratch-imagenet", 8.0)
        return [
            Part.of("At ε = 8 over ResNet-18 at ε = 13.2", [("8", accuracy, scores.best(IMAGENET, PRIOR))]),
            Part.not_below(f"Not below the printed {target.mean}", [("8", accuracy, level(scores, IMAGENET, target))]),
        ]

    finding = by_roles(evidence, parts, "scratch-imagenet (ImageNet-1k, ε = 8, all records)")
    (setting,) = [setting for setting in settings(evidence) if setting.table == "15"]
    epochs = setting.steps * setting.batch / records(evidence, IMAGENET)[0]
    return noted(finding, f"Table 15's {setting.steps:,} updates are {epochs:.0f} epochs")


def without_privacy(evidence: Evidence) -> Finding:
    """Judge the claim: without privacy WRN-16-4 exceeds 94 % and WRN-40-4 95 %."""
    parts = []
    for network, goal in _WITHOUT_PRIVACY.items():
        runs = [
            run
            for run in evidence.ours.of_role("nonprivate-wrn")
            if run.dataset == CIFAR10 and run.metrics["hyperparameters"].get("network", "").startswith(network)
        ]
        best = max((run.accuracy for run in runs), key=lambda value: value.number, default=None)
        parts.append(
            Part.of(f"{network.upper()} over {goal:g} %", [(network, best, level(evidence.ours, CIFAR10, Value(goal)))])
        )
    return on_cells(
        parts,
        "The study has no WRN-16-4 and WRN-40-4 without privacy on all records (the role nonprivate-wrn, CIFAR-10)",
        "A citation of Zagoruyko and Komodakis, whose networks have batch normalisation",
    )
