"""Claims of de2022 about privacy: its audit by membership inference (appendix A.2, Tables 8 and 9) and its accounting,
with the printed settings (Tables 12 to 23) and the epsilon that they spend by it (sections 1, 2.2, appendix A)."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from operator import itemgetter

from dpstudy.privacy.events import Event
from dpstudy.privacy.printed import lower_bound, upper_bound
from dpstudy.privacy.published import de2022 as renyi_epsilon
from dpstudy.tables.claims.de2022_printed import CIFAR10, CIFAR100
from dpstudy.tables.claims.finding import (
    CELLS,
    COMPUTED,
    MEASUREMENT,
    OPEN,
    PRINTED,
    TOLERATED,
    UNDECIDED,
    Finding,
    Part,
    decided,
    undecided,
)
from dpstudy.tables.claims.grid import Value, number
from dpstudy.tables.claims.scores import Evidence, Run
from dpstudy.tables.grouping import grouped
from dpstudy.tables.published import GROUPS, RESULTS, published_rows

ABOUT = 0.02  # relative difference of epsilons that still reads as the same
_NAMES = ("table", "dataset", "pretraining", "model", "method", "epsilon", "delta")
_TABLES = tuple(map(str, range(13, 24)))  # of one setting a budget
# Relative difference between a printed epsilon and the one of its setting that still reads as the same: sigma and T are
# rounded where they are printed.
_SAME = 0.025
_NEAR = 0.01
_UNPAID = "not paid for"  # what ledgers say of a choice of hyper-parameters
_BU = {CIFAR10: "96.7", CIFAR100: "83.0"}  # of Bu et al. at epsilon 1
_SMALL, _LARGE = "|D|=100", "|D|=60K"
_SIZES = {_LARGE: 60_000, _SMALL: 100}
_TWICE_ABOVE = 1.0  # the nominal epsilon above which the bounds are said to be over twice as strong
_MODELS, _RESERVED, _EVALUATED = 500_000, 10_000, 980_000  # phase II: on each of D and D + z, for the threshold, in all
_CONFIDENCE = 0.999
_UNCHANGED = 0.1  # of the nominal epsilon: bounds that differ by less are called almost unchanged
_NO_AUDIT = "The study has no cells in the role audit that `black_box` attacks (studies/de2022-audit-small.yaml)"


@dataclass(frozen=True)
class Setting:
    """One setting of Tables 13 to 23; epsilon is math.inf without privacy."""

    table: str
    dataset: str
    method: str
    epsilon: float
    delta: float
    batch: int
    sigma: float
    steps: int

    def spent(self, records: int) -> float:
        """The epsilon that the setting spends on `n` records, by Renyi DP with the improved conversion."""
        return _spent(self.sigma, self.steps, self.batch / records, self.delta)

    def epochs(self, records: int) -> float:
        """How often it takes each of `n` records."""
        return self.steps * self.batch / records

    def shown(self, records: int) -> str:
        """That epsilon, rounded up to two places."""
        return upper_bound(self.spent(records), places=2)

    def off(self, records: int) -> float:
        """How far that lies from the printed epsilon, relatively."""
        return self.spent(records) / self.epsilon - 1


@cache
def _spent(sigma: float, steps: int, rate: float, delta: float) -> float:
    return renyi_epsilon([Event("gradient", "gaussian", sigma, 1.0, steps, "poisson", rate)], delta)


def settings(evidence: Evidence) -> list[Setting]:
    """The settings in Tables 13 to 23, in order."""
    rows = [row for row in evidence.hyperparameters if row["table"] in _TABLES]
    found = []
    for group in grouped(rows, itemgetter(*_NAMES)):
        values = {row["parameter"]: row["value"] for row in group}
        used = int(values["batch_size"]), float(values["noise_multiplier"]), int(values["num_updates"])
        epsilon, delta = float(group[0]["epsilon"]), float(group[0]["delta"])
        found.append(Setting(group[0]["table"], group[0]["dataset"], group[0]["method"], epsilon, delta, *used))
    return found


def records(evidence: Evidence, dataset: str) -> tuple[int, int]:
    """Table 12: (training records where results are on the test set, where they are on the validation set)."""
    rows = [row for row in evidence.hyperparameters if (row["table"], row["dataset"]) == ("12", dataset)]
    sizes = {row["parameter"]: row["value"] for row in rows}
    train, both = sizes["n_train"], sizes["n_train_plus_valid"]
    return int(train if both == "-" else both), int(train)


def _closest(evidence: Evidence) -> list[tuple[Setting, int, float]]:
    """(private setting, records, relative difference of epsilons): with all training records, or without those for
    validation if that is nearer."""
    found = []
    for one in settings(evidence):
        if one.sigma > 0:
            every, train = records(evidence, one.dataset)
            sizes = (every,) if abs(one.off(every)) <= _SAME else (every, train)
            found.append((one, *min(((size, one.off(size)) for size in sizes), key=lambda pair: abs(pair[1]))))
    return found


def recomputed(evidence: Evidence) -> Finding:
    """Judge the claim: the settings in Tables 13 to 23 spend the printed epsilon on Table 12's numbers of records."""
    closest = _closest(evidence)
    wrong = [_named(one) for one, _, off in closest if abs(off) > _SAME]
    near = sum(abs(off) <= _NEAR for _, _, off in closest)
    worst = max(closest, key=lambda item: abs(item[2]))
    text = f"Renyi DP with the improved conversion, δ and N as printed: {near} of {len(closest)} settings within "
    text += f"{_NEAR:.0%} of the printed ε, the worst {worst[2]:.1%} ({_named(worst[0])})"
    if fewer := [(one, size) for one, size, _ in closest if size != records(evidence, one.dataset)[0]]:
        sizes = ", ".join(f"{size:,}" for size in dict.fromkeys(size for _, size in fewer))
        tables = grouped((one for one, _ in fewer), lambda one: one.table)
        listed = [f"Table {each[0].table}, ε = {', '.join(number(one.epsilon) for one in each)}" for each in tables]
        text += f". With N = {sizes}, the records without those for validation: {'; '.join(listed)}; "
        offs = [one.off(records(evidence, one.dataset)[0]) for one, _ in fewer]
        text += "on all records, where the tables' test results are from, they would spend "
        text += f"{-max(offs):.0%} to {-min(offs):.0%} less"
    text += f". Not reproduced: {', '.join(wrong)}" if wrong else ""
    return decided(not wrong, COMPUTED, text)


