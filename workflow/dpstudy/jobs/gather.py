"""The job that assembles a cell from its seeds, where each seed is trained by a job of its own."""

import shutil
from collections.abc import Sequence

from dpstudy.cell.bound import SCORES, hashes, releases_of
from dpstudy.core.errors import StudyError
from dpstudy.core.files import atomic, read_json, read_table, write_json, write_table
from dpstudy.schema.reading import check

_OF_A_SEED = ("seeds", "made_by", "files")


def gather_cell(runs: Sequence[str], seeds: Sequence[int], fingerprint: str, outputs: dict[str, str]) -> None:
    """Write the run, ledger, curve and model (the first seed's) of a cell; scores stay with each seed.

    Args:
        runs: folders, one a seed, each with run.json, ledger.json, curve.parquet and model.safetensors of a cell of one
            seed.
        seeds: which seed each is of.
        fingerprint: of the cell's config with all its seeds.
        outputs: paths under the keys run, ledger, curve and model.

    Raises:
        StudyError: the runs differ in more than their seeds: they do not belong together.
    """
    import pyarrow as pa

    contents = [read_json(f"{run}/run.json") for run in runs]
    ledgers = [read_json(f"{run}/ledger.json") for run in runs]
    paid = ledgers[0]["noise"] == "secure" and bool(ledgers[0]["events"])  # an update of the program made none anew
    for folder, seed, run, ledger in zip(runs, seeds, contents, ledgers, strict=True):
        if [row["seed"] for row in run["seeds"]] != [seed]:
            raise StudyError(f"{folder}/run.json: is not of seed {seed}; delete the folder and run the study again")
        if _shared(run, paid) != _shared(contents[0], paid) or releases_of(ledger) != releases_of(ledgers[0]):
            raise StudyError(
                f"{folder}: was made by another config, code or data than {runs[0]}; delete both folders and run the "
                "study again"
            )
    rows, made_by = [row for run in contents for row in run["seeds"]], contents[0]["made_by"] | {"config": fingerprint}
    made_by.pop("deciding", None)  # of a seed alone
    libraries = {run["made_by"][key] for run in contents for key in ("library", "begun_by") if key in run["made_by"]}
    if others := sorted(libraries - {made_by["library"]}):
        made_by["others"] = others
    whole = contents[0] | {"seeds": rows, "made_by": made_by}
    if "chosen" in whole.get("tuning", {}):
        whole["tuning"] = whole["tuning"] | {"chosen": [one for run in contents for one in run["tuning"]["chosen"]]}
    check(whole, "run", outputs["run"])
    scores = {
        f"seed={seed}/{SCORES}": run.get("files", {}).get(SCORES) for seed, run in zip(seeds, contents, strict=True)
    }
    curve = pa.concat_tables([read_table(f"{run}/curve.parquet") for run in runs])
    with atomic(outputs["model"]) as temporary:
        shutil.copyfile(f"{runs[0]}/model.safetensors", temporary)
    write_table(outputs["curve"], curve)
    write_json(outputs["ledger"], ledgers[0])
    files = hashes(outputs, "model", "ledger", "curve") | {name: value for name, value in scores.items() if value}
    write_json(outputs["run"], whole | {"files": files})


def _shared(run: dict, paid: bool) -> dict:
    """What the seeds of a cell have in common; of those that secure noise paid for each training has seen to the data,
    whichever version of the program it was."""
    of_each_seed = ("config", "begun_by", "begun_as", "deciding", *(("library", "versions", "data") if paid else ()))
    made_by = {key: value for key, value in run["made_by"].items() if key not in of_each_seed}
    tuning = {key: value for key, value in run.get("tuning", {}).items() if key != "chosen"}
    return {key: value for key, value in run.items() if key not in _OF_A_SEED} | {"made_by": made_by, "tuning": tuning}
