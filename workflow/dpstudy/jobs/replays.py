"""Leak test of a study's entry: train on synthetic records, then on others while replaying the same releases.

The whole job of a cell is run (jobs/training.py), with the entry's settings and the cell's layout of records, on at
most 64 records and for at most three steps. Then it is run again, on three further sets of records, on the tape of the
first (auditing/replay.py). Model, run, ledger, scores of public records, curve and messages must be the same, but for
times.
"""

import contextlib
import io
import json
import logging
import re
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from dpstudy.auditing.replay import LeakError, Playing, Recording, Tape
from dpstudy.cell.inputs import CellInputs, CellRequest
from dpstudy.config.cells import Cell
from dpstudy.config.tuned import PUBLIC, pays
from dpstudy.core.errors import StudyError
from dpstudy.core.files import read_json, read_table, write_json
from dpstudy.jobs.made_up import DATASET, DENSE, LONG, PICTURES, TINY, Layout, made_up
from dpstudy.jobs.training import train_cell
from dpstudy.methods.problem import Problem
from dpstudy.privacy.noise import NoiseSource
from dpstudy.provenance.hashes import config_hash
from dpstudy.schema.methods import method_schema

ROWS, STEPS, COPIES = 64, 3, 2
_SHARE = 0.2  # of mu^2, for what takes a share by itself
DEEP_ROWS = 12  # for deep methods, in which one record takes as long as a thousand of a linear one
PAIRS = (  # what is said of records, of which kind they are, and the share that is left out behind the same n
    ("other records", DENSE, 0.0),
    ("fewer and tiny records behind the same n", TINY, 1 / 8),
    ("long records of one class", LONG, 0.0),
    ("records like pictures, half of them black", PICTURES, 0.0),
)
_log = logging.getLogger("dpstudy")
_TIMES = re.compile(r"\d+(\.\d+)? s\b")


@dataclass(frozen=True, kw_only=True)
class ReplayRequest(CellRequest):
    """A cell's request whose noise source records to a tape or plays from it."""

    tape: Tape
    plays: bool

    def noise_source(self, phase: str, trial: object, seed: int) -> NoiseSource:
        """The noise source on the tape."""
        return (Playing if self.plays else Recording)(self.tape, self.noise, self.cell.path, phase, trial, seed)

    def check_enough(self, problem: Problem) -> None:
        """Skipped: the scores' value does not matter here."""

    def check_library(self) -> None:
        """Skipped: no study is under way."""


def replay(
    options: Mapping, dataset: Mapping, noise: str, layout: Layout, epsilon: str, count: int | None = None
) -> dict:
    """Train an entry on a tape of fixed releases with several sets of records, and check that the results are equal.

    Args:
        options: the entry's, defaults filled in.
        dataset: `unit`, `positives`, `delta`, and `per_subject` and `contributions` of persons.
        noise: "seeded" or "secure".
        epsilon: a finite target.
        count: how many records; None: 64, of networks 12.

    Returns:
        {"pairs": how many further sets of records, "records": of each set}

    Raises:
        LeakError: something that a cell gives depends on its records otherwise than through its releases.
        StudyError: the training fails.
    """
    options = shortened(options, dataset.get("per_subject", 1))
    if weights := sorted(dataset.get("class_weights", {}).values(), reverse=True)[: layout.classes]:
        dataset = {**dataset, "class_weights": {f"c{place}": one for place, one in enumerate(weights)}}
    count, tape = count or (DEEP_ROWS if _deep(options) else ROWS), Tape()
    first: dict[str, Any] | None = None
    with tempfile.TemporaryDirectory() as folder:
        for number, (change, kind, left_out) in enumerate((PAIRS[0], *PAIRS)):
            root, dropped = Path(folder) / str(number), int(count * left_out)
            inputs = made_up(root, options, dataset, noise == "secure", layout, count, number, dropped, kind)
            request = _request(options, dataset, noise, epsilon, tape, first is not None)
            if first is None:
                first = _given(request, inputs, root)
                continue
            try:
                given = _given(request, inputs, root)
            except LeakError as error:
                raise LeakError(f"method {options['method']!r}: with {change}, {error}") from None
            except (StudyError, RuntimeError) as error:
                raise LeakError(
                    f"method {options['method']!r}: with the same releases and {change}, its training fails: {error}"
                ) from error
            _compare(first, given, options["method"], change)
            tape.check_played()
            tape.played.clear()
    return {"pairs": len(PAIRS), "records": count}