def _named(one: Setting) -> str:
    return f"Table {one.table}, {one.method.removeprefix('DP-SGD').strip(' ()') or 'all'}, ε = {number(one.epsilon)}"


def tuning_is_free(evidence: Evidence) -> Finding:
    """Judge the claim: the last training alone spends the printed epsilon, with nothing left for tuning."""
    whole = [off >= -_SAME for _, _, off in _closest(evidence)]
    text = f"In {sum(whole)} of {len(whole)} settings of Tables 13 to 23 one training spends the whole printed ε"
    private = [run for run in evidence.ours.runs if run.ledger.get("epsilon") is not None]
    unpaid = sum(any(_UNPAID in sentence for sentence in run.ledger.get("not_accounted", ())) for run in private)
    here = f"{unpaid} of {len(private)} private cells say in their ledger that the choice was not paid for"
    return decided(all(whole), COMPUTED, text, here if private else "")


def later_results(evidence: Evidence) -> Finding:
    """Judge the claims on later results of others, as mehta2023 quotes them too."""
    rows = [row for row in published_rows(RESULTS, "mehta2023") if row["table"] == "1" and float(row["epsilon"]) == 1]
    quoted = {row["dataset"]: row["value"] for row in rows if row["source"].startswith("Bu et al.")}
    text = ", ".join(f"{name} {quoted.get(name, 'nothing')} ({value} here)" for name, value in _BU.items())
    text = f"Of Bu et al. at ε = 1 mehta2023's Table 1 quotes {text}"
    if any(quoted.get(name, value) != value for name, value in _BU.items()):
        return decided(False, PRINTED, text)
    return undecided("A citation; the 82.5 of Klause et al. stands in no table that is held here", text)


def _attacked(evidence: Evidence, role: str = "audit") -> list[Run]:
    """The attacked cells in a role, of all sizes of the data set, by records and epsilon."""
    runs = [run for run in evidence.ours.of_any_size(role) if run.black_box]
    return sorted(runs, key=lambda run: (run.black_box["records"], run.epsilon))


def _name(run: Run) -> str:
    return f"|D| = {run.black_box['records']:,}, ε = {number(run.epsilon)}"


def _statistics(evidence: Evidence, metric: str) -> dict[tuple[str, float], str]:
    """(|D|, nominal epsilon) -> one statistic of Table 9, as printed."""
    rows = [row for row in evidence.rows if row["table"] == "9" and row["metric"] == metric]
    return {(row["method"].partition("(")[2].rstrip(")"), float(row["epsilon"])): row["value"] for row in rows}


