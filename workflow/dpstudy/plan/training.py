"""Inputs and parameters of a cell's training, search and audits."""

from collections.abc import Iterable
from dataclasses import asdict
from types import SimpleNamespace

from dpstudy.config.black_box_options import options_for
from dpstudy.config.cells import Cell
from dpstudy.config.locations import books_of, folders_looked_at, folders_of, other_records
from dpstudy.config.public_points import reads_public
from dpstudy.config.tuned import pays
from dpstudy.evaluation.on_training import ON_TRAINING, UNPAID
from dpstudy.plan import paths
from dpstudy.plan.code import cell_hash
from dpstudy.plan.origin import origin_of
from dpstudy.plan.outside import (
    cut_test_records,
    inherited_choices,
    kept_numbers,
    outside_ledger,
    scaled_by_own,
    several_records,
)
from dpstudy.plan.publics import fit_points, kept_for, publics_of, start_files
from dpstudy.plan.sources import facts, feature_files, feature_folder, record_names, scaling_of, training_splits
from dpstudy.privacy.spending import BOOK
from dpstudy.privacy.spent_sums import Protected
from dpstudy.schema.methods import method_schema


def entries_where(study: dict, curve: bool, per_seed: bool | None = None, audited: bool | None = None) -> list[str]:
    """The method entries that do (or do not) train in steps, filtered by further properties.

    `per_seed`: each seed is trained in a job of its own; `audited`: they attack their own claim.
    """
    schemas = {name: method_schema(entry["method"]) for name, entry in study["methods"].items()}
    known = {"x-curve": curve, "x-per-seed": per_seed, "x-audited": audited}
    wanted = {key: value for key, value in known.items() if value is not None}
    return [name for name, one in schemas.items() if all(one.get(key, False) == wanted[key] for key in wanted)]


def has_seed_jobs(study: dict, entry: str) -> bool:
    """Whether each seed of an entry's cells is trained in its own job."""
    schema = method_schema(study["methods"][entry]["method"])
    return schema["x-curve"] and schema.get("x-per-seed", False)


def is_scored_on_training(study: dict) -> bool:
    """Whether models are scored on their training records too."""
    return ON_TRAINING in study["evaluation"]["metrics"]


def devices_of(study: dict, cell: Cell) -> int:
    """The number of processes that share a seed's training."""
    return cell.options(study).get("devices", 1)


def learned_splits(study: dict, cell: Cell) -> list[str]:
    """The splits that a cell learns from.

    Where it pays for its tuning, that is done on the validation split, which it may then learn from in a second
    release.
    """
    options = cell.options(study)
    if pays(options) and not options["tuning"]["retrain"]:
        return ["train"]
    return training_splits(study, cell.dataset)


def sums_of(study: dict, cell: Cell, split: str) -> str | None:
    """The file of private sums over a split that a cell solves from; None where its method reads features."""
    options = cell.options(study)
    rules = method_schema(options["method"])
    if rules["x-reads"] != "statistics":
        return None
    clip = "inf" if options["sanitise"] == "none" else repr(float(options["clipping_norm"]))
    grams = "per-class" if all(options[key] == value for key, value in rules["x-per-class"].items()) else "shared"
    return paths.SUMS.format(**asdict(cell), split=split, clip=clip, grams=grams)


def learned_from(study: dict, cell: Cell, splits: Iterable[str]) -> list[str]:
    """The files of these splits that a cell learns from: private sums with manifests, or features."""
    files = []
    for split in splits:
        sums, features = sums_of(study, cell, split), feature_files(study, cell.dataset, cell.features, split)
        if sums is None:
            files += features
        else:
            files += [*(features if is_scored_on_training(study) else features[:1]), sums]
    return files


def training_files(study: dict, cell: Cell) -> list[str]:
    """The files that a cell learns from."""
    return learned_from(study, cell, learned_splits(study, cell))


def searching_files(study: dict, cell: Cell) -> list[str]:
    """The files that a cell's hyper-parameter search learns from."""
    return learned_from(study, cell, ["train"])


