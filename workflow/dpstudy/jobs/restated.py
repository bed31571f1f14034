"""An independent check of ledgers: unit, sensitivity, sampling rate and steps derived again from the config.

Epsilon follows from the events; here is what the events, and the promise around them, follow from: the unit and how
many there are, delta, the most records of a subject and labels of a record, and for each mechanism its sensitivity (by
the clipping norm), sampling rate and number of steps. A ledger in which one of these is wrong, and epsilon computed
from it rightly, would stand before every accountant.
"""

import math
from collections.abc import Callable, Mapping, Sequence

from dpstudy.config.tuned import PUBLIC

_CLOSE = 1e-9  # relative, between two computations of one number
Values = Callable[[str], object]


def restated_faults(ledger: Mapping, run: Mapping, facts: Mapping) -> list[str]:
    """Contradictions between a ledger and the config, a sentence each.

    Args:
        ledger, run: the content of ledger.json and run.json of a cell.
        facts: {"epsilon": the cell's, "noise", "dataset": unit, delta, positives, per_subject, contributions and beyond
            as the config has them, "options": the entry's, overrides applied, "n": public number of units, None where
            it is not at hand}.
    """
    dataset, options, n = facts["dataset"], facts["options"], facts["n"]
    expected = {
        "unit": dataset["unit"],
        "delta": float(dataset["delta"]),
        "target_epsilon": facts["epsilon"],
        "noise": facts["noise"],
    } | ({"n": n} if n is not None else {})
    faults = [_different(key, ledger[key], value) for key, value in expected.items()]
    bounds = ledger.get("bounds", {})
    records = dataset.get("per_subject", 1) if dataset["unit"] == "subject" else 1
    labels = dataset.get("positives", 1)
    if "version" in ledger or "records" in bounds:
        most = records if dataset["unit"] == "subject" else None
        faults.append(_different("a contribution bound (records of a subject)", bounds.get("records"), most))
        average = "average" if dataset.get("contributions") == "average" else None
        faults.append(_different("how a subject's records count", bounds.get("contributions"), average))
        records = 1 if average else records
    if "positives" in bounds:
        faults.append(_different("labels per record", bounds["positives"], labels))
        faults.append(_different("what becomes of more labels", bounds["beyond"], dataset.get("beyond", "refuse")))
    plain = options.get("tuning", {}).get("pay") in (None, False, "none")
    if ledger["guarantee"] == "proved" and plain and options["method"] in _MECHANISMS:  # of a search that is paid for
        chosen = run.get("hyperparameters", {})  # parts of the records are trained on, in trials: not told here

        def value(name: str) -> object:
            return options[name] if name in options else chosen.get(name)

        size = ledger["n"] if n is None else n
        for release in _MECHANISMS[options["method"]](value, size, run["classes"], labels, records):
            faults += _of_release(ledger["events"], release)
        for release in _calibration(options, ledger["events"], run, "positives" in bounds, labels, records):
            faults += _of_release(ledger["events"], release)
    return [fault for fault in faults if fault]


def _different(what: str, stated: object, expected: object) -> str:
    numbers = isinstance(stated, (int, float)) and isinstance(expected, (int, float))
    same = math.isclose(stated, expected, rel_tol=_CLOSE) if numbers else stated == expected  # type: ignore[arg-type]
    return "" if same else f"it states {what} {stated}, where the config and public metadata give {expected}"


def _of_release(events: Sequence[Mapping], release: Mapping) -> list[str]:
    """Hold the events of a name, in the order of their counts, against what is expected of them."""
    name, wanted = release["name"], release["parts"]
    of_name = sorted((event for event in events if event["name"] == name), key=lambda e: (e["count"], e["sensitivity"]))
    if len(of_name) != len(wanted):
        return [f"it has {len(of_name)} events named {name!r}, where the config and public metadata give {len(wanted)}"]
    return [
        _different(f"{key.replace('_', ' ')} of {name}", event[key], value)
        for event, part in zip(of_name, sorted(wanted, key=lambda p: (p["count"] or 0, p["sensitivity"])), strict=True)
        for key, value in part.items()
        if value is not None
    ]


def _release(name: str, sensitivity: float, count: int | None = 1, **more: object) -> dict:
    whole = {"sampling": "none", "sampling_rate": 1.0}
    return {"name": name, "parts": [{"sensitivity": sensitivity, "count": count, **whole, **more}]}


def _calibration(
    options: Mapping, events: Sequence[Mapping], run: Mapping, several: bool, labels: int, records: int
) -> list[dict]:
    none = not any(event["name"] == "calibration" for event in events)
    asked = options.get("calibration", PUBLIC)
    if asked == PUBLIC or (none and asked == "auto"):  # there may be too few units
        return []
    longest = math.sqrt(3) if not several else math.sqrt(2 * min(run["classes"], labels + 1))
    releases = [_release("calibration_scale", records), _release("calibration", records * longest, 5)]
    if options.get("thresholds") and any(event["name"] == "operating_points" for event in events):
        releases.append(_release("operating_points", records * math.sqrt(run["classes"])))
    return releases