def no_violation(evidence: Evidence) -> Finding:
    """Judge the claim: every lower bound lies below the nominal epsilon."""
    lower = _statistics(evidence, "eps_lower_bound")
    above = [f"{size}, ε = {number(e)}" for (size, e), value in lower.items() if float(value) >= e]
    share = max(float(value) / e for (_, e), value in lower.items())
    text = f"{len(lower) - len(above)} of {len(lower)} lower bounds of Table 9 below the nominal ε, at most {share:.0%}"
    text += f"; not {', '.join(above)}" if above else ""
    runs = _attacked(evidence)
    if not runs:
        return decided(not above, PRINTED, text, f"{_NO_AUDIT}; ledgers certify upper bounds")
    refuted = [_name(run) for run in runs if run.black_box["epsilon_lower"] > run.black_box["epsilon_certified"]]
    most = max(run.black_box["epsilon_lower"] / run.epsilon for run in runs)
    here = f"{len(runs) - len(refuted)} of {len(runs)} attacked cells are consistent with what they certify; the lower "
    here += f"bounds reach {most:.0%} of the nominal ε" + (f"; refuted: {', '.join(refuted)}" if refuted else "")
    return decided(not refuted, CELLS, text, here)


def tighter_on_small_sets(evidence: Evidence) -> Finding:
    """Judge the claim: with 100 records the bounds are tighter, over twice so above nominal epsilon 1."""
    printed = {(size, e): float(v) for (size, e), v in _statistics(evidence, "eps_lower_bound").items()}
    holds, text = _tighter({e: printed[_SMALL, e] / printed[_LARGE, e] for size, e in printed if size == _SMALL})
    text = f"Lower bounds with 100 records over those with 60,000: {text}; 2 is claimed above ε = 1"
    ours = {(run.black_box["records"], run.epsilon): run.black_box["epsilon_lower"] for run in _attacked(evidence)}
    few, many = (min(sizes), max(sizes)) if (sizes := {size for size, _ in ours}) else (0, 0)
    both = {e: ours[few, e] / ours[many, e] for size, e in ours if size == few < many and ours.get((many, e))}
    if not both:
        return decided(holds, PRINTED, text, "The study attacks no cells on two numbers of records")
    holds, here = _tighter(both)
    return decided(holds, CELLS, text, f"Lower bounds with {few:,} records over those with {many:,}: {here}")


def _tighter(ratios: Mapping[float, float]) -> tuple[bool, str]:
    """Whether ratios by nominal epsilon are as claimed, and the ratios as text."""
    holds = all(ratio > (2 if e > _TWICE_ABOVE else 1) for e, ratio in ratios.items())
    return holds, ", ".join(f"ε = {number(e)}: {ratio:.2f}" for e, ratio in ratios.items())


def advantage_in_closed_form(evidence: Evidence) -> Finding:
    """Judge the printed bounds on the advantage: (e^epsilon - 1 + 2 delta)/(e^epsilon + 1), delta = 1/|D|."""
    printed = _statistics(evidence, "membership_advantage_upper_bound")
    formed = {(size, e): f"{(math.exp(e) - 1 + 2 / _SIZES[size]) / (math.exp(e) + 1):.2f}" for size, e in printed}
    differing = [(key, bound, printed[key]) for key, bound in formed.items() if bound != printed[key]]
    wrong = [f"{size}, ε = {number(e)}: {bound} against {stated}" for (size, e), bound, stated in differing]
    measured = _statistics(evidence, "membership_advantage")
    below = sum(float(value) <= float(printed[key]) for key, value in measured.items())
    text = f"(e^ε − 1 + 2δ)/(e^ε + 1) with δ = 1/|D| gives {len(printed) - len(wrong)} of {len(printed)} printed bounds"
    text += f" (not {'; '.join(wrong)})" if wrong else ""
    text += f"; {below} of {len(measured)} measured advantages lie below theirs"
    return decided(not wrong and below == len(measured), COMPUTED, text)


def protocol(evidence: Evidence) -> Finding:
    """Judge the claim: the numbers of models add up, and are enough to see a violation."""
    per_set = _MODELS - _RESERVED
    least = 1 - ((1 - _CONFIDENCE) / 2) ** (1 / per_set)  # Clopper-Pearson, no false positive seen
    largest = math.log((1 - least - 1 / _SIZES[_SMALL]) / least)
    highest = max(e for _, e in _statistics(evidence, "eps_lower_bound"))
    text = f"2 x ({_MODELS:,} − {_RESERVED:,}) = {2 * per_set:,} models; {per_set:,} without a single error would show "
    text += f"a lower bound of {lower_bound(largest, places=1)}, above the largest nominal ε of {number(highest)}"
    runs = _attacked(evidence)
    counts = sorted({run.black_box["held_out"] + run.black_box["runs"] for run in runs})
    here = f"Here {', '.join(f'{count:,}' for count in counts)} models a side" if runs else _NO_AUDIT
    if 2 * per_set != _EVALUATED or largest <= highest:
        return decided(False, COMPUTED, text, here)
    return undecided(f"{here}: that the procedure finds what Table 9 prints takes {_MODELS:,}", text)


