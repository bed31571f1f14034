"""Claims of anon_smoothing about accuracy (Table 1, section 4.3) and areas under curves (section 4.4, Figure 3).

Smoothing stands at the epsilon that it claims. Table 1 is about CIFAR-10, Figure 3 about CheXpert; `counterparts` says
what stands for either.
"""

import itertools
import math
from collections.abc import Iterator

from dpstudy.tables.claims.anon_smoothing_printed import (
    CHEXPERT,
    CIFAR10,
    DP_SGD,
    FREE,
    KERNEL_MEAN,
    SMOOTHING,
    places,
)
from dpstudy.tables.claims.finding import Finding, Part, by_roles, noted, number
from dpstudy.tables.claims.grid import Value
from dpstudy.tables.claims.role_evidence import Evidence
from dpstudy.tables.claims.scores import Scores

_NARROW = 3.0  # points of what the paper calls a narrow gap ("just 2-3 percent")
_AREAS = {"the method at ε = 2 and ε = 8": 85.0, "DP-SGD": 70.0}  # in the text of section 4.4, "approximately"
_NAMES = {SMOOTHING: "Instance smoothing", DP_SGD: "DP-SGD", KERNEL_MEAN: "Kernel means, whose ε is proved,"}

Triple = tuple[str, Value | None, Value | None]


def across(scores: Scores, data: str, left: tuple[str, float], right: tuple[str, float]) -> list[Triple]:
    """(place, left, right) pairs of two roles' accuracies over the backbones of a data set, at an epsilon each."""
    return [(place, scores.get(place, *left), scores.get(place, *right)) for place in places(scores, data)]


def at_equal_epsilon(scores: Scores, data: str, role: str) -> Part:
    """(place, role's accuracy, DP-SGD's accuracy) at the same target epsilon."""
    where = places(scores, data)
    triples = scores.pairs(role, DP_SGD, where) if where else ()
    return Part.of(f"{_NAMES[role]} over DP-SGD at the same ε", triples)


def _proved(scores: Scores, *parts: Part) -> str:
    """What kernel means reach, where the study has them."""
    return ". ".join(str(part) for part in parts if part.counted)


def narrow_gap(evidence: Evidence) -> Finding:
    """Judge the claim: at epsilon 8 the method is 2 to 3 points below its accuracy without privacy."""

    def parts(scores: Scores) -> list[Part]:
        triples = across(scores, CIFAR10, (SMOOTHING, 8.0), (FREE, math.inf))
        text = f"Instance smoothing at ε = 8 no more than {_NARROW:g} points below no privacy"
        return [Part.not_below(text, triples, _NARROW)]

    finding = by_roles(evidence, parts, "instance-smoothing (ε = 8) and nonprivate (CIFAR-10)")
    triples = across(evidence.ours, CIFAR10, (KERNEL_MEAN, 8.0), (FREE, math.inf))
    proved = Part.not_below(f"Kernel means at ε = 8 no more than {_NARROW:g} points below it", triples, _NARROW)
    return noted(finding, here=_proved(evidence.ours, proved))


def less_privacy_needed(evidence: Evidence) -> Finding:
    """Judge the claim: the method at epsilon 3 is better than DP-SGD at epsilon 8."""

    def part(scores: Scores, role: str) -> Part:
        triples = across(scores, CIFAR10, (role, 3.0), (DP_SGD, 8.0))
        return Part.of(f"{_NAMES[role]} at ε = 3 over DP-SGD at ε = 8", triples)

    roles = "instance-smoothing (ε = 3) and dp-sgd (ε = 8; CIFAR-10)"
    finding = by_roles(evidence, lambda scores: [part(scores, SMOOTHING)], roles)
    more = at_equal_epsilon(evidence.ours, CIFAR10, KERNEL_MEAN)
    return noted(finding, here=_proved(evidence.ours, part(evidence.ours, KERNEL_MEAN), more))


