"""What a cell's training, its search and the attacks on it read, and what they are told."""

from collections.abc import Iterable
from dataclasses import asdict
from types import SimpleNamespace

from dpstudy.config.black_box_options import options_for
from dpstudy.config.cells import Cell
from dpstudy.config.locations import books_of, folders_looked_at
from dpstudy.config.public_points import reads_public
from dpstudy.config.tuned import pays
from dpstudy.evaluation.on_training import ON_TRAINING, UNPAID
from dpstudy.plan import paths
from dpstudy.plan.code import cell_hash
from dpstudy.plan.origin import origin_of
from dpstudy.plan.outside import inherited_choices, kept_numbers, outside_ledger
from dpstudy.plan.publics import fit_points, kept_for, publics_of, start_files
from dpstudy.plan.sources import facts, feature_files, feature_folder, record_names, scaling_of, training_splits
from dpstudy.privacy.spending import BOOK
from dpstudy.schema.methods import method_schema


def entries_where(study: dict, curve: bool, per_seed: bool | None = None, audited: bool | None = None) -> list[str]:
    """Method entries that do, or do not, train in steps; of those that do, or do not, train each seed in a job of its
    own, or attack their own claim."""
    chosen = []
    for name, entry in study["methods"].items():
        schema = method_schema(entry["method"])
        wanted = ((per_seed, "x-per-seed"), (audited, "x-audited"))
        if schema["x-curve"] == curve and all(value in (None, schema.get(key, False)) for value, key in wanted):
            chosen.append(name)
    return chosen


def has_seed_jobs(study: dict, entry: str) -> bool:
    """Whether each seed of an entry's cells is a job of its own."""
    schema = method_schema(study["methods"][entry]["method"])
    return schema["x-curve"] and schema.get("x-per-seed", False)


def is_scored_on_training(study: dict) -> bool:
    """Whether models are scored on their training records too."""
    return ON_TRAINING in study["evaluation"]["metrics"]


def devices_of(study: dict, cell: Cell) -> int:
    """How many processes share the training of a cell's seed."""
    return cell.options(study).get("devices", 1)


def learned_splits(study: dict, cell: Cell) -> list[str]:
    """The splits that a cell learns from. Where it pays for its tuning, that is done on the validation split, which it
    may then learn from in a second release."""
    options = cell.options(study)
    if pays(options) and not options["tuning"]["retrain"]:
        return ["train"]
    return training_splits(study, cell.dataset)


def sums_of(study: dict, cell: Cell, split: str) -> str | None:
    """The private sums over a split that a cell solves from; None where its method reads features."""
    options = cell.options(study)
    rules = method_schema(options["method"])
    if rules["x-reads"] != "statistics":
        return None
    clip = "inf" if options["sanitise"] == "none" else repr(float(options["clipping_norm"]))
    per_class = all(options[key] == value for key, value in rules["x-per-class"].items())
    return paths.SUMS.format(
        dataset=cell.dataset,
        features=cell.features,
        split=split,
        clip=clip,
        grams="per-class" if per_class else "shared",
    )


def learned_from(study: dict, cell: Cell, splits: Iterable[str]) -> list[str]:
    """The private sums over some splits where a cell's method solves from them (with the splits' public facts), else
    their features."""
    files = []
    for split in splits:
        sums, features = sums_of(study, cell, split), feature_files(study, cell.dataset, cell.features, split)
        if sums is None:
            files += features
        else:
            files += [*(features if is_scored_on_training(study) else features[:1]), sums]
    return files


def training_files(study: dict, cell: Cell) -> list[str]:
    """What a cell learns from."""
    return learned_from(study, cell, learned_splits(study, cell))


def searching_files(study: dict, cell: Cell) -> list[str]:
    """What the search for a cell's hyper-parameters learns from."""
    return learned_from(study, cell, ["train"])


def choosing_files(study: dict, cell: Cell) -> list[str]:
    """The validation split, for a cell that pays for its tuning; nothing for others."""
    return validation_files(study, cell) if pays(cell.options(study)) else []


def test_files(study: dict, cell: Cell) -> list[str]:
    """What a cell's models are scored on."""
    return feature_files(study, cell.dataset, cell.features, "test")


def validation_files(study: dict, cell: Cell) -> list[str]:
    """What the trials of a search are scored on."""
    return feature_files(study, cell.dataset, cell.features, "validation")


def attacked_files(study: dict, cell: Cell) -> list[str]:
    """The training split, whose records an attack by losses plays with."""
    return feature_files(study, cell.dataset, cell.features, "train")


def training_manifests(study: dict, cell: Cell) -> list[str]:
    """The public facts of the splits that a cell may learn from."""
    return [
        feature_files(study, cell.dataset, cell.features, split)[0] for split in training_splits(study, cell.dataset)
    ]


def kept_files(study: dict, cell: Cell) -> list[str]:
    """What de-duplication kept of the private records, where it dropped any."""
    return kept_for(study, cell.features, start_of(study, cell))


