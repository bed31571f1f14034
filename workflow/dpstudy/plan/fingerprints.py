"""Hashes that results must carry, so that none made with other settings, code or data is reported."""

from collections.abc import Iterable, Iterator
from dataclasses import asdict

from dpstudy.cell.paid_models import Due
from dpstudy.config.cells import Cell, unfold
from dpstudy.config.tuned import pays
from dpstudy.plan import paths
from dpstudy.plan.code import method_code, metric_code, script_code
from dpstudy.plan.internals import Job
from dpstudy.plan.origin import origin_of
from dpstudy.plan.sources import (
    facts,
    feature_files,
    feature_folder,
    has_unnamed_rows,
    scaling_of,
    splits,
    training_splits,
)
from dpstudy.plan.training import has_seed_jobs, is_scored_on_training, kept_files, public_points, starting_files
from dpstudy.plan.wildcards import cell_of
from dpstudy.provenance.hashes import cell_fingerprint, evaluation_fingerprint, library_hash
from dpstudy.schema.methods import deciding


def fingerprint_of(study: dict, cell: Cell, seeds: Iterable[int]) -> str:
    """The config hash of a cell with these seeds."""
    return _fingerprints(study, cell, seeds)[0]


def _fingerprints(study: dict, cell: Cell, seeds: Iterable[int]) -> tuple[str, str]:
    """The config hash of a cell with these seeds, and the same without what changes memory and speed alone."""
    options, parts = cell.options(study), (facts(study, cell.dataset), list(seeds), study["noise"])
    on_training, origin = is_scored_on_training(study), origin_of(study, cell)
    full, without = (cell_fingerprint(one, *parts, on_training, origin) for one in (options, deciding(options)))
    return full, without


def whole_fingerprint(study: dict, cell: Cell) -> str:
    """The config hash of a cell with all its seeds."""
    return fingerprint_of(study, cell, study["seeds"])


def asked_of_scores(study: dict) -> dict:
    """The options of the evaluation that metrics depend on."""
    return {key: value for key, value in study["evaluation"].items() if key != "keep_scores"}


def evaluation_hash(study: dict) -> str:
    """A hash of the evaluation's options and code."""
    return evaluation_fingerprint(asked_of_scores(study), library_hash(metric_code(study, "score_cell")))


def data_of(study: dict, cell: Cell) -> dict[str, str]:
    """Name -> the file whose checksum identifies each input of a cell."""
    options = cell.options(study)
    every = not pays(options) or options["tuning"]["retrain"]
    used = [*(splits(study, cell.dataset) if every else ("train", "test")), *(["validation"] if pays(options) else [])]
    by_name = {split: feature_files(study, cell.dataset, cell.features, split)[0] for split in dict.fromkeys(used)}
    by_name |= {f"kept-{number}": path for number, path in enumerate(kept_files(study, cell))}
    others = (("start", starting_files(study, cell)), ("public", public_points(study, cell)))
    return by_name | {name: path for name, files in others for path in files}


def data_of_all(study: dict) -> list[str]:
    """The files of `data_of` for all cells, each once."""
    return list(dict.fromkeys(path for cell in unfold(study) for path in data_of(study, cell).values()))


def stated_of(study: dict, cell: Cell) -> dict:
    """The facts that a cell's ledger must agree with: its config, and the manifests that count its units."""
    learned = [path for split, path in data_of(study, cell).items() if split in training_splits(study, cell.dataset)]
    stated = {"dataset": facts(study, cell.dataset), "options": cell.options(study), "noise": study["noise"]}
    return stated | {"epsilon": cell.epsilon, "manifests": learned}


def cells_of(study: dict, dataset: str) -> list[Cell]:
    """The cells of a data set, in the study's order."""
    return [cell for cell in unfold(study) if cell.dataset == dataset]


def learned_manifests(study: dict, dataset: str) -> list[str]:
    """The manifests of all splits that the cells of a data set learn from."""
    return sorted({path for cell in cells_of(study, dataset) for path in stated_of(study, cell)["manifests"]})