def larger_backbones(evidence: Evidence) -> Finding:
    """Judge the claim: the cost of smoothing falls with each larger backbone; DP-SGD's is given for comparison."""

    def part(scores: Scores, role: str) -> Part:
        text = f"{_NAMES[role]}: cost on a backbone over that on the next larger"
        return Part.of(text, _costs(scores, CIFAR10, role))

    roles = "instance-smoothing and nonprivate (CIFAR-10, two or more feature sets, the larger later)"
    finding = by_roles(evidence, lambda scores: [part(scores, SMOOTHING)], roles)
    beside = [part(scores, DP_SGD) for scores in (evidence.printed, evidence.ours)]
    return noted(finding, *(f"Beside it {each}" if each.counted else "" for each in beside))


def _costs(scores: Scores, data: str, role: str) -> Iterator[Triple]:
    """(larger backbone and epsilon, cost on the smaller, cost on the larger), in points below no privacy."""
    order = places(scores, data, role)
    for epsilon in sorted({e for place in order for e in scores.epsilons(place, role) if not math.isinf(e)}):
        cost_by_place = {}
        for place in order:
            free, private = scores.get(place, FREE, math.inf), scores.get(place, role, epsilon)
            if free is not None and private is not None:
                cost_by_place[place] = free - private
        for (_, small), (place, large) in itertools.pairwise(cost_by_place.items()):
            yield f"{place} {number(epsilon)}", small, large


def rising(scores: Scores, data: str, role: str) -> Iterator[Triple]:
    """(place and epsilon, accuracy there, accuracy at the next smaller epsilon) triples."""
    for place in places(scores, data, role):
        for low, high in itertools.pairwise(e for e in scores.epsilons(place, role) if not math.isinf(e)):
            yield f"{place} {number(high)}", scores.get(place, role, high), scores.get(place, role, low)


def more_epsilon(evidence: Evidence) -> Finding:
    """Judge the claim: accuracy rises with epsilon."""

    def parts(scores: Scores) -> list[Part]:
        return [
            Part.of(f"{_NAMES[role]}: over the next smaller ε", rising(scores, CIFAR10, role))
            for role in (SMOOTHING, DP_SGD)
        ]

    return by_roles(evidence, parts, "instance-smoothing and dp-sgd (CIFAR-10, two or more finite ε)")


def on_radiographs(evidence: Evidence) -> Finding:
    """Judge the claim: on CheXpert the method beats DP-SGD at every epsilon and is close to no privacy."""

    def parts(scores: Scores) -> list[Part]:
        where = places(scores, CHEXPERT)
        free = [
            (f"{place} {number(e)}", scores.get(place, SMOOTHING, e), scores.get(place, FREE, math.inf))
            for place in where
            for e in scores.epsilons(place, SMOOTHING)
            if not math.isinf(e)
        ]
        comparisons = [
            at_equal_epsilon(scores, CHEXPERT, SMOOTHING),
            Part.not_below(f"Instance smoothing no more than {_NARROW:g} points below no privacy", free, _NARROW),
            Part.of("Along training, over DP-SGD after as many epochs", _along(scores)),
        ]
        return [*comparisons[:2], *(part for part in comparisons[2:] if part.counted)]

    finding = by_roles(evidence, parts, "instance-smoothing, dp-sgd and nonprivate (CheXpert)")
    ours, sgd = _AREAS.values()
    text = f"The text alone: about {ours:g} for {next(iter(_AREAS))} alike, about {sgd:g} for DP-SGD: {ours - sgd:+g}"
    return noted(finding, text, _proved(evidence.ours, at_equal_epsilon(evidence.ours, CHEXPERT, KERNEL_MEAN)))


def _along(scores: Scores) -> Iterator[Triple]:
    """The points of smoothing's curves, each beside DP-SGD's last point of no more epochs."""
    for run, other in itertools.product(scores.of_role(SMOOTHING), scores.of_role(DP_SGD)):
        alike = (run.dataset, run.epsilon, run.n) == (other.dataset, other.epsilon, other.n)
        if not alike or run.data != CHEXPERT or math.isinf(run.epsilon):
            continue
        for point in run.curve:
            earlier = [one for one in other.curve if one.epochs <= point.epochs]
            if earlier:
                name = f"{run.dataset} {number(run.epsilon)}, epoch {point.epochs:g}"
                yield name, point.accuracy, earlier[-1].accuracy