def start_of(study: dict, cell: Cell) -> str | dict | None:
    """What a cell's training starts from: the name of a backbone, or a file of weights; or None."""
    return cell.options(study).get("start")


def starting_files(study: dict, cell: Cell) -> list[str]:
    """The file of weights that a cell's training starts from."""
    return start_files(study, start_of(study, cell))


def public_points(study: dict, cell: Cell) -> list[str]:
    """Public points under the feature set's fit, for a cell that reads them; nothing for others."""
    return fit_points(study["features"][cell.features]) if reads_public(cell.options(study)) else []


def trials_of(study: dict, cell: Cell) -> list[str]:
    """The search that chooses a cell's hyper-parameters; nothing where none are tuned, or its training chooses them."""
    options = cell.options(study)
    return [paths.TRIALS.format(**asdict(cell))] if "tuning" in options and not pays(options) else []


def not_accounted(study: dict, cell: Cell) -> list[str]:
    """What a cell does outside its ledger, a sentence each."""
    start, options = start_of(study, cell), cell.options(study)
    outside = outside_ledger(study, cell.features, start, publics_of(study, cell.features, start))
    inherited = inherited_choices(study["datasets"][cell.dataset], options)
    unpaid = [UNPAID] * is_scored_on_training(study)
    return [*outside, *inherited, *options.get("not_accounted", []), *unpaid]


def inputs_of(study: dict, cell: Cell) -> dict:
    """What a cell reads: the fields of `cell.inputs.CellInputs`."""
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
    """The same of the search for its hyper-parameters."""
    sums = sums_of(study, cell, "train")
    return _inputs(study, cell, ["train"], "validation") | {
        "kept": kept_files(study, cell),
        "statistics": [sums] if sums else [],
        "public": next(iter(public_points(study, cell)), None),
    }


def audit_inputs(study: dict, cell: Cell) -> dict:
    """The same of an attack with canaries, which reads the splits' public facts alone."""
    found = _inputs(study, cell, training_splits(study, cell.dataset), None)
    return found | {"start": None, "trials": next(iter(trials_of(study, cell)), None)}


def black_box_inputs(study: dict, cell: Cell) -> dict:
    """The same of an attack by losses."""
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
    """The settings of a job on a cell: fields of `cell.inputs.CellRequest` that trainings, searches and attacks have.

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
    """The settings of a training of some seeds of a cell."""
    return request_of(study, cell, "train_cell") | {
        "seeds": list(seeds),
        "not_accounted": not_accounted(study, cell),
        "origin": origin_of(study, cell),
        "on_training": is_scored_on_training(study),
        "checkpoint": checkpoint,
    }


def training_request_of_all(study: dict, cell: Cell) -> dict:
    """The same of all seeds together."""
    return training_request(study, cell, study["seeds"])


def training_request_of_one(study: dict, cell: Cell, seed: str) -> dict:
    """The same of one seed, which keeps a checkpoint."""
    return training_request(study, cell, [int(seed)], paths.SEED_CHECKPOINT.format(**asdict(cell), seed=seed))


def spending(study: dict, cell: Cell) -> SimpleNamespace:
    """What a training with secure noise is told of the book that it is written down in, and of numbers that records
    keep. To allow spending, to move the data or to say of such numbers is no reason to train a cell again."""
    secure = study["noise"] == "secure"
    return SimpleNamespace(
        spent=BOOK,
        shared=books_of(study, [cell.dataset]) if secure else [],
        beside=folders_looked_at(study, [cell.dataset]) if secure else [],
        spend_again=study["release"].get("spend_again", False),
        ceiling=study["release"].get("budget"),
        records=record_names(study, cell.dataset) if secure else "",
        not_accounted=kept_numbers(study, cell.dataset),
    )


def search_request(study: dict, cell: Cell) -> dict:
    """The settings of a search, which maximises the study's first metric."""
    return request_of(study, cell, "tune_entry") | _of_one_seed(study["evaluation"]["metrics"][:1])


def audit_request(study: dict, cell: Cell) -> dict:
    """The settings of an attack with canaries."""
    return request_of(study, cell, "audit_cell") | _of_one_seed([])


def black_box_request(study: dict, cell: Cell) -> dict:
    """The settings of an attack by losses."""
    return request_of(study, cell, "audit_black_box") | _of_one_seed([])


def _of_one_seed(metrics: list[str]) -> dict:
    return {"seeds": [0], "metrics": metrics, "not_accounted": []}


def audit_options(study: dict) -> dict:
    """How canaries are played."""
    return {key: study["audit"][key] for key in ("runs", "canaries", "confidence", "sees")}


def black_box_options(study: dict, cell: Cell) -> dict:
    """How a cell is attacked by losses."""
    return options_for(study, cell.entry)


def entries_of_audits(study: dict) -> list[str]:
    """The entries that are attacked with canaries: all but those that attack their own claim."""
    return [*entries_where(study, curve=True, audited=False), *entries_where(study, curve=False)]