def replayed_cells(study: dict, dataset: str) -> list[Cell]:
    """One cell per feature set and entry of a data set, of the entries with independent noise, to be replayed."""
    by_entry: dict[tuple[str, str], Cell] = {}
    for cell in cells_of(study, dataset):
        options = cell.options(study)
        if options["sanitise"] == "full" and not options.get("shared_noise"):
            by_entry.setdefault((cell.features, cell.entry), cell)
    return list(by_entry.values())


def replay_of(study: dict, cell: Cell) -> dict:
    """The parameters of the replay of a cell's entry (jobs.replays)."""
    options = cell.options(study)
    return {
        "name": f"{cell.features}/{cell.entry}",
        "epsilon": cell.epsilon,
        "options": options,
        "dataset": facts(study, cell.dataset),
        "folder": feature_folder(study, cell.dataset, cell.features, "train"),
        "scaling": scaling_of(study, cell.features),
        "library": library_hash([*method_code(study, options), *script_code("certify_cells")]),
    }


def replays_of(study: dict, dataset: str) -> list[dict]:
    """The parameters of the replays of all entries of a data set."""
    return [replay_of(study, cell) for cell in replayed_cells(study, dataset)]


def layouts(study: dict, dataset: str) -> list[str]:
    """The manifests that give the record layouts for a data set's replays."""
    cells = replayed_cells(study, dataset)
    return list(dict.fromkeys(feature_files(study, dataset, cell.features, "train")[0] for cell in cells))


def trainings(study: dict, cell: Cell) -> list[Due]:
    """The trainings of a cell as units of the budget log: one of all seeds, or one per seed where each is a job."""
    if has_seed_jobs(study, cell.entry):
        outputs = {"run": paths.SEED_RUN, "ledger": paths.SEED_LEDGER}
        return [due_training(study, cell, [seed], outputs, str(seed)) for seed in study["seeds"]]
    return [due_training(study, cell, study["seeds"], {"run": paths.RUN, "ledger": paths.LEDGER})]


def due_training(
    study: dict, cell: Cell, seeds: Iterable[int], outputs: dict[str, str], seed: str | None = None
) -> Due:
    """A training of some seeds of a cell that is due, and may be paid for already.

    Args:
        outputs: the files that it writes, by key, with or without the cell's wildcards.
        seed: the one that its wildcard names, where each seed is a job.
    """
    seeds, names = list(seeds), asdict(cell) | {"seed": seed}
    files = {key: path.format(**names) for key, path in outputs.items()}
    return Due(cell.path, seeds, files["ledger"], files, *_fingerprints(study, cell, seeds))


def due_trainings(study: dict, due: Iterable[Job]) -> Iterator[tuple[Job, Cell, Due]]:
    """The jobs that train, of those that are due, each with its cell."""
    for job in due:
        if job.script.endswith("train_cell.py"):
            cell = cell_of(job.wildcards)
            yield job, cell, due_training(study, cell, job.seeds, dict(job.outputs), job.wildcards.get("seed"))


def certified_cells(study: dict, dataset: str) -> list[dict]:
    """The parameters of the certificates of a data set's cells: each name, and what its ledger must state."""
    unnamed = has_unnamed_rows(study, dataset)
    return [
        {"name": cell.path, "stated": stated_of(study, cell), "unnamed": unnamed} for cell in cells_of(study, dataset)
    ]


def summarised_cells(study: dict) -> list[dict]:
    """The parameters of the summary: each cell's names, and the hashes (`made_by`) that it must carry."""
    summarised, evaluation = [], evaluation_hash(study)
    for cell in unfold(study):
        config, library = whole_fingerprint(study, cell), library_hash(method_code(study, cell.options(study)))
        expected = {"config": config, "library": library, "evaluation": evaluation, "data": data_of(study, cell)}
        summarised.append(asdict(cell) | {"name": cell.path, "expected": expected})
    return summarised
