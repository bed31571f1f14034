"""Ledgers, audits and totals in plain words, for the report."""

from collections.abc import Mapping

from dpstudy.privacy.printed import lower_bound, upper_bound
from dpstudy.tables.numbers import significant

GUARANTEES = {
    "proved": "The releases below cover everything that touched private records, apart from what is named.",
    "claimed": "The authors claim this guarantee; it is not proved.",
    "none": "No privacy guarantee.",
}
ADJACENCIES = {
    "add-remove-one": "adding or removing one {unit}",
    "replace-one": "replacing one {unit}",
    "zero-out": "leaving the place of one {unit} empty",
}
_UNITS = {"record": "record", "subject": "subject (all records of one person)"}
RELEASES = {  # what the releases of the methods here are, for those who do not know their names
    "mean": "the average of the features",
    "gram": "how features go together",
    "class_grams": "how features go together, class by class",
    "targets": "how features and labels go together",
    "class_sums": "the features of each class, added up",
    "class_counts": "how many records each class has",
    "gradient": "where each record would move the model, cut to a length and added up",
    "hessian": "how the model's errors curve, added up",
    "normalisation_mean": "the average of each channel",
    "normalisation_square": "the average square of each channel",
    "calibration_scale": "how large scores are",
    "calibration": "how often classes are right, and how far probabilities are off",
    "operating_points": "how many records with and without each class have which probability",
    "points": "each record's features by themselves",
    "validation score": "how well a trial did on the validation split",
    "choice": "which setting did best on the validation split",
}
_ACCOUNTANTS = {"exact": "exact", "pld": "PLD", "rdp": "RDP", "zcdp": "zCDP", "bracket": "second accountant"}
TESTED = {  # whether the test split is public -> what publishing its scores means for its records
    True: "The test split is public: its scores, intervals and groups are no release.",
    False: (
        "The test split holds private records: every number on it here (scores, intervals, how many a group has) is a "
        "statistic of them that no ledger accounts for. Keep this page where the records are kept."
    ),
}


_ON_RECORDS = (
    "These attacks were on the points of private training records: the bounds, here and in the tables, are statistics "
    "of those that no ledger accounts for."
)

_BOUNDS = {
    "clopper-pearson": "from the rates of its two errors alone, by Clopper-Pearson",
    "gaussian-dp": "from the same, knowing that the noise is Gaussian",
    "one-run": "from one run with many canaries",
}


def audit_in_words(audit: dict, guarantee: str = "proved") -> list[str]:
    """The results of an audit as sentences: the verdict, then each attack."""
    shown = [
        f"ε ≥ {lower_bound(entry['epsilon_lower'], places=2)}, {_BOUNDS.get(entry['bound'], entry['bound'])} "
        f"({entry['statistic']}; {entry['adjacency']}, {entry['runs']} runs, confidence {entry['confidence']:.5g})."
        for entry in audit["audits"]
    ]
    return [f"Audit: {audit['verdict']}", *shown, *([_ON_RECORDS] if guarantee == "claimed" and shown else [])]


def bounds_in_words(bounds: dict) -> list[str]:
    """The contribution bounds of a unit, a sentence each."""
    sentences = []
    if "records" in bounds:
        averaged = ", averaged, so that they count as one" if "contributions" in bounds else ""
        sentences.append(f"Of a person at most {_counted(bounds['records'], 'record')} were learned from{averaged}.")
    if "persons" in bounds:
        sentences.append(f"A person is all records with one value of {bounds['persons']!r}.")
    if "positives" in bounds:
        beyond = "were cut down to that" if bounds["beyond"] == "truncate" else "would have been refused"
        sentences.append(
            f"A record counts with at most {_counted(bounds['positives'], 'label')}; those with more {beyond}."
        )
    return sentences


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def event_in_words(event: dict) -> str:
    """One event of a ledger as a sentence."""
    count = event["count"]
    what = f" ({RELEASES[event['name']]})" if event["name"] in RELEASES else ""
    text = f"{event['name']}{what}: {event['mechanism']} mechanism"
    if event.get("noise_multiplier") is not None:
        text += f", noise multiplier {lower_bound(event['noise_multiplier'])}"  # noise and rate are what protects
    if event.get("sensitivity") is not None:
        text += f" (sensitivity {significant(event['sensitivity'])})"
    text += f", released {'once' if count == 1 else f'{count} times'}, {_sampling(event)}."
    inner = " ".join(event_in_words(part) for part in event.get("events", ()))
    if inner and "mean" in event.get("params", {}):
        mean = event["params"]["mean"]
        text += f" Of a secret number of runs ({event['params']['distribution']}, mean {mean:g}) one is released."
    return f"{text} It repeats: {inner}" if inner else text


