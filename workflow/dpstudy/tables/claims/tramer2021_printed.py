"""The printed numbers of tramer2021 by role."""

from collections.abc import Mapping, Sequence

from dpstudy.tables.claims.grid import Value
from dpstudy.tables.claims.scores import Printed, Scores, Search, printed_value

PAPER = "tramer2021"
MNIST, FASHION, CIFAR = "MNIST", "Fashion-MNIST", "CIFAR-10"
PRIOR = "prior"  # the role of other authors' numbers, which Table 1 cites
RECORDS = {MNIST: 60_000, FASHION: 60_000, CIFAR: 50_000}  # that the paper trains on
_CALLED = {"linear": "linear", "ScatterNet+CNN": "scatter-cnn", "CNN": "cnn"}
_FIGURE_5 = {"CIFAR-100 (ResNeXt-29)": "transfer-cifar100", "ImageNet (unlabeled, SimCLRv2)": "transfer-imagenet"}
_TABLE_2 = {"no": "unnormalised", "group": "group-normalised", "data": "data-normalised"}


def printed_scores(rows: Sequence[Mapping[str, str]]) -> Scores:
    """The accuracies of Tables 1, 2, 11, 19 and 20 and of section 5.2, and the searches of Table 3.

    The paper's own runs shuffle (as its Table 19 shows), so that what Table 1 does not print at epsilon 3 is taken from
    there; a printed ± over five runs gives a standard error.
    """
    values: dict[tuple[str, str, float], Value] = {}
    searches: dict[tuple[str, str], dict[str, float]] = {}
    for row in rows:
        if row["table"] == "3":
            searches.setdefault((row["dataset"], _CALLED[row["model"]]), {})[row["statistic"]] = float(row["value"])
            continue
        for role in _printed_roles(row):
            values.setdefault((row["dataset"], role, float(row["epsilon"])), printed_value(row))
    return Scores(values, (), {key: Search(statistics) for key, statistics in searches.items()})


def _printed_roles(row: Mapping[str, str]) -> tuple[str, ...]:
    """The roles that a printed number is in; a later number never replaces an earlier one."""
    table, method = row["table"], row["method"]
    if table == "1":
        return (PRIOR,) if row["source"] else (_CALLED[row["model"]],)
    if table == "2":
        normalisation = method.removeprefix("non-private (").split()[0]
        return (_TABLE_2[normalisation],) if normalisation in _TABLE_2 else ()
    if table == "11":
        return (f"nonprivate-{_CALLED[row['model']]}",)
    if table == "19":
        model = _CALLED[row["model"]]
        return (f"{model}-shuffle", model) if "shuffle" in method else (f"{model}-poisson",)
    if table == "20":
        return ("cnn-smaller",) if "168K" in row["model"] else ("cnn",)
    if table == "figure 5":
        role = _FIGURE_5[row["pretraining"]]
        return (f"nonprivate-{role}",) if method == "non-private" else (role,)
    return ()


PRINTED = Printed(PAPER, printed_scores, {name: (size,) for name, size in RECORDS.items()}, (PRIOR,), RECORDS)
level = PRINTED.level
