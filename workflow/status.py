"""`make status`: which cells of a study are done, stale or missing, and what else is to run. Nothing is run."""

from terminal import installed  # noqa: F401

# isort: split
import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Container
from pathlib import Path

from dpstudy.core.errors import StudyError
from dpstudy.plan import paths
from run import RUN, holder, locked
from terminal.asked import mistake, unwritable
from terminal.failures import lines_of, refusal
from terminal.reasons import first_cause, shorten

SNAKEMAKE = [str(Path(sys.executable).with_name("snakemake")), "--dry-run", "--cores", "1", "--nolock"]
JOB = re.compile(r"^(?:local)?rule (\w+):\n((?:    .*\n)+)", re.MULTILINE)
CELL = re.compile(r"results/(?:cells|runs)/((?:[^/]+/){3}eps=[^/]+)/(?:seed=(\d+)/)?(?:run|metrics)\.json")
# The last line of a traceback of Snakemake's, where it could not make a folder or file of its own.
UNMADE = re.compile(r"^\w+Error: \[Errno \d+\] (.+): '(.+)'$", re.MULTILINE)
NAMED = 8  # cells that are listed one by one


def main(arguments: list[str]) -> int:
    """Print the state of the study that Snakemake's arguments name; the exit status is that of Snakemake's dry run, or
    1 where a run would be refused at once (but for what secure noise has paid for, which is part of the state)."""
    try:
        return show(arguments)
    except StudyError as error:
        print(f"dpstudy: {error}", file=sys.stderr)
    except OSError as error:
        print(f"dpstudy: {error.filename}: {error.strerror}; mend this and try again", file=sys.stderr)
    return 1