def _sampling(event: dict) -> str:
    part = event.get("params", {}).get("part")
    split = f" of the {part} split" if part else ""
    if bands := event.get("params", {}).get("bands"):
        rate = upper_bound(event["sampling_rate"])
        return (
            f"each time in {bands} steps on Poisson samples{split} with rate {rate}, of {bands} groups of units in "
            "turn, with noise correlated over as many steps"
        )
    if event["sampling"] == "none":
        return f"each time on all records{split}"
    if event["mechanism"] == "iterated-gaussian":
        order = {"secret": "a secret random", "public": "a known"}[event["params"]["order"]]
        return f"on fixed batches in {order} order, only the last iterate being published"
    if event["sampling"] == "shuffle":
        return "on fixed batches of a shuffled pass (no amplification)"
    kind = event["sampling"].replace("-", " ").replace("poisson", "Poisson")
    cut = f", cut to {event['params']['largest_batch']} where there are more" if kind.startswith("truncated") else ""
    return f"each time on a {kind} sample{split} with rate {upper_bound(event['sampling_rate'])}{cut}"


def ledger_in_words(ledger: dict) -> dict:
    """A ledger as sentences.

    Returns:
        {"guarantee": name, "summary": sentence, "others": sentence or "", "events": [sentence],
        "not_accounted": [sentence]}.
    """
    unit = _UNITS.get(ledger["unit"], ledger["unit"])
    change = ADJACENCIES.get(ledger["adjacency"], ledger["adjacency"]).format(unit=unit)
    if ledger["epsilon"] is None:
        summary = GUARANTEES[ledger["guarantee"]]
    else:
        summary = (
            f"ε ≤ {upper_bound(ledger['epsilon'])} at δ = {upper_bound(ledger['delta'])} against {change}, among "
            f"{ledger['n']} (accountant: {_accountant(ledger['accountant'])}); target ε = {ledger['target_epsilon']}."
        )
        if ledger["guarantee"] != "proved":
            summary += f" {GUARANTEES[ledger['guarantee']]}"
    by = bounds_on_epsilon(ledger["epsilon_by"])
    noise = {"seeded": "seeded (reproducible research, not for release)", "secure": "from the operating system"}
    source = f"Noise: {noise.get(ledger['noise'], ledger['noise'])}. Scope: {ledger['scope']}."
    return {
        "guarantee": ledger["guarantee"],
        "summary": summary,
        "others": " ".join(filter(None, [f"ε by accountant: {by}." if by else "", trade_off_in_words(ledger)])),
        "events": [event_in_words(event) for event in ledger["events"]],
        "noise": " ".join([*bounds_in_words(ledger.get("bounds", {})), source]),
        "not_accounted": list(ledger["not_accounted"]),
    }


_SUMS = {
    "exact": " Private sums were exact.",
    "within a margin": " Private sums were rounded by less than a margin that clipping leaves.",
    "rounded": " Rounding inside private sums is not covered.",
}


def certificate_in_words(certificate: Mapping) -> str:
    """The results of independent accountants on a ledger as a sentence; "" where nothing is certified."""
    by, sums = bounds_on_epsilon(certificate["bounds"]), _SUMS.get(certificate.get("sums", ""), "")
    replayed = f" {replay_in_words(certificate['replay'])}" if "pairs" in certificate.get("replay", {}) else ""
    return f"Certified anew from the ledger alone: {by}.{sums}{replayed}" if by else ""


def replay_in_words(replay: Mapping) -> str:
    """The result of a replay of a training as a sentence."""
    if "exempt" in replay:
        return f"Nothing was replayed: {replay['exempt']}."
    return (
        f"Trained with the same settings on {replay['records']} made-up records, and again on {replay['pairs']} other "
        "sets of them behind the same releases, it gave the same, byte for byte: of these nothing passed around the "
        "releases."
    )