def _deep(options: Mapping[str, Any]) -> bool:
    return bool(method_schema(options["method"]).get("x-per-seed"))


def shortened(options: Mapping[str, Any], per_subject: int = 1) -> dict[str, Any]:
    """An entry's options reduced to few records and steps, with one value for each searched hyper-parameter.

    Args:
        per_subject: how many records a unit has.
    """
    chosen = dict(options)
    rules = method_schema(chosen["method"])["properties"]
    rows = DEEP_ROWS if _deep(options) else ROWS
    most = {"steps": STEPS, "epochs": 1, "batch_size": max(1, rows * 3 // (8 * per_subject))}
    if "tuning" in chosen:
        chosen["tuning"] = dict(chosen["tuning"])
        space = {name: _shortened(asked, most.get(name)) for name, asked in chosen["tuning"].get("space", {}).items()}
        if pays(chosen):
            chosen["tuning"] |= {"space": space}
        else:
            chosen |= {
                name: asked["choices"][0] if "choices" in asked else asked["low"] for name, asked in space.items()
            }
            del chosen["tuning"]
    stepped = "steps" in rules and isinstance(chosen.get("steps", 0), int)
    if stepped and ("epochs" in rules or "steps" in chosen):
        chosen["steps"] = min(STEPS, chosen.get("steps", STEPS))
        for name in ("epochs", "noise_multiplier"):
            chosen.pop(name, None)
    if isinstance(chosen.get("batch_size"), int):
        chosen["batch_size"] = min(most["batch_size"], chosen["batch_size"])
    if isinstance(chosen.get("largest_batch"), int):
        chosen["largest_batch"] = chosen["batch_size"]  # where a sample is not cut, what is done to one is not seen
    if chosen.get("bands", 1) > 1:
        chosen["bands"] = 2  # as many groups as batches leave room for
    if isinstance(chosen.get("start"), dict):
        chosen["start"] = {key: value for key, value in chosen["start"].items() if key != "sha256"}
    if isinstance(chosen.get("trained"), dict) and "head_first" in chosen["trained"]:
        chosen["trained"] = {"head_first": 1}
    if chosen.get("calibration") == PUBLIC:  # reads the model and public records, of which there are too few here
        del chosen["calibration"]
        chosen.pop("thresholds", None)
    if chosen.get("calibration") == "auto" or chosen.get("thresholds"):  # few records would have none
        chosen["calibration"] = _SHARE
    if chosen.get("thresholds"):
        chosen["thresholds"] = _SHARE
    if "curve_points" in rules:
        chosen["curve_points"] = min(STEPS - 1, chosen.get("curve_points", STEPS))
    if chosen.get("augmentation"):
        rule, mixed = chosen["augmentation"], min(1, chosen["augmentation"].get("mixed", 0))
        chosen["augmentation"] = rule | {"multiplicity": min(max(COPIES, 2 * mixed), rule["multiplicity"])}
        chosen["augmentation"] |= {"mixed": mixed} if mixed else {}
    short = {"micro_batch": DEEP_ROWS, "devices": 1, "compile": False}
    return chosen | {name: value for name, value in short.items() if name in chosen}


def _shortened(asked: Any, most: int | None) -> Any:
    if most is None:
        return asked
    if "choices" in asked:
        return {"choices": sorted({min(most, value) for value in asked["choices"] if isinstance(value, int | float)})}
    return {"choices": [min(most, asked["low"])]}


def _request(options, dataset, noise: str, epsilon: str, tape: Tape, plays: bool) -> ReplayRequest:
    facts: dict[str, Any] = {"reader": "arrays", "not_accounted": ()} | dict(dataset)
    facts["delta"] = min(float(facts["delta"]), 1e-4)  # of so few records it is below 1/n in any case
    return ReplayRequest(
        cell=Cell(DATASET, "records", "entry", epsilon),
        options=dict(options),
        dataset=facts,
        seeds=[0],
        noise=noise,
        metrics=["top1"],
        not_accounted=[],
        code=[],
        library="",
        tape=tape,
        plays=plays,
    )


def _given(request: ReplayRequest, inputs: CellInputs, root: Path) -> dict[str, Any]:
    """What a training gives: kind -> what must not depend on its records otherwise than through its releases."""
    names = {"model": "model.safetensors", "run": "run.json", "scores": "scores.parquet", "ledger": "ledger.json"}
    if method_schema(request.options["method"])["x-curve"]:
        names["curve"] = "curve.parquet"
    paths = {kind: str(root / name) for kind, name in names.items()}
    with _messages() as messages:
        train_cell(request, inputs, paths)
    run = read_json(paths["run"])
    run.pop("files", None)
    run["made_by"].pop("data")  # hashes of the shards
    for seed in run["seeds"]:
        seed.pop("seconds")
    results = {"model": Path(paths["model"]).read_bytes(), "messages": _TIMES.sub("- s", messages.getvalue())}
    results |= {"run.json": json.dumps(run), "ledger.json": Path(paths["ledger"]).read_text(encoding="utf-8")}
    return results | {kind: read_table(paths[kind]) for kind in ("scores", "curve") if kind in paths}


@contextlib.contextmanager
def _messages() -> Iterator[io.StringIO]:
    """What is told by the library's log and on standard output."""
    text, log = io.StringIO(), logging.getLogger("dpstudy")
    handler, level, before = logging.StreamHandler(text), log.level, log.handlers[:]
    log.handlers, spread = [handler], log.propagate
    log.propagate = False
    log.setLevel(logging.INFO)
    try:
        with contextlib.redirect_stdout(text):
            yield text
    finally:
        log.handlers, log.propagate = before, spread
        log.setLevel(level)


def _compare(first: Mapping[str, Any], given: Mapping[str, Any], method: str, kind: str) -> None:
    for name, value in first.items():
        same = value.equals(given[name]) if hasattr(value, "equals") else value == given[name]
        if not same:
            raise LeakError(
                f"method {method!r}: with the same releases and {kind}, its {name} {_differ(value, given[name])}: "
                "something of private records passes around the releases"
            )


def _differ(before: Any, now: Any) -> str:
    if not isinstance(before, str):
        return "is another one"
    lines = [(a, b) for a, b in zip(before.splitlines(), now.splitlines(), strict=False) if a != b]
    return f"says {lines[0][1][:100]!r} where it said {lines[0][0][:100]!r}" if lines else "has other lines"


def replayed(
    entries: Sequence[Mapping[str, Any]], noise: str, path: str | None = None, keep: bool = True
) -> dict[str, dict]:
    """Entry name -> the replay of each of these entries, or the reason why there is none.

    Args:
        entries: of each {"name" ("features/entry"), "epsilon", "options", "dataset", "folder" (of shards), "scaling",
            "library"}.
        path: of a JSON that keeps what was found: what the same code made of the same settings and layout is taken from
            there, and the layout too where the shards are gone.
        keep: write it anew.

    Returns:
        name -> as of `replay`, or {"exempt": why there is none}.

    Raises:
        LeakError, StudyError: as of `replay`.
    """
    before = read_json(path)["entries"] if path and Path(path).exists() else {}
    kept: dict[str, dict] = {}
    for entry in entries:
        result = before.get(entry["name"], {})
        layout = _layout(entry, result)
        if layout is None:
            kept[entry["name"]] = {"exempt": "nothing says any more what its records looked like"}
            continue
        facts = {key: entry[key] for key in ("options", "dataset", "library")} | {"noise": noise}
        mark = config_hash(facts | {"layout": asdict(layout)})
        if result.get("made_by") != mark:
            _log.info("replay of %s: a training on made-up records, and others on its tape", entry["name"])
            try:
                result = replay(entry["options"], entry["dataset"], noise, layout, entry["epsilon"])
            except LeakError as error:
                raise LeakError(f"{entry['name']}: {error}; none of its cells may be tabled or published") from None
            except StudyError as error:
                raise StudyError(f"{entry['name']}: its replay on made-up records fails: {error}") from error
        kept[entry["name"]] = result | {"made_by": mark, "layout": asdict(layout)}
    if path and keep:
        write_json(path, {"entries": kept})
    notes = ("made_by", "layout")
    return {name: {key: value for key, value in one.items() if key not in notes} for name, one in kept.items()}


def _layout(entry: Mapping[str, Any], before: Mapping[str, Any]) -> Layout | None:
    if (Path(entry["folder"]) / "manifest.json").exists():
        return Layout.of(entry["folder"], entry["scaling"])
    known = before.get("layout")
    return Layout(**known | {"shape": tuple(known["shape"])}) if known else None