def blank_canary(evidence: Evidence) -> Finding:
    """Judge the claim: a blank image is the easiest canary to find, with the most distant losses in phase I.

    What so few models tell apart by chance decides nothing: distances between Gaussians fitted to n losses a side have
    a standard error of about (pi n)^(-1/2) where they are small.
    """
    printed = "Table 9 has a blank image only; of the others nothing is printed"
    leads = []  # at each setting: of the blank image, and two standard errors of it
    for run in _attacked(evidence):
        noise = 2 * math.sqrt(2 / (math.pi * run.black_box["pilot"]))
        tried = grouped(run.black_box["tried"], lambda t: (t["learning_rate"], t["clipping_norm"], t.get("steps")))
        for group in tried:
            blank = [one["distance"] for one in group if one["canary"] == "blank"]
            others = [one["distance"] for one in group if one["canary"] != "blank"]
            if blank and others:
                leads.append((blank[0] - max(others), noise))
    if not leads:
        return undecided(f"{_NO_AUDIT}, with a blank image among several canaries", printed)
    clearly, lost = sum(lead > noise for lead, noise in leads), sum(lead < -noise for lead, noise in leads)
    here = f"A blank image is the easiest to tell at {sum(lead >= 0 for lead, _ in leads)} of {len(leads)} settings of "
    here += f"phase I, beyond chance at {clearly}, another canary beyond chance at {lost}"
    runs = [run for run in _attacked(evidence) if run.black_box["chosen"]["canary"] != "blank"]
    here += f"; another canary was chosen at {', '.join(map(_name, runs))}" if runs else "; chosen everywhere"
    least = TOLERATED * len(leads)  # as of other comparisons
    by_chance = len(leads) > 2 and max(clearly, lost) == 1  # one of three or more: in over one case in twenty
    if max(clearly, lost) <= least or by_chance:
        return undecided(f"{here}; {UNDECIDED}", printed)
    return decided(lost <= least, CELLS, printed, here)


def audit_with_copies(evidence: Evidence) -> Finding:
    """Judge the claim: augmentation multiplicity does not change the audit."""
    base = _statistics(evidence, "eps_lower_bound")[_SMALL, 1.0]
    printed = f"Without augmentation the bound is {base}; the one with K = 16 is not printed"
    bounds = {(run.black_box["records"], run.epsilon): run.black_box["epsilon_lower"] for run in _attacked(evidence)}
    texts, same, found = [], True, False
    for run in _attacked(evidence, "audit-copies"):
        if (without := bounds.get((run.black_box["records"], run.epsilon))) is not None:
            bound = run.black_box["epsilon_lower"]
            copies = run.metrics["hyperparameters"].get("augmentation", {}).get("multiplicity", 1)
            texts.append(f"{_name(run)}: {without:.3f} without, {bound:.3f} with K = {copies}")
            same &= abs(bound - without) <= _UNCHANGED * run.epsilon
            found |= max(bound, without) > _UNCHANGED * run.epsilon  # bounds below that cannot differ by more
    if not texts:
        return undecided("The study attacks no cells in the roles audit and audit-copies at one epsilon", printed)
    here = f"{'; '.join(texts)}; a tenth of the nominal ε counts as unchanged"
    return decided(same, CELLS, printed, here) if found else undecided(f"{here}; {UNDECIDED}", printed)


def fairness(evidence: Evidence) -> Finding:
    """Judge the warning: training with privacy can cost accuracy on groups that have few records."""
    of = [(f"{row['class']} at ε = {row['epsilon']}", row) for row in published_rows(GROUPS, "de2022")]
    more = [(name, Value(float(row["more"]), float(row["error"])), Value(0.0)) for name, row in of]
    part = Part.of("What privacy costs a class of which a tenth is left, over what it costs the others", more)
    printed = "A warning, without a measurement."
    here = f"Linear models on features of Fashion-MNIST, DP-SGD: {part}"
    return undecided(here, printed) if part.verdict == OPEN else Finding(part.verdict, MEASUREMENT, printed, here)