def bounds_on_epsilon(bounds: Mapping[str, float | None]) -> str:
    """The bound on epsilon by each accountant, rounded up, as a list in text; "" where there is none.

    >>> bounds_on_epsilon({"exact": 2.0, "pld": 2.00041, "rdp": None})
    'exact 2, PLD 2.001'
    """
    return ", ".join(f"{_accountant(name)} {upper_bound(bound)}" for name, bound in bounds.items() if bound)


def total_in_words(total: Mapping) -> str:
    """The privacy cost of publishing every seed of every cell of a data set, as a sentence.

    Args:
        total: what `ledger_sums.total` gives, and "together", where other data sets have the same records.
    """
    if "together" in total:
        alone, together = {key: value for key, value in total.items() if key != "together"}, total["together"]
        beside = (
            f"With {', '.join(together['with'])}, which may have the same records: {total_in_words(together)}"
            f"{uncounted_in_words(together)}"
        )
        return f"{total_in_words(alone)} {beside}"
    runs = f"{total['cells']} cells, {total['seeds']} trained models"
    proved = _proved(total)
    accountant = f"δ = {upper_bound(total['delta'])}, {_accountant(total['accountant'])}"
    beside = _beside(total)
    if not total["unbounded"]:
        return f"{runs}: ε is {proved} in total ({accountant}).{beside}"
    return (
        f"{runs}: unbounded, since {total['unbounded']} of the cells have no proved guarantee; "
        f"without those, ε is {proved} ({accountant}).{beside}"
    )


def _proved(total: Mapping) -> str:
    bound = total["epsilon_of_proved"]
    return "unknown" if bound is None else f"at most {upper_bound(bound)}" if bound > 0 else "0"


def _beside(total: Mapping) -> str:
    """What a sum of ε does not say by itself, in sentences that each begin with a space."""
    sentences = []
    if "zero-out" in total.get("adjacencies", ()):
        sentences.append("It is about leaving one place empty (zero-out).")
    if "seeded" in total.get("noise", ()):
        sentences.append("Some noise is seeded: not for release.")
    if count := len(total.get("not_accounted", ())):
        sentences.append(f"Not accounted for: {'what' if count == 1 else f'{count} things, which'} total.json names.")
    return "".join(f" {sentence}" for sentence in sentences)


def uncounted_in_words(counted: Mapping) -> str:
    """What a total leaves out, as a sentence that begins with a space; "" if nothing."""
    if "by_record" in counted:
        return f" {counted['by_record']} more protected single records only: of persons they bound nothing."
    if "by_person" in counted:
        return f" {counted['by_person']} more learned from one record of each person: of a record they bound less."
    if "by_other_persons" in counted:
        return f" {counted['by_other_persons']} more tell persons apart by another column: of these they bound nothing."
    return ""


def spent_in_words(spent: dict | None) -> str:
    """The epsilon that all trainings with secure noise have spent on a data set, as a sentence; "" if none."""
    if spent is None:
        return ""
    models = "1 model was" if spent["seeds"] == 1 else f"{spent['seeds']} models were"
    return (
        f" With secure noise {models} trained so far, those that are gone included: together ε is {_proved(spent)} "
        f"({_accountant(spent['accountant'])})."
    )


def caught_in_words(trade_off: Mapping) -> str:
    """The highest true positive rates of any attacker at small false positive rates, as a sentence."""
    shares = [(upper_bound(100 * share, places=1), 100 * float(r)) for r, share in trade_off["true_positives"].items()]
    caught = ", ".join(f"at most {most} % at {rate:g} % false positives" for most, rate in shares)
    return f"whoever knows all other records and sees the model recognises, of those who took part, {caught}."


def trade_off_in_words(ledger: Mapping) -> str:
    """The trade-off curve of a ledger in sentences; "" where it has none."""
    if "trade_off" not in ledger:
        return ""
    curve = ledger["trade_off"]
    mu = f"It is μ-Gaussian DP with μ = {upper_bound(curve['mu'])}. " if curve["mu"] is not None else ""
    epsilons = ", ".join(f"{upper_bound(e)} at {d}" for d, e in curve["epsilons"].items() if e is not None)
    return (
        f"{mu}ε by δ: {epsilons}. Someone who knows all other records and sees the model guesses whether a coin let "
        f"you take part rightly at most {upper_bound(100 * curve['right'], places=1)} % of the time; "
        f"{caught_in_words(curve)}"
    )


def _accountant(name: str) -> str:
    return _ACCOUNTANTS.get(name, name)
