"""Checks of hyper-parameter searches and calibration, and what ledgers say of choices that are not paid for."""

from dpstudy.config.cells import Cell, unfold
from dpstudy.core.errors import StudyError
from dpstudy.data.own import test_is_public
from dpstudy.schema.methods import method_schema

PAID_TUNING = "dpstudy.tuning.paid"  # named, not imported, so that the code of other cells excludes it
CALIBRATION = "dpstudy.methods.calibrated"  # likewise for cells without `calibration`
PUBLIC_CALIBRATION, PUBLIC = "dpstudy.methods.calibrated_publicly", "test"  # likewise without public test records
PAID = "validation, and paid for"
SEARCHED = (
    "The hyper-parameters were chosen by {} trials on a validation split of the private records; that search was not "
    "paid for."
)
CHOSEN_BEFOREHAND = (
    "The hyper-parameters were chosen beforehand (tuned on: {}); what that choice tells of private records was not "
    "paid for."
)


def pays(options: dict) -> bool:
    """Whether a cell's tuning is part of its training and counted in its ledger."""
    return options.get("tuning", {}).get("pay", "nothing") != "nothing"


def unpaid_searches(config: dict) -> list[str]:
    """The method entries, in the config's order, with private cells tuned by a search that no ledger counts."""
    private = ((cell, cell.options(config)) for cell in unfold(config) if cell.epsilon != "inf")
    unpaid = {cell.entry for cell, options in private if "tuning" in options and not pays(options)}
    return [name for name in config["methods"] if name in unpaid]


def tuned_on(options: dict, tuning: dict) -> str:
    """The data that a cell's hyper-parameters were chosen on, as stated in metrics.json.

    Args:
        tuning: of metrics.json, or empty.
    """
    if not tuning:
        return options["tuned_on"]
    searched = PAID if "pay" in tuning else "validation"
    return searched if options["tuned_on"] == "nothing" else f"{options['tuned_on']}; the rest on {searched}"


def unpaid_choices(beforehand: str, tuning: dict) -> list[str]:
    """The ledger's sentences on choices whose privacy cost is not counted: a search, or settings given beforehand.

    Args:
        beforehand: the entry's `tuned_on`.
        tuning: of metrics.json, or empty.
    """
    searched = [SEARCHED.format(tuning["trials"])] if tuning and "pay" not in tuning else []
    return searched + ([] if beforehand == "nothing" else [CHOSEN_BEFOREHAND.format(beforehand)])


def check_tuned(cell: Cell, options: dict, config: dict) -> None:
    """Refuse a search that a cell cannot run.

    Raises:
        StudyError: no validation split; a hyper-parameter that saved sums are made for; fewer records where there are
            sums over all of them, or where noise does not scale with their number.
    """
    tuning, place = options["tuning"], f"methods.{cell.entry}.tuning"
    rules = method_schema(options["method"])
    if not config["datasets"][cell.dataset]["splits"]["validation"]:
        raise StudyError(
            f"{place}: datasets.{cell.dataset}.splits.validation is 0, so there is nothing to tune on; "
            "give it a fraction, such as 0.1"
        )
    if rules["x-reads"] == "statistics":
        for name in ("clipping_norm", *rules.get("x-per-class", {})):
            if name in tuning["space"]:
                raise StudyError(
                    f"{place}.space.{name}: {options['method']!r} solves from sums that are made once, for one {name}; "
                    f"give {name} a value instead, or an entry for each"
                )
    if "records" in tuning:
        _check_records(place, tuning, options, rules["x-reads"])
    if pays(options):
        _check_paid(place, tuning, options, rules)


def check_calibration(entry: str, options: dict, name: str, dataset: dict) -> None:
    """Refuse to calibrate scores where no share of the budget, or no public test records, can serve for it.

    Args:
        name, dataset: of the data set.

    Raises:
        StudyError: the entry pays for tuning, or has no guarantee; they are not; or there are too many classes for
            thresholds.
    """
    place = f"methods.{entry}.calibration"
    if "calibration" not in options:
        raise StudyError(f"methods.{entry}.thresholds: are of probabilities; give the entry `calibration: auto`")
    if options.get("thresholds"):
        from dpstudy.methods.operating_points import MOST_CLASSES

        listed = dataset.get("classes") or dataset.get("label_columns") or ()
        classes = listed if isinstance(listed, int) else len(listed)
        if classes > MOST_CLASSES:
            raise StudyError(
                f"methods.{entry}.thresholds: are for at most {MOST_CLASSES} classes, and {name!r} has {classes}; "
                "leave them out"
            )
    shares = [part for part in (options["calibration"], options.get("thresholds")) if isinstance(part, float)]
    if sum(shares) >= 1:
        raise StudyError(f"{place}: with thresholds it takes all of the budget; lower the two shares")
    if pays(options):
        raise StudyError(f"{place}: goes with no `tuning.pay`, which divides the budget otherwise; leave one out")
    if options["calibration"] == PUBLIC:
        if not test_is_public(dataset):
            raise StudyError(
                f"{place}: 'test' spends nothing, on public test records, and those of {name!r} are private"
            )
        return
    if method_schema(options["method"]).get("x-audited") or options["shared_noise"]:
        raise StudyError(f"{place}: there is no proved guarantee to pay from; leave it out")


def _check_paid(place: str, tuning: dict, options: dict, rules: dict) -> None:
    """What only tuning that is not paid for may do."""
    if tuning["sampler"] == "tpe":
        raise StudyError(f"{place}.sampler: 'tpe' looks at trials that nobody pays for; with `pay` give random or grid")
    if "records" in tuning:
        raise StudyError(f"{place}.records: is a heuristic of searches that are not paid for; leave it out")
    if tuning["pay"] == "choice" and not rules.get("x-one-release"):
        raise StudyError(
            f"{place}.pay: 'choice' is for methods that solve every setting from one release; {options['method']!r} is "
            "none: set pay: repeats"
        )
    if tuning["retrain"] and tuning["pay"] != "choice":
        raise StudyError(f"{place}.retrain: goes with pay: choice; the best of several runs is released as it is")
    if options["accounting"] != "certified":
        raise StudyError(f"{place}.pay: needs accounting: certified, not {options['accounting']!r}")
    if rules.get("x-audited") or options.get("shared_noise"):
        raise StudyError(f"{place}.pay: there is no proved guarantee to pay from; leave it out")
    if options.get("devices", 1) > 1:
        raise StudyError(f"{place}.pay: trains on one device; set devices: 1")


def _check_records(place: str, tuning: dict, options: dict, reads: str) -> None:
    if reads != "features":
        raise StudyError(f"{place}.records: {options['method']!r} does not read features one by one; leave it out")
    if options.get("batch_size", "full") != "full" or "batch_size" in tuning["space"] or "normalisation" in options:
        raise StudyError(f"{place}.records: fits full batches without a private normalisation only; leave it out")
