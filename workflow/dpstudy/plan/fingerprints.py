"""What files say of what made them, and must say: nothing that other settings, code or data made is tabled."""

from collections.abc import Iterable
from dataclasses import asdict

from dpstudy.cell.paid_models import Due
from dpstudy.config.cells import Cell, unfold
from dpstudy.config.tuned import pays
from dpstudy.plan import paths
from dpstudy.plan.code import method_code, metric_code, script_code
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
from dpstudy.provenance.hashes import cell_fingerprint, evaluation_fingerprint, library_hash


def fingerprint_of(study: dict, cell: Cell, seeds: Iterable[int]) -> str:
    """The config hash of a cell with these seeds."""
    told = (cell.options(study), facts(study, cell.dataset), list(seeds), study["noise"], is_scored_on_training(study))
    return cell_fingerprint(*told, origin_of(study, cell))


def whole_fingerprint(study: dict, cell: Cell) -> str:
    """The config hash of a cell with all its seeds."""
    return fingerprint_of(study, cell, study["seeds"])


def asked_of_scores(study: dict) -> dict:
    """What scores are made to tell."""
    return {key: value for key, value in study["evaluation"].items() if key != "keep_scores"}


def evaluation_hash(study: dict) -> str:
    """A hash of the same, and of the code that answers."""
    return evaluation_fingerprint(asked_of_scores(study), library_hash(metric_code(study, "score_cell")))


def data_of(study: dict, cell: Cell) -> dict[str, str]:
    """The files that vouch for all that a cell reads, by the names that the cell has for each."""
    options = cell.options(study)
    every = not pays(options) or options["tuning"]["retrain"]
    used = [*(splits(study, cell.dataset) if every else ("train", "test")), *(["validation"] if pays(options) else [])]
    found = {split: feature_files(study, cell.dataset, cell.features, split)[0] for split in dict.fromkeys(used)}
    found |= {f"kept-{number}": path for number, path in enumerate(kept_files(study, cell))}
    others = (("start", starting_files(study, cell)), ("public", public_points(study, cell)))
    return found | {name: path for name, files in others for path in files}


def data_of_all(study: dict) -> list[str]:
    """The same of all cells, each file once."""
    return list(dict.fromkeys(path for cell in unfold(study) for path in data_of(study, cell).values()))


def stated_of(study: dict, cell: Cell) -> dict:
    """What the ledger of a cell must state by the config, and the manifests that tell how many units it learns from."""
    learned = [path for split, path in data_of(study, cell).items() if split in training_splits(study, cell.dataset)]
    told = {"dataset": facts(study, cell.dataset), "options": cell.options(study), "noise": study["noise"]}
    return told | {"epsilon": cell.epsilon, "manifests": learned}


def cells_of(study: dict, dataset: str) -> list[Cell]:
    """The cells of a data set, in the study's order."""
    return [cell for cell in unfold(study) if cell.dataset == dataset]


def learned_manifests(study: dict, dataset: str) -> list[str]:
    """The manifests of all that cells of a data set learn from."""
    return sorted({path for cell in cells_of(study, dataset) for path in stated_of(study, cell)["manifests"]})


def expected_makers(study: dict) -> dict[str, dict]:
    """Cell -> what it must bear."""
    evaluation = evaluation_hash(study)
    return {
        cell.path: {
            "config": whole_fingerprint(study, cell),
            "library": library_hash(method_code(study, cell.options(study))),
            "evaluation": evaluation,
            "data": data_of(study, cell),
        }
        for cell in unfold(study)
    }


def replayed_cells(study: dict, dataset: str) -> list[Cell]:
    """One cell of each entry of a data set and feature set that adds noise of its own to what it releases."""
    found: dict[tuple[str, str], Cell] = {}
    for cell in cells_of(study, dataset):
        options = cell.options(study)
        if options["sanitise"] == "full" and not options.get("shared_noise"):
            found.setdefault((cell.features, cell.entry), cell)
    return list(found.values())


def replay_of(study: dict, cell: Cell) -> dict:
    """What a replay of a cell's entry goes by (jobs.replays)."""
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
    """The same of every entry of a data set that is replayed."""
    return [replay_of(study, cell) for cell in replayed_cells(study, dataset)]


def layouts(study: dict, dataset: str) -> list[str]:
    """The manifests that say what records look like to the entries that are replayed."""
    cells = replayed_cells(study, dataset)
    return list(dict.fromkeys(feature_files(study, dataset, cell.features, "train")[0] for cell in cells))


def trainings(study: dict, cell: Cell) -> list[Due]:
    """The trainings of a cell, as the book of secure noise knows them: of all seeds, or of each where each is a job."""
    if has_seed_jobs(study, cell.entry):
        return [
            due_training(study, cell, [seed], {"run": paths.SEED_RUN, "ledger": paths.SEED_LEDGER}, str(seed))
            for seed in study["seeds"]
        ]
    return [due_training(study, cell, study["seeds"], {"run": paths.RUN, "ledger": paths.LEDGER})]


def due_training(
    study: dict, cell: Cell, seeds: Iterable[int], outputs: dict[str, str], seed: str | None = None
) -> Due:
    """A training of some seeds of a cell, which may have been paid for before.

    Args:
        outputs: the files that it writes, by key, with or without the cell's wildcards.
        seed: the one that its wildcard names, where each seed is a job.
    """
    seeds, names = list(seeds), asdict(cell) | {"seed": seed}
    files = {key: path.format(**names) for key, path in outputs.items()}
    return Due(cell.path, seeds, files["ledger"], files, fingerprint_of(study, cell, seeds))


def certified_cells(study: dict, dataset: str) -> list[dict]:
    """What certifying is told of each cell of a data set: its name, and what its ledger must state."""
    unnamed = has_unnamed_rows(study, dataset)
    return [
        {"name": cell.path, "stated": stated_of(study, cell), "unnamed": unnamed} for cell in cells_of(study, dataset)
    ]


def summarised_cells(study: dict) -> list[dict]:
    """What the summary is told of each cell: its names, and what it must bear."""
    expected = expected_makers(study)
    return [asdict(cell) | {"name": cell.path, "expected": expected[cell.path]} for cell in unfold(study)]
