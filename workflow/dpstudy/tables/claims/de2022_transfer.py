"""Claims of de2022 about private fine-tuning on CIFAR, larger models and larger images (4.1, 4.2, B.2 to B.4, C.2)."""

from collections.abc import Sequence

from dpstudy.tables.claims.de2022_printed import CIFAR10, IMAGENET, PRIOR_CIFAR100, PRIOR_TUNED
from dpstudy.tables.claims.de2022_techniques import up
from dpstudy.tables.claims.finding import PRINTED, Finding, Part, by_roles, decided, noted, number, on_cells
from dpstudy.tables.claims.grid import Value
from dpstudy.tables.claims.role_evidence import Evidence
from dpstudy.tables.claims.scores import Scores

_DIFFERING = {(CIFAR10, 1.0), (CIFAR10, 8.0)}  # the cells in which Tables 1 and 5 are said to differ
_WELL = 5.0  # points that read as "well below"
_PRETRAINED = {"WRN-28-10": 62.4, "WRN-40-4": 57.4}  # top-1 accuracy on ImageNet-32 (section 4.1)


def counted(parts: Sequence[Part]) -> list[Part]:
    """The parts for which there are cells; the first where there are none."""
    return [part for part in parts if part.counted] or list(parts[:1])


def all_layers_first(evidence: Evidence) -> Finding:
    """Fine-tuning all layers beats the classifier alone."""

    def parts(scores: Scores) -> list[Part]:
        return [Part.of("All layers over the classifier", scores.pairs("all-layers", "classifier"))]

    return by_roles(evidence, parts, "all-layers and classifier")


def prose_and_table_of_fine_tuning(evidence: Evidence) -> Finding:
    """Tables 1 and 5 differ in two cells."""
    tables = [_fine_tuned(evidence, table) for table in ("1", "5")]
    shared = [key for key in tables[0] if key in tables[1]]
    differing = {key[:2] for key in shared if tables[0][key] != tables[1][key]}
    text = ", ".join(
        f"{dataset} ε = {number(epsilon)}: {tables[0][dataset, epsilon, method]} in Table 1, "
        f"{tables[1][dataset, epsilon, method]} in Table 5"
        for dataset, epsilon, method in shared
        if (dataset, epsilon) in differing
    )
    text = f"{len(differing)} of {len(shared)} cells differ: {text}" if differing else "No cell differs"
    return decided(differing == _DIFFERING, PRINTED, text)


def _fine_tuned(evidence: Evidence, table: str) -> dict[tuple[str, float, str], str]:
    """The paper's own numbers of WRN-28-10 in one table."""
    return {
        (row["dataset"], float(row["epsilon"]), row["method"]): row["value"]
        for row in evidence.rows
        if row["table"] == table and row["model"] == "WRN-28-10" and not row["source"]
    }


def over_earlier(evidence: Evidence) -> Finding:
    """At epsilon 1 fine-tuning beats the earlier 94.3 %."""

    def parts(scores: Scores) -> list[Part]:
        triple = ("1", scores.get(CIFAR10, "all-layers", 1.0), scores.best(CIFAR10, PRIOR_TUNED, 1.0))
        return [Part.of("CIFAR-10 at ε = 1: all layers over the best earlier result", [triple])]

    return by_roles(evidence, parts, "all-layers (CIFAR-10, ε = 1, all records)")


def better_pretraining(evidence: Evidence) -> Finding:
    """WRN-28-10 beats WRN-40-4 at every epsilon."""

    def parts(scores: Scores) -> list[Part]:
        return [Part.of("WRN-28-10 over WRN-40-4", scores.pairs("all-layers", "all-layers-smaller", [CIFAR10]))]

    before = ", ".join(f"{model} {value}" for model, value in _PRETRAINED.items())
    return noted(by_roles(evidence, parts, "all-layers and all-layers-smaller (CIFAR-10)"), f"On ImageNet-32 {before}")


def from_cifar100(evidence: Evidence) -> Finding:
    """From CIFAR-100: above earlier transfer at every epsilon, well below transfer from ImageNet."""

    def parts(scores: Scores) -> list[Part]:
        below = [
            (name, better - worse, Value(_WELL))
            for name, better, worse in scores.pairs("all-layers-smaller", "all-layers-cifar100", [CIFAR10])
        ]
        return [
            Part.of("Over Luo et al.", scores.pairs("all-layers-cifar100", PRIOR_CIFAR100)),
            Part.of(f"What ImageNet-32 adds, over {_WELL:g} points", below),
        ]

    return by_roles(evidence, parts, "all-layers-cifar100 and all-layers-smaller (CIFAR-10, all records)")


def _larger(scores: Scores) -> list[Part]:
    """Larger models against smaller ones, pre-trained alike."""
    return [
        Part.of("WRN-28-10 over WRN-40-4", scores.pairs("all-layers", "all-layers-smaller")),
        Part.of("NF-ResNets, classifier: deeper over shallower", up(scores.in_order("nf-resnets-classifier"))),
        Part.of("NF-ResNets, all layers: deeper over shallower", up(scores.in_order("nf-resnets-all"))),
    ]


def larger_models(evidence: Evidence) -> Finding:
    """Larger pre-trained models are better at every epsilon."""
    roles = "all-layers and all-layers-smaller, or nf-resnets-all or nf-resnets-classifier"
    return by_roles(evidence, lambda scores: counted(_larger(scores)), roles)


def stronger_start(evidence: Evidence) -> Finding:
    """A larger model or more data in pre-training always helps."""

    def parts(scores: Scores) -> list[Part]:
        best = [(IMAGENET, scores.get(IMAGENET, "nfnet", 8.0), scores.get(IMAGENET, "jft-4b", 8.0))]
        more = scores.pairs("jft-4b", "jft-300m", [IMAGENET])
        return counted(
            [
                *_larger(scores),
                Part.of("NF-ResNet-200: JFT-4B over JFT-300M", more),
                Part.of("From JFT-4B, ε = 8: NFNet-F3 over NF-ResNet-200", best),
            ]
        )

    return by_roles(
        evidence,
        parts,
        "all-layers, nf-resnets-all or nf-resnets-classifier, jft-4b or nfnet, with what each is compared to",
    )


def larger_images(evidence: Evidence) -> Finding:
    """Larger images improve fine-tuning; the paper prints accuracies at 320 x 320 alone."""
    parts = [Part.of("Larger images over smaller ones", up(evidence.ours.in_order("image-sizes")))]
    return on_cells(parts, "The study has no cells at two image sizes in the role image-sizes")
