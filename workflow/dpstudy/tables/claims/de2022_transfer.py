"""Claims of de2022 about private fine-tuning on CIFAR, larger models and larger images (4.1, 4.2, B.2 to B.4, C.2)."""

from dpstudy.tables.claims.de2022_printed import CIFAR10, PRIOR_CIFAR100
from dpstudy.tables.claims.finding import PRINTED, Finding, Part, by_roles, decided, number
from dpstudy.tables.claims.grid import Value
from dpstudy.tables.claims.role_evidence import Evidence
from dpstudy.tables.claims.scores import Scores

_DIFFERING = {(CIFAR10, 1.0), (CIFAR10, 8.0)}  # the cells in which Tables 1 and 5 are said to differ
_WELL = 5.0  # points that read as "well below"


def prose_and_table_of_fine_tuning(evidence: Evidence) -> Finding:
    """Judge the claim: Tables 1 and 5 differ in two cells."""
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


def from_cifar100(evidence: Evidence) -> Finding:
    """Judge the claim: from CIFAR-100, above earlier transfer at every epsilon, well below transfer from ImageNet."""

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
