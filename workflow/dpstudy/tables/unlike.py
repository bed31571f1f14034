"""Notes on rows of a table scored on different test records, as where some that match a public image are left out."""

from collections.abc import Collection, Iterable, Mapping


def unlike_rows(scored: Iterable[tuple[str, str, Mapping | None]], private: Collection[str]) -> list[str]:
    """A sentence, without markup, for each data set whose rows are scored on different test records.

    Args:
        scored: of each cell (data set, label of the row, `Results.tested`); nothing is said of None.
        private: the data sets whose test records are private: how many they are is a statistic of them.
    """
    by_dataset: dict[str, dict[tuple[int, str], dict[str, None]]] = {}
    for dataset, label, records in scored:
        if records:
            key = records["records"], records["names"]
            by_dataset.setdefault(dataset, {}).setdefault(key, {})[label] = None
    return [_sentence(name, labels, name in private) for name, labels in by_dataset.items() if len(labels) > 1]


def _sentence(dataset: str, found: Mapping[tuple[int, str], Collection[str]], private: bool) -> str:
    *few, most = sorted(reversed(list(found)), key=lambda key: (len(found[key]), key[0]))
    counts = [count for count, _ in (*few, most)]
    named = [f"{'; '.join(found[key])} on {_count(counts, place)}" for place, key in enumerate(few)]
    warning = "; these are counts of private records, which no ledger accounts for" if private else ""
    return (
        f"Not all rows are scored on the same test records of {dataset}: {'; '.join(named)}; "
        f"the others on {_count(counts, len(few))}{warning}."
    )


def _count(counts: list[int], place: int) -> str:
    """How many, and "another" where as many were named before."""
    return ("another " if counts[place] in counts[:place] else "") + f"{counts[place]:,}"
