"""Claims of de2022 about private fine-tuning on ImageNet and Places-365 (sections 1, 4.2, 4.3; Figures 1, 4, 5)."""

import math

from dpstudy.privacy.printed import upper_bound
from dpstudy.tables.claims.de2022_printed import IMAGENET, level
from dpstudy.tables.claims.de2022_settings import records, settings, spent
from dpstudy.tables.claims.finding import COMPUTED, Finding, Part, by_roles, decided, noted, number, on_cells
from dpstudy.tables.claims.grid import Value
from dpstudy.tables.claims.role_evidence import Evidence
from dpstudy.tables.claims.scores import Scores, up

_HEADLINE = 86.7  # of the abstract, at epsilon 8
_BEST = (91.0, 4.3)  # the best without privacy (Yu et al. 2022), and how far below it 86.7 is said to lie
_LAST_DIGIT = 0.05  # half of the last one that is printed
_GAPS = {8.0: 1.8, 0.5: 4.7}  # epsilon -> points below the same network without privacy
_FIGURE_4 = (1024, 0.6, 136, 8e-7, 8.0)  # batch, noise multiplier, epochs, delta, epsilon
_BEFORE = 47.8  # of Kurakin et al. at epsilon 10
_FIGURE_5_EPOCHS = 800  # at epsilon 8
_ABOUT = 0.02  # relative difference of epsilons that still reads as the same
_ROUGHLY = 0.05  # the same of epochs


def headline(evidence: Evidence) -> Finding:
    """Judge the claim: NFNet-F3 at epsilon 8 has 86.7, 4.3 below the best without privacy.

    Its gaps to the same network without privacy are judged too.
    """
    best, distance = _BEST

    def parts(scores: Scores) -> list[Part]:
        free = scores.get(IMAGENET, "nonprivate-nfnet", math.inf)
        at_eight = [("8", scores.get(IMAGENET, "nfnet", 8.0), level(scores, IMAGENET, Value(_HEADLINE)))]
        gaps = [
            Part.not_below(
                f"ε = {number(e)} no more than {gap:g} points below no privacy",
                [(number(e), scores.get(IMAGENET, "nfnet", e), free)],
                gap,
            )
            for e, gap in _GAPS.items()
        ]
        return [Part.not_below(f"ε = 8 not below {_HEADLINE}", at_eight), *gaps]

    value = evidence.printed.values[IMAGENET, "nfnet", 8.0].number
    text = f"{best:g} − {value} = {best - value:.1f}, said to be {distance}"
    if abs(best - value - distance) > _LAST_DIGIT:
        return decided(False, COMPUTED, text)
    return noted(by_roles(evidence, parts, "nfnet and nonprivate-nfnet (ImageNet-1k)"), text)


def along_epsilon(evidence: Evidence) -> Finding:
    """Judge the claim: the accuracies of Figure 1(b), as printed in Table 6, are reached."""
    triples = [
        (number(e), value, level(evidence.ours, IMAGENET, evidence.printed.get(IMAGENET, "nfnet", e)))
        for e in evidence.ours.epsilons(IMAGENET, "nfnet")
        if (value := evidence.ours.get(IMAGENET, "nfnet", e))
    ]
    part = Part.not_below("Not below Table 6", triples)
    shown = [evidence.printed.values[IMAGENET, "nfnet", e] for e in (8.0, 0.5)]
    text = f"Table 6 has {shown[0].mean} at ε = 8 and {shown[1].mean} at 0.5"
    return on_cells([part], "The study has no cells in the role nfnet (ImageNet-1k, all records)", text)


def depth_and_mode(evidence: Evidence) -> Finding:
    """Judge the claim: deeper NF-ResNets are better in both modes, and the last layer alone is slightly better."""
    batch, sigma, epochs, delta, epsilon = _FIGURE_4
    size = records(evidence, IMAGENET)[0]
    epsilon_spent = spent(sigma, round(epochs * size / batch), batch / size, delta)
    text = f"B = {batch:,}, σ = {sigma}, N = {size:,}, {epochs} epochs spend ε = {upper_bound(epsilon_spent, places=2)}"
    if abs(epsilon_spent / epsilon - 1) > _ABOUT:
        return decided(False, COMPUTED, text)

    def parts(scores: Scores) -> list[Part]:
        last, whole = (scores.in_order(f"nf-resnets-{mode}") for mode in ("classifier", "all"))
        pairs = [
            (f"{a.dataset} {number(a.epsilon)}, {a.entry}", a.accuracy, b.accuracy)
            for one in last
            for other in whole
            if (one[0].dataset, one[0].epsilon) == (other[0].dataset, other[0].epsilon) and len(one) == len(other)
            for a, b in zip(one, other, strict=True)
        ]
        over = [(group[0].entry, group[0].accuracy, level(scores, IMAGENET, Value(_BEFORE))) for group in last]
        return [
            Part.of("Last layer: deeper over shallower", up(last)),
            Part.of("All layers: deeper over shallower", up(whole)),
            Part.of("Last layer over all layers, at each depth", pairs),
            Part.of(f"Last layer of the shallowest over {_BEFORE} at ε = 10 (Kurakin et al.)", over),
        ]

    return noted(by_roles(evidence, parts, "nf-resnets-classifier and nf-resnets-all"), text)


def more_images(evidence: Evidence) -> Finding:
    """Judge the claim: pre-training on JFT-4B is better than on JFT-300M at every epsilon."""
    (one,) = [one for one in settings(evidence) if (one.table, one.epsilon) == ("21", 8.0)]
    size = records(evidence, IMAGENET)[0]
    epochs, epsilon_spent = one.steps * one.batch / size, one.spent(size)
    text = f"Table 21 at ε = 8: {epochs:.0f} epochs, said to be about {_FIGURE_5_EPOCHS}; they spend "
    text += f"ε = {upper_bound(epsilon_spent, places=2)}"
    if abs(epochs / _FIGURE_5_EPOCHS - 1) > _ROUGHLY or abs(epsilon_spent / one.epsilon - 1) > _ABOUT:
        return decided(False, COMPUTED, text)

    def parts(scores: Scores) -> list[Part]:
        return [Part.of("From JFT-4B over from JFT-300M", scores.pairs("jft-4b", "jft-300m", [IMAGENET]))]

    return noted(by_roles(evidence, parts, "jft-4b and jft-300m (ImageNet-1k)"), text)