def show(arguments: list[str]) -> int:
    """As `main`.

    Raises:
        StudyError: a file of the study is damaged.
        OSError: a file or folder cannot be read or made.
    """
    if trouble := mistake(arguments):
        print(f"dpstudy: {trouble}", file=sys.stderr)
        return 1
    with tempfile.TemporaryDirectory() as folder:
        kept_path = Path(folder, "kept.json")  # which trainings were paid for and are taken as they are
        asked = Path(folder, "refused.json")  # what a run would refuse
        environment = os.environ | {"DPSTUDY_KEPT": str(kept_path), "DPSTUDY_REFUSED": str(asked)}
        done = subprocess.run([*SNAKEMAKE, *arguments], capture_output=True, text=True, check=False, env=environment)
        pairs = json.loads(kept_path.read_text()) if kept_path.exists() else []
        stops, of_paid = json.loads(asked.read_text()) if asked.exists() else ("", False)
    kept = {(cell, seed) for cell, seeds in pairs for seed in seeds}
    if done.returncode:
        trouble = refusal(done.stdout + done.stderr)
        if not trouble and (unmade := UNMADE.search(done.stdout + done.stderr)):
            trouble = f"{unmade[2]}: {unmade[1]}; mend this and try again"
        sys.stderr.write(f"dpstudy: {trouble}\n" if trouble else done.stdout[-2000:] + done.stderr[-2000:])
        return done.returncode
    due = list(jobs(done.stdout + done.stderr))
    trained = {cell: reason for rule, cell, _, reason in due if cell and rule.startswith("train_")}
    cells = {cell: reason for _, cell, _, reason in due if cell}
    cells |= trained  # what is scored after it says no reason of its own
    study = study_of(arguments)
    every, seeds, spent = cells_seeds_and_spent(study)
    spent -= kept
    taken = {cell for cell in trained if all((cell, seed) in kept for seed in due_seeds(due, cell, seeds))}
    order = {cell: number for number, cell in enumerate(every)}
    left = sorted((cell for cell in cells if cell not in taken), key=lambda cell: order.get(cell, len(order)))
    stale = {cell: cells[cell] for cell in left if Path(paths.CELLS, cell, "metrics.json").exists()}
    missing = [cell for cell in left if cell not in stale]
    wrong = wrong_files(study, [cell for cell in every if cell not in cells])
    counts = f"{len(every.keys() - cells.keys() - wrong.keys())} done, {len(stale)} stale, {len(missing)} missing"
    print(f"cells: {counts}" + (f", {len(taken)} kept" if taken else "") + (f", {len(wrong)} wrong" if wrong else ""))
    sentences = [fault for faults in wrong.values() for fault in faults]
    for sentence in sentences[:NAMED] + ([f"and {len(sentences) - NAMED:,} more"] if len(sentences) > NAMED else []):
        print(f"  {'wrong':8}{sentence}")
    if taken:
        print("  kept    was paid for with secure noise, and is taken as it is if its records are the same")
    for title, names in (("stale", stale), ("missing", missing)):
        shown = len(names) if len(names) <= NAMED + 1 else NAMED  # a line that says "1 more" is as long
        for cell in list(names)[:shown]:
            why = stale[cell] if cell in stale else last_words(cell)
            print(f"  {title:8}{cell}" + (f"  ({why})" if why else ""))
        if len(names) > shown:
            print(f"  {title:8}and {len(names) - shown:,} more")
    others = Counter(rule for rule, cell, _, _ in due if not cell and rule != "all")
    if others:
        print("also to run: " + ", ".join(f"{rule} {count}" for rule, count in others.items()))
    if "total_privacy" in others and Path(paths.TOTAL).exists():
        print(f"  {paths.TOTAL} may lack what was spent since; run the study again before you read or publish it")
    for sentence, concerned in corrected(study, wrong).items():
        more = f" and {len(concerned) - 1} more" if len(concerned) > 1 else ""
        print(f"by an earlier version (docs/errata.md): {concerned[0]}{more}: {sentence}")
    if refused := len(paid_for(due, seeds, spent)):
        rest = "trained with secure noise, and will not be again: see docs/own-data-reference.md"
        print(f"{refused} of the cells were {rest}")
    elif stops:
        pass  # reported last
    elif due and (who := at_work()):
        print(f"{who} is at work in this folder; what it has not finished counts as missing")
    elif due and (trouble := unwritable("results")):
        print(trouble)
    elif due:
        print("the same command with `study` instead of `status` runs them on this machine")
    elif not wrong:
        print("nothing to be done")
    if stops:
        print(f"dpstudy: a run would stop at once: {stops}", file=sys.stderr)
    return 1 if stops and not of_paid else 0


def last_words(cell: str) -> str:
    """Why the last job that was to make a cell stopped, such as at the owner's budget; "" where it ended well, or none
    has begun."""
    logs = [*Path().glob(paths.log("*", cell)), *Path().glob(paths.log("*", f"{cell}/*"))]
    lines = lines_of(max(logs, key=lambda log: log.stat().st_mtime)) if logs else []
    return f"last time: {error}" if lines and (error := lines[-1].partition(" ERROR ")[2]) else ""


def at_work() -> str:
    """Who runs a study in this folder just now; "" for nobody, or where that cannot be seen."""
    if not RUN.is_file():
        return ""
    with open(RUN, encoding="utf-8") as file:
        return "" if locked(file.fileno()) else holder()  # closing the file gives a lock back


def study_of(arguments: list[str]) -> dict:
    """The study that the arguments name, with all defaults."""
    import yaml

    from dpstudy.config import loading as config
    from dpstudy.config.including import read_config

    parser = argparse.ArgumentParser()
    parser.add_argument("--configfile", default="config.yaml")
    parser.add_argument("--config", nargs="*", default=[])
    given = parser.parse_known_args(arguments)[0]
    # As Snakemake reads them: numbers are text. This loader makes text, lists and mappings, and nothing else.
    given_text = (text.partition("=") for text in given.config)
    changes = {key: yaml.BaseLoader(value).get_single_data() for key, _, value in given_text}
    return config.load(read_config(given.configfile) | changes)