def _least_squares(value: Values, n: int, classes: int, labels: int, records: int) -> list[dict]:
    norm = float(value("clipping_norm"))  # type: ignore[arg-type]
    sums = [_release("gram", records * norm**2), _release("targets", records * math.sqrt(labels) * norm)]
    published = value("variant") == "published"
    return sums + ([_release("class_grams", records * math.sqrt(labels) * norm**2)] if published else [])


def _feature_covariance(value: Values, n: int, classes: int, labels: int, records: int) -> list[dict]:
    steps = value("steps")  # "auto": at least 20, a number that follows from the noise
    length = records * float(value("clipping_norm"))  # type: ignore[arg-type]
    gradient = [_release("gradient", length, None if steps == "auto" else int(steps))] if steps else []  # type: ignore[call-overload]
    if value("variant") == "published":
        gram = float(value("gram_clipping_norm") or value("clipping_norm"))  # type: ignore[arg-type]
        return [_release("gram", records * gram**2), *gradient]
    mean = [_release("mean", records)] if value("mean_share") else []  # rows have a length of at most 1
    start = [_release("targets", records * math.sqrt(labels))] if value("start_share") or not steps else []
    return [*mean, _release("gram", records), *start, *gradient]


def _newton(value: Values, n: int, classes: int, labels: int, records: int) -> list[dict]:
    norm, steps = float(value("clipping_norm")), int(value("steps"))  # type: ignore[arg-type,call-overload]
    if value("variant") == "published":
        wide = records * math.sqrt(classes) * norm
        return [_release("gradient", wide, steps), _release("hessian", wide * norm / 4, steps)]
    first = 1 - 1 / classes  # of a record at zero weights; later ones are the largest at any weights
    blocks = value("preconditioner") == "per-class"
    hessians = (first / math.sqrt(classes), math.sqrt(1 / 8 if classes == 2 else 4 / 27)) if blocks else (first, first)
    releases = []
    for name, unit, (at_zero, later) in (
        ("gradient", norm, (math.sqrt(first), math.sqrt(2))),
        ("hessian", norm**2, hessians),
    ):
        release = _release(name, records * unit * at_zero)
        if steps > 1:
            release["parts"] += _release(name, records * unit * later, steps - 1)["parts"]
        releases.append(release)
    return releases


def _stepped(value: Values, n: int, classes: int, labels: int, records: int) -> list[dict]:
    batch = value("batch_size")
    rate = 1.0 if batch in ("full", None) else batch / n  # type: ignore[operator]
    steps: int | None = None  # as many as the budget allows at a noise that is given
    if value("epochs") is not None:
        steps = max(1, round(value("epochs") / rate))  # type: ignore[operator]
    elif value("noise_multiplier") is None or value("steps") is not None:
        steps = value("steps")  # type: ignore[assignment]
    if (bands := int(value("bands") or 1)) > 1:  # type: ignore[call-overload]
        rate, steps = bands * batch / n, steps and -(-steps // bands)
    sampling = "none" if rate == 1 else "poisson"
    if value("largest_batch"):
        sampling = "truncated-poisson"
    elif value("sampling") == "shuffle" and rate < 1:
        sampling = "shuffle"
    norm = records * float(value("clipping_norm"))  # type: ignore[arg-type]
    return [*_normalisation(value, records), _release("gradient", norm, steps, sampling=sampling, sampling_rate=rate)]


def _iterated(value: Values, n: int, classes: int, labels: int, records: int) -> list[dict]:
    batch = int(value("batch_size"))  # type: ignore[call-overload]
    steps = int(value("epochs")) * -(-n // batch)  # type: ignore[call-overload]
    longest = math.sqrt(1 + labels) * float(value("clipping_norm"))  # type: ignore[arg-type]
    gradient = _release("gradient", longest, steps, sampling="shuffle", sampling_rate=batch / n)
    return [*_normalisation(value, records), gradient]


def _normalisation(value: Values, records: int) -> list[dict]:
    options = value("normalisation")
    if not isinstance(options, Mapping):
        return []
    rate = options.get("sampling_rate") or 1.0
    sampling = "none" if rate == 1 else "poisson"
    return [
        _release(f"normalisation_{m}", records * options[f"{m}_clip"], sampling=sampling, sampling_rate=rate)
        for m in ("mean", "square")
    ]


def _kernel_mean(value: Values, n: int, classes: int, labels: int, records: int) -> list[dict]:
    rows = labels + (labels > 1)  # a record of several labels also counts in the sum over all records
    counts = [_release("class_counts", records * math.sqrt(labels))] if value("class_shares") == "released" else []
    return [_release("class_sums", records * math.sqrt(rows)), *counts]


_MECHANISMS = {
    "least_squares": _least_squares,
    "feature_covariance": _feature_covariance,
    "newton": _newton,
    "first_order": _stepped,
    "network_dpsgd": _stepped,
    "iterated_sgd": _iterated,
    "kernel_mean": _kernel_mean,
}
