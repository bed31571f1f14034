"""Claims of tramer2021 about more data, transfer, and other features (section 5, appendices A, C.7)."""

import math
from fractions import Fraction

from dpstudy.tables.claims.finding import PRINTED, Finding, Part, decided, number, on_cells
from dpstudy.tables.claims.grid import Value
from dpstudy.tables.claims.names import MODELS
from dpstudy.tables.claims.role_evidence import Evidence
from dpstudy.tables.claims.tramer2021_accuracy import CIFAR
from dpstudy.tables.claims.tramer2021_printed import RECORDS, level

_CIFAR_RECORDS = RECORDS[CIFAR]
_MORE = 10 * _CIFAR_RECORDS  # an order of magnitude
_FEW = 2 * _CIFAR_RECORDS  # too few for one: there CNNs must still be behind
_HANDCRAFTED = ("linear", "scatter-cnn")
_ROLES = ("transfer-cifar100", "transfer-imagenet")
_SOURCES = "The study has no linear models on transferred features (the roles transfer-cifar100 and transfer-imagenet)"


def more_data(evidence: Evidence) -> Finding:
    """Judge the claim: CNNs overtake ScatterNet features with about ten times more records."""
    few = [triple for role in _HANDCRAFTED for triple in _over(evidence, role, "cnn", False)]
    many = [triple for role in _HANDCRAFTED for triple in _over(evidence, "cnn", role, True)]
    return on_cells(
        [
            Part.of(f"ScatterNet models over the CNN with at most {_FEW:,} records", few),
            Part.of(f"CNN over ScatterNet models with at least {_MORE:,} records", many),
        ],
        "The study has no linear models and CNNs trained on subsets or extensions of CIFAR-10",
    )


def _over(evidence: Evidence, left: str, right: str, extended: bool) -> list[tuple[str, Value, Value]]:
    """(name, left, right) of private CIFAR-10 models with few or many records."""
    return [
        (f"{a.role} and {b.role}, {a.n:,} records, ε = {number(a.epsilon)}", a.accuracy, b.accuracy)
        for a in evidence.ours.of_any_size(left)
        for b in evidence.ours.of_any_size(right)
        if a.dataset == CIFAR and (a.dataset, a.n, a.epsilon) == (b.dataset, b.n, b.epsilon)
        if not math.isinf(a.epsilon) and (a.n >= _MORE if extended else a.n <= _FEW)
    ]


def longer_with_more_data(evidence: Evidence) -> Finding:
    """Judge the claim: with more data, more steps and higher rates are best (Table 16)."""
    series: dict[tuple[str, str], list[tuple[int, Fraction]]] = {}
    for row in evidence.hyperparameters:
        if row["table"] == "16":
            records = int(row["dataset"].partition("N=")[2].removesuffix("K)"))
            series.setdefault((row["model"], row["parameter"]), []).append((records, Fraction(row["value"])))
    rising = {
        name: all(a[1] <= b[1] for a, b in zip(sorted(points), sorted(points)[1:], strict=False))
        and min(points)[1] < max(points)[1]
        for name, points in series.items()
    }
    text = ", ".join(
        f"{model}: {'epochs' if parameter.startswith('epochs') else 'base rate'} "
        f"{', '.join(str(value) for _, value in sorted(series[model, parameter]))}"
        for model, parameter in series
    )
    text = f"{sum(rising.values())} of {len(rising)} series of Table 16 rise with N and never fall. {text}"
    return decided(bool(rising) and all(rising.values()), PRINTED, text)


def pseudo_labels(evidence: Evidence) -> Finding:
    """Judge the claim: additional pseudo-labelled records do not lower the accuracy without privacy."""
    triples = [
        (f"{run.role.removeprefix('nonprivate-')}, {run.n:,} records", run.accuracy, base.accuracy)
        for role in (f"nonprivate-{model}" for model in MODELS)
        for run in evidence.ours.of_any_size(role)
        for base in evidence.ours.of_any_size(role)
        if run.dataset == base.dataset == CIFAR and run.n > _CIFAR_RECORDS == base.n
    ]
    return on_cells(
        [Part.not_below("Without privacy, with more records not below CIFAR-10 alone", triples)],
        "The study has no models trained on more than CIFAR-10's 50,000 records: the 500,000 pseudo-labelled images "
        "are the user's to bring",
    )


def transfer_reaches(evidence: Evidence) -> Finding:
    """Judge the claim: the numbers printed for epsilon 2 (Figure 5) are reached."""
    triples = [
        (role, evidence.ours.get(CIFAR, role, 2.0), level(evidence.ours, CIFAR, evidence.printed.get(CIFAR, role, 2.0)))
        for role in _ROLES
    ]
    return on_cells([Part.not_below("At ε = 2 not below what section 5.2 prints", triples)], _SOURCES)


def random_features(evidence: Evidence) -> Finding:
    """Judge the claim: many random features are bad for private learning."""

    runs = evidence.ours.of_role("random-patches")  # of one data set and epsilon: from few features to many
    costs = [
        ((run.dataset, run.epsilon), run.entry, free.accuracy - run.accuracy)
        for run in runs
        for free in runs
        if (free.dataset, free.entry) == (run.dataset, run.entry) and math.isinf(free.epsilon) and run is not free
    ]
    more = [(b[1], b[2], a[2]) for i, a in enumerate(costs) for b in costs[i + 1 :] if a[0] == b[0]]
    private = [run for run in runs if not math.isinf(run.epsilon)]
    scatternet = [
        (f"{run.entry}, ε = {number(run.epsilon)}", evidence.ours.get(run.dataset, "linear", run.epsilon), run.accuracy)
        for run in private
    ]
    parts = [
        Part.of("What privacy costs with more random features over with fewer", more),
        Part.of("ScatterNet over random features", scatternet),
    ]
    return on_cells(parts, "The study has no linear models on random features of growing dimension")