def cells_seeds_and_spent(study: dict) -> tuple[dict[str, None], list[int], set[tuple[str, int]]]:
    """The cells of a study, in its order, its seeds, and the (cell, seed) that secure noise must not train again."""
    from dpstudy.config import cells
    from dpstudy.privacy.spending import BOOK, Spending

    book = Spending(BOOK, study["release"].get("spend_again", False))
    spent = set() if book.again else book.ended_seeds()
    return dict.fromkeys(cell.path for cell in cells.unfold(study)), study["seeds"], spent


def wrong_files(study: dict, cells: list[str]) -> dict[str, list[str]]:
    """Cell -> why its files do not belong together, of those where they do not."""
    from dpstudy.cell.bound import own_binding
    from dpstudy.cell.bound_before import BoundBefore
    from dpstudy.config.locations import books_of

    seen = BoundBefore(own_binding(books_of(study, study["datasets"]) if study["noise"] == "secure" else ()))
    faults_by_cell = {}
    for cell in cells:
        try:
            faults = seen.faults(cell)
        except StudyError as damage:
            faults = [str(damage)]
        if faults:
            faults_by_cell[cell] = faults
    seen.keep()
    return faults_by_cell


def corrected(study: dict, wrong: Container[str]) -> dict[str, list[str]]:
    """What ledgers of earlier versions may state falsely -> the cells whose they are, but for those in `wrong`."""
    from dpstudy.cell.errata import errata, own_rows
    from dpstudy.config import cells
    from dpstudy.core.files import read_json

    cells_by_sentence: dict[str, list[str]] = {}
    for cell in cells.unfold(study):
        ledger, run = (Path(paths.CELLS, cell.path, f"{name}.json") for name in ("ledger", "run"))
        if cell.path not in wrong and ledger.exists() and run.exists():
            network = read_json(run)["hyperparameters"].get("network")
            for sentence in errata(read_json(ledger), network, own_rows(study["datasets"][cell.dataset])):
                cells_by_sentence.setdefault(sentence, []).append(cell.path)
    return cells_by_sentence


def jobs(text: str):
    """(rule, cell that it trains, gathers or scores or "", its seed or None for all, reason) of every job of a dry
    run."""
    planned = [(rule, dict(re.findall(r"^    (\w+): (.*)$", body, re.MULTILINE))) for rule, body in JOB.findall(text)]
    makers = {
        name: (rule, fields.get("reason", ""))
        for rule, fields in planned
        for name in fields.get("output", "").split(", ")
    }
    for rule, fields in planned:
        match = CELL.search(fields.get("output", ""))
        cell, seed = match.groups() if match else ("", None)
        yield rule, cell, seed and int(seed), shorten(first_cause(fields.get("reason", ""), makers))


def due_seeds(due, cell: str, seeds: list[int]) -> list[int]:
    """The seeds of a cell that are due to be trained.

    >>> due_seeds([("train_seed", "a", 1, ""), ("train_stepped", "b", None, "")], "a", [0, 1])
    [1]
    """
    return [
        each
        for rule, name, seed, _ in due
        if name == cell and rule.startswith("train_")
        for each in (seeds if seed is None else [seed])
    ]


def paid_for(due, seeds: list[int], spent: set[tuple[str, int]]) -> set[str]:
    """The cells that are due to be trained although secure noise trained them before.

    >>> due = [("train_seed", "a", 1, ""), ("train_stepped", "b", None, ""), ("score_cell", "c", None, "")]
    >>> sorted(paid_for(due, [0, 1], {("a", 0), ("b", 0), ("c", 0)}))  # a new seed of a leaves its others alone
    ['b']
    """
    return {
        cell
        for rule, cell, seed, _ in due
        if rule.startswith("train_")
        if not spent.isdisjoint((cell, each) for each in (seeds if seed is None else [seed]))
    }


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
