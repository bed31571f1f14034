"""Claims of de2022 about privacy accounting (sections 2.2, appendix A): the printed settings, recomputed."""

from collections.abc import Sequence

from dpstudy.tables.claims.de2022_settings import Setting, records, settings
from dpstudy.tables.claims.finding import COMPUTED, Finding, decided, number
from dpstudy.tables.claims.role_evidence import Evidence

# Relative difference between a printed epsilon and the one of its setting that still reads as the same: sigma and T are
# rounded where they are printed.
_SAME = 0.025
_NEAR = 0.01
_UNPAID = "not paid for"  # what ledgers say of a choice of hyper-parameters


def _private(evidence: Evidence) -> list[Setting]:
    return [one for one in settings(evidence) if one.sigma > 0]


def _off(one: Setting, size: int) -> float:
    """How far the epsilon that a setting spends lies from the printed one, relatively."""
    return one.spent(size) / one.epsilon - 1


def _closest(evidence: Evidence, one: Setting) -> tuple[int, float]:
    """(records, relative difference): with all training records, or without those for validation if that is nearer."""
    every, train = records(evidence, one.dataset)
    off = _off(one, every)
    if abs(off) <= _SAME or train == every:
        return every, off
    return min(((size, _off(one, size)) for size in (every, train)), key=lambda pair: abs(pair[1]))


def recomputed(evidence: Evidence) -> Finding:
    """Judge the claim: the settings in Tables 13 to 23 spend the printed epsilon on Table 12's numbers of records."""
    closest = [(one, *_closest(evidence, one)) for one in _private(evidence)]
    wrong = [_named(one) for one, _, off in closest if abs(off) > _SAME]
    near = sum(abs(off) <= _NEAR for _, _, off in closest)
    worst = max(closest, key=lambda item: abs(item[2]))
    text = (
        f"Renyi DP with the improved conversion, δ and N as printed: {near} of {len(closest)} settings within "
        f"{_NEAR:.0%} of the printed ε, the worst {worst[2]:.1%} ({_named(worst[0])})"
    )
    fewer = [(one, size) for one, size, _ in closest if size != records(evidence, one.dataset)[0]]
    if fewer:
        sizes = ", ".join(f"{size:,}" for size in dict.fromkeys(size for _, size in fewer))
        text += f". With N = {sizes}, the records without those for validation: {_list([one for one, _ in fewer])}; "
        text += "on all records, where the tables' test results are from, they would spend "
        offs = [_off(one, records(evidence, one.dataset)[0]) for one, _ in fewer]
        text += f"{-max(offs):.0%} to {-min(offs):.0%} less"
    text += f". Not reproduced: {', '.join(wrong)}" if wrong else ""
    return decided(not wrong, COMPUTED, text)


def _named(one: Setting) -> str:
    return f"Table {one.table}, {one.method.removeprefix('DP-SGD').strip(' ()') or 'all'}, ε = {number(one.epsilon)}"


def _list(found: Sequence[Setting]) -> str:
    """Settings by table: its number and its epsilons."""
    tables: dict[str, list[str]] = {}
    for one in found:
        tables.setdefault(one.table, []).append(number(one.epsilon))
    return "; ".join(f"Table {table}, ε = {', '.join(epsilons)}" for table, epsilons in tables.items())


def tuning_is_free(evidence: Evidence) -> Finding:
    """Judge the claim: the last training alone spends the printed epsilon, with nothing left for tuning."""
    differences = [(one, _closest(evidence, one)[1]) for one in _private(evidence)]
    alone = [one for one, off in differences if off >= -_SAME]
    text = f"In {len(alone)} of {len(differences)} settings of Tables 13 to 23 one training spends the whole printed ε"
    private = [run for run in evidence.ours.runs if run.ledger.get("epsilon") is not None]
    unpaid = [run for run in private if any(_UNPAID in sentence for sentence in run.ledger.get("not_accounted", ()))]
    here = f"{len(unpaid)} of {len(private)} private cells say in their ledger that the choice was not paid for"
    return decided(len(alone) == len(differences), COMPUTED, text, here if private else "")
