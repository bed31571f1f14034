"""What an entry's search may ask for, given its method and the data sets of its cells."""

from dpstudy.errors import StudyError
from dpstudy.study.cells import Cell
from dpstudy.study.schema import method_schema


def check_tuned(cell: Cell, options: dict, config: dict) -> None:
    """Refuse a search that a cell cannot make.

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


def _check_records(place: str, tuning: dict, options: dict, reads: str) -> None:
    if reads != "features":
        raise StudyError(f"{place}.records: {options['method']!r} does not read features one by one; leave it out")
    if options.get("batch_size", "full") != "full" or "batch_size" in tuning["space"] or "normalisation" in options:
        raise StudyError(f"{place}.records: fits full batches without a private normalisation only; leave it out")
