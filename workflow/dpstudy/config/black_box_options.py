"""Checks of the config's `black_box`: the entries that are audited by losses, as in de2022's appendix A.2."""

from dpstudy.config.cells import Cell, unfold
from dpstudy.core.errors import StudyError
from dpstudy.data.own import own_reader
from dpstudy.schema.messages import check_known
from dpstudy.schema.methods import method_schema


def check_black_box(config: dict) -> None:
    """Refuse a black-box audit that cannot, or should not, be made.

    Raises:
        StudyError: an unknown entry, or one whose settings are tuned, whose noise is shared or whose batches are
            shuffled; cells on own data, on persons, on records with several labels, or on features that are no images.
    """
    options = config["black_box"]
    for name in options["entries"]:
        check_known("black_box.entries", name, config["methods"], "entry")
        method = config["methods"][name]["method"]
        if not method_schema(method).get("x-reads-images"):
            raise StudyError(f"black_box.entries: {name!r} is of the method {method!r}, which reads no images")
    steps = options["space"].get("steps", {})
    for name in steps if isinstance(steps, dict) else ():
        check_known("black_box.space.steps", name, options["entries"], "entry of black_box")
    for table, spec in config["tables"].items():
        for number, row in enumerate(spec.get("rows", []) if spec["style"] in ("membership", "pilot") else []):
            check_known(f"tables.{table}.rows[{number}].entry", row["entry"], options["entries"], "entry of black_box")
    for cell in attacked(config):
        _check_cell(cell, config)


def attacked(config: dict) -> list[Cell]:
    """The cells that are audited by losses (black-box.json)."""
    entries = config["black_box"]["entries"]
    return [cell for cell in unfold(config) if cell.entry in entries and cell.epsilon != "inf"] if entries else []


def options_for(config: dict, entry: str) -> dict:
    """The options of an entry's black-box audit: records, models, pilot, confidence, and the space with its steps."""
    options = {key: value for key, value in config["black_box"].items() if key != "entries"}
    steps = options["space"].get("steps", [])
    space = {key: value for key, value in options["space"].items() if key != "steps"}
    entry_steps = steps.get(entry, []) if isinstance(steps, dict) else steps
    return options | {"space": space | ({"steps": entry_steps} if entry_steps else {})}


def check_public(dataset: str, options: dict) -> None:
    """Refuse to audit on a user's own records, since what the audit writes depends on them without a guarantee.

    Args:
        dataset: its name.
        options: with its reader, and `extra`, where it has one.

    Raises:
        StudyError: the reader is one for own data.
    """
    if reader := own_reader(options):
        raise StudyError(
            f"black_box: what it writes depends on the records of data set {dataset!r}, and no guarantee covers that; "
            f"they are your own (reader {reader!r}): attack public research data, or use `audit`, which "
            "reads no record"
        )


def _check_cell(cell: Cell, config: dict) -> None:
    dataset, options = config["datasets"][cell.dataset], cell.options(config)
    check_public(cell.dataset, dataset)
    if dataset["unit"] != "record" or dataset.get("positives", 1) != 1:
        raise StudyError(f"black_box: data set {cell.dataset!r}: needs records, not subjects, with one label each")
    if config["features"][cell.features]["extractor"] != "images":
        raise StudyError(
            f"black_box.entries: {cell.entry!r} is trained on features {cell.features!r}, and the attack adds an "
            "image; it needs features of the extractor 'images'"
        )
    if "tuning" in options:
        raise StudyError(f"black_box.entries: {cell.entry!r} is tuned, and phase I chooses its settings; give them one")
    if options["sampling"] != "poisson":
        raise StudyError(
            f"black_box.entries: {cell.entry!r} has sampling {options['sampling']!r}, whose guarantee is about "
            "leaving a record's place empty, and the attack adds one; give an entry with sampling: poisson"
        )
    if options["shared_noise"]:
        raise StudyError(f"black_box.entries: {cell.entry!r} shares its noise, so there is no guarantee to attack")