def choosing_files(study: dict, cell: Cell) -> list[str]:
    """The validation split of a cell that pays for its tuning; none for others."""
    return validation_files(study, cell) if pays(cell.options(study)) else []


def test_files(study: dict, cell: Cell) -> list[str]:
    """The files that a cell's models are scored on."""
    return feature_files(study, cell.dataset, cell.features, "test")


def validation_files(study: dict, cell: Cell) -> list[str]:
    """The files that the trials of a search are scored on."""
    return feature_files(study, cell.dataset, cell.features, "validation")


def attacked_files(study: dict, cell: Cell) -> list[str]:
    """The training split, whose records a black-box audit uses."""
    return feature_files(study, cell.dataset, cell.features, "train")


def training_manifests(study: dict, cell: Cell) -> list[str]:
    """The manifests (public facts) of the splits that a cell may learn from."""
    splits = training_splits(study, cell.dataset)
    return [feature_files(study, cell.dataset, cell.features, split)[0] for split in splits]


def kept_files(study: dict, cell: Cell) -> list[str]:
    """The lists of private records that de-duplication kept, if it dropped any."""
    return kept_for(study, cell.features, start_of(study, cell))


def start_of(study: dict, cell: Cell) -> str | dict | None:
    """The start of a cell's training: a backbone's name, or a file of weights; or None."""
    return cell.options(study).get("start")


def starting_files(study: dict, cell: Cell) -> list[str]:
    """The file of weights that a cell's training starts from."""
    return start_files(study, start_of(study, cell))


def public_points(study: dict, cell: Cell) -> list[str]:
    """The public points of the feature set's fit, for a cell that reads them; none for others."""
    return fit_points(study["features"][cell.features]) if reads_public(cell.options(study)) else []


def trials_of(study: dict, cell: Cell) -> list[str]:
    """The file of the search that chooses a cell's hyper-parameters; none if it has none, or pays for its tuning."""
    options = cell.options(study)
    return [paths.TRIALS.format(**asdict(cell))] if "tuning" in options and not pays(options) else []


def not_accounted(study: dict, cell: Cell) -> list[str]:
    """Sentences on what a cell does outside its ledger."""
    start, options = start_of(study, cell), cell.options(study)
    outside = outside_ledger(study, cell.features, start, publics_of(study, cell.features, start))
    dataset = study["datasets"][cell.dataset]
    inherited = inherited_choices(dataset, options) + scaled_by_own(study, cell.dataset, cell.features)
    inherited += cut_test_records(dataset)
    unpaid = [UNPAID] * is_scored_on_training(study)
    return [*outside, *inherited, *options.get("not_accounted", []), *unpaid]


def inputs_of(study: dict, cell: Cell) -> dict:
    """The inputs of a cell: the fields of `cell.inputs.CellInputs`."""
    splits, paid = learned_splits(study, cell), pays(cell.options(study))
    sums = [path for split in splits if (path := sums_of(study, cell, split))]
    return _inputs(study, cell, splits, "test") | {
        "kept": kept_files(study, cell),
        "statistics": sums,
        "public": next(iter(public_points(study, cell)), None),
        "trials": next(iter(trials_of(study, cell)), None),
        "validation": feature_folder(study, cell.dataset, cell.features, "validation") if paid else None,
    }


def search_inputs(study: dict, cell: Cell) -> dict:
    """The inputs of a cell's hyper-parameter search."""
    sums = sums_of(study, cell, "train")
    return _inputs(study, cell, ["train"], "validation") | {
        "kept": kept_files(study, cell),
        "statistics": [sums] if sums else [],
        "public": next(iter(public_points(study, cell)), None),
    }


def audit_inputs(study: dict, cell: Cell) -> dict:
    """The inputs of an audit with canaries, which reads manifests (public facts) only."""
    inputs = _inputs(study, cell, training_splits(study, cell.dataset), None)
    return inputs | {"trials": next(iter(trials_of(study, cell)), None)}


def audit_files(study: dict, cell: Cell) -> list[str]:
    """The files that an audit with canaries reads."""
    return [*training_manifests(study, cell), *trials_of(study, cell), *starting_files(study, cell)]


def black_box_inputs(study: dict, cell: Cell) -> dict:
    """The inputs of a black-box audit."""
    return _inputs(study, cell, ["train"], "test")


def _inputs(study: dict, cell: Cell, splits: Iterable[str], held_out: str | None) -> dict:
    def folder(split: str) -> str:
        return feature_folder(study, cell.dataset, cell.features, split)

    return {
        "train": [folder(split) for split in splits],
        "held_out": folder(held_out) if held_out else "",
        "scaling": scaling_of(study, cell.features),
        "start": next(iter(starting_files(study, cell)), None),
    }


def request_of(study: dict, cell: Cell, script: str) -> dict:
    """The parameters common to trainings, searches and audits of a cell: fields of `cell.inputs.CellRequest`.

    Another value of one of them makes what the job has made stale.
    """
    return {
        "cell": asdict(cell),
        "options": cell.options(study),
        "dataset": facts(study, cell.dataset),
        "noise": study["noise"],
        "library": cell_hash(study, cell, script),
    }


def training_request(study: dict, cell: Cell, seeds: Iterable[int], checkpoint: str | None = None) -> dict:
    """The parameters of a training of some seeds of a cell."""
    return request_of(study, cell, "train_cell") | {
        "seeds": list(seeds),
        "not_accounted": not_accounted(study, cell),
        "origin": origin_of(study, cell),
        "on_training": is_scored_on_training(study),
        "checkpoint": checkpoint,
    }


def training_request_of_all(study: dict, cell: Cell) -> dict:
    """The parameters of a training of all seeds of a cell."""
    return training_request(study, cell, study["seeds"])


def training_request_of_one(study: dict, cell: Cell, seed: str) -> dict:
    """The parameters of a training of one seed of a cell, with its checkpoint."""
    return training_request(study, cell, [int(seed)], paths.SEED_CHECKPOINT.format(**asdict(cell), seed=seed))


def spending(study: dict, cell: Cell) -> SimpleNamespace:
    """Parameters about the budget log and row numbers; changing them does not retrain a cell.

    Such changes allow spending, move the data, or say of numbers that records keep, or of persons behind them.
    """
    secure = study["noise"] == "secure"
    return SimpleNamespace(
        spent=BOOK,
        shared=books_of(study, [cell.dataset]) if secure else [],
        beside=folders_looked_at(study, [cell.dataset]) if secure else [],
        spend_again=study["release"].get("spend_again", False),
        ceiling=study["release"].get("budget"),
        records=record_names(study, cell.dataset) if secure else "",
        folders=folders_of(study, cell.dataset) if secure else [],
        others=other_records(study),
        persons=Protected.of_dataset(study["datasets"][cell.dataset]).persons,
        not_accounted=[*kept_numbers(study, cell.dataset), *several_records(study["datasets"][cell.dataset])],
    )


def request_of_one_seed(study: dict, cell: Cell, script: str) -> dict:
    """The parameters of an audit, or of a search, which maximises the study's first metric."""
    metrics = study["evaluation"]["metrics"][:1] if script == "tune_entry" else []
    return request_of(study, cell, script) | {"seeds": [0], "metrics": metrics, "not_accounted": []}


def audit_options(study: dict) -> dict:
    """The options of the audit with canaries."""
    return {key: study["audit"][key] for key in ("runs", "canaries", "confidence", "sees")}


def black_box_options(study: dict, cell: Cell) -> dict:
    """The options of a cell's black-box audit."""
    return options_for(study, cell.entry)


def entries_of_audits(study: dict) -> list[str]:
    """The entries that can be audited with canaries: all except those that attack their own claim."""
    return [*entries_where(study, curve=True, audited=False), *entries_where(study, curve=False)]
