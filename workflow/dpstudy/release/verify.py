"""Verifies a bundle: its files are as released, and its epsilon covers its releases. Run: python verify.py

Needs Python's standard library alone, and NumPy where batches are samples. An older Python must be able to read this
file, so that it can say so.
"""

import hashlib
import json
import math
import re
import runpy
import sys
from pathlib import Path

if sys.version_info < (3, 11):  # noqa: UP036  (people run it with what they have)
    sys.exit(f"verify.py: needs Python 3.11 or newer, and {sys.executable} is {sys.version.split()[0]}")

_LIST, _LEDGER, _MODEL, _STATEMENT, _CARD = "bundle.json", "ledger.json", "model.safetensors", "PRIVACY.md", "README.md"
_AXES = ("dataset", "features", "entry", "epsilon")
_MARKS = {_LIST, ".snakemake_timestamp"}  # not listed: the list itself, and a mark of the program that made the folder
_ENVIRONMENT = "pyvenv.cfg"
_OF_ONE = "bin lib lib64 include share etc Scripts Lib Include".split()  # the folders of an environment
_CODE = {".py", ".pyc", ".pyd", ".so"}
_EPSILON = re.compile(r"^- \*\*The promise\*\*.* ε = ([0-9.]+(?:e[-+]?[0-9]+)?)\.$", re.MULTILINE)
# Wherever a text that its owner may write in states one; not e^ε, nor kε.
_STATED = re.compile(r"(?<![\w^])(?:ε|epsilon)\s*(?:=|is|of)\s*([0-9]+(?:\.[0-9]+)?(?:e[-+]?[0-9]+)?)", re.IGNORECASE)
_ROUNDED = 1.01  # the most by which a statement may round its epsilon up
_AGAIN = "take the folder from its owner again"
_CLOSED_FORMS, _SAMPLES = "event_bounds.py", "second_accountant.py"
_AGREEMENT = 1e-3  # relative: how narrow the accountant's bounds are
_NEVER = (
    "that the noise was drawn, and the records are, as ledger.json says: a model does not show that",
    "that nobody exchanged all of the folder, which is not signed: ask its owner for the SHA-256 of bundle.json, here",
)


class Report:
    """The results of verification, a sentence each: what holds, what does not, and what could not be checked."""

    def __init__(self) -> None:
        self.right: list = []
        self.wrong: list = []
        self.unknown: list = []


def verify(folder: Path) -> Report:
    """Check a bundle: every file against the list, the model against the ledger, the statement against both.

    Raises:
        ValueError: bundle.json or ledger.json is missing, or is no JSON of this kind.
    """
    report = Report()
    facts, ledger = _document(folder / _LIST), _document(folder / _LEDGER)
    listed, present = _texts(facts.get("files")), _present(folder)
    title = _text(folder / _STATEMENT).partition("\n")[0].partition(": ")[2]
    named = ledger.get("cell") if isinstance(ledger.get("cell"), dict) else {}
    cell = "{}/{}/{}/eps={}".format(*(named.get(axis) for axis in _AXES)) if named else ""
    model = _texts(ledger.get("files")).get(_MODEL)
    bound = bool(model) and present.get(_MODEL) == model
    if cell and facts.get("name") != cell and title == cell and bound:
        report.wrong.append(
            f"{_LIST}: is of {facts.get('name')}, where {_LEDGER} and the model are of {cell}; {_AGAIN}"
        )
        return report
    _compare(listed, present, report)
    _look_at_ledger(facts, ledger, cell, title, model, present, report)
    _look_at_statement(folder, ledger, report)
    _recompute(folder, ledger, listed, present, report)
    report.unknown.append(_NEVER[0])
    report.unknown.append(f"{_NEVER[1]} {_sha256(folder / _LIST)}")
    return report


def _compare(listed: dict, present: dict, report: Report) -> None:
    """Every file against the list."""
    if not listed:
        report.unknown.append(f"files: {_LIST} lists none, since an earlier version of dpstudy wrote it")
        return
    environments = {path.parent.as_posix() for path in map(Path, present) if path.name == _ENVIRONMENT}
    for place in sorted(environments):
        what = f"{place}: is" if place != "." else f"{_ENVIRONMENT}, bin, lib: are"
        report.wrong.append(
            f"{what} a virtual environment, which Python may run; remove it, and make one outside this folder"
        )
    within = tuple(f"{place}/" for place in environments - {"."})
    if "." in environments:
        within += (_ENVIRONMENT, "lib64", ".gitignore", *(f"{name}/" for name in _OF_ONE))
    for name in sorted(listed.keys() | present.keys()):
        if name.startswith(within) and name not in listed:
            continue
        if name not in present:
            report.wrong.append(f"{name}: is missing; {_AGAIN}")
        elif name not in listed and Path(name).suffix in _CODE:
            report.wrong.append(f"{name}: is not one of the released files, and Python may run it; remove it")
        elif name not in listed:
            report.unknown.append(f"{name}: was added since the folder was made")
        elif listed[name] != present[name] and name == _CARD:
            report.unknown.append(f"{name}: was written in since the folder was made, as its owner is asked to")
        elif listed[name] != present[name]:
            report.wrong.append(f"{name}: is not what was released (another SHA-256 than in {_LIST}); {_AGAIN}")
    if not report.wrong:
        report.right.append(f"{len(listed)} files are as {_LIST} lists them")


def _look_at_ledger(facts, ledger, cell: str, title: str, model, present: dict, report: Report) -> None:
    """The ledger's names against those of the others, and its model."""
    if not cell or not model:
        report.unknown.append(f"that {_LEDGER} is of this model: an earlier version of dpstudy wrote it")
        return
    before = len(report.wrong)
    for file, name in ((_LIST, facts.get("name")), (_STATEMENT, title)):
        if name != cell:
            report.wrong.append(f"{_LEDGER}: is of {cell}, where {file} is of {name}; {_AGAIN}")
    if present.get(_MODEL) != model:
        report.wrong.append(f"{_MODEL}: is not the model that {_LEDGER} is of (another SHA-256); {_AGAIN}")
    if len(report.wrong) == before:
        report.right.append(f"{_LEDGER} is of {cell}, and of this model")


def _look_at_statement(folder: Path, ledger: dict, report: Report) -> None:
    """The epsilon that is stated, in the card too, against the ledger's."""
    certified, match = ledger.get("epsilon"), _EPSILON.search(_text(folder / _STATEMENT))
    stated = float(match.group(1)) if match else None
    if not isinstance(certified, (int, float)) or ledger.get("guarantee") != "proved":
        report.wrong.append(f"{_LEDGER}: proves no epsilon, and a model without one is not released; {_AGAIN}")
    elif stated is None or not 0 <= certified <= stated <= certified * _ROUNDED:
        report.wrong.append(f"{_STATEMENT}: states ε = {stated}, where {_LEDGER} has {certified}; {_AGAIN}")
    else:
        report.right.append(f"{_STATEMENT} states the epsilon of {_LEDGER}, {stated}")
        for text in dict.fromkeys(_STATED.findall(_text(folder / _CARD))):
            if not certified <= float(text) <= certified * _ROUNDED:
                report.wrong.append(f"{_CARD}: states ε = {text}, where {_LEDGER} has {certified}; {_AGAIN}")


def _recompute(folder: Path, ledger: dict, listed: dict, present: dict, report: Report) -> None:
    """The ledger's epsilon against what its events are worth, by accountants that had no part in it."""
    stated, what = ledger.get("epsilon"), f"that the epsilon of {_LEDGER} follows from its events"
    if isinstance(stated, bool) or not isinstance(stated, (int, float)) or not 0 <= stated < 1e300:
        return  # already reported
    if not listed.keys() >= {_CLOSED_FORMS, _SAMPLES}:
        report.unknown.append(f"{what}: an earlier version of dpstudy wrote this folder")
        return
    if any(listed[name] != present.get(name) for name in (_CLOSED_FORMS, _SAMPLES)):
        return  # already reported, and must not be run
    if ledger.get("adjacency") == "replace-one":
        report.unknown.append(f"{what}: it is about replacing a unit, which the accountant here does not know")
        return
    try:
        bracket = runpy.run_path(str(folder / _SAMPLES))["bracket"]
    except ImportError:

        def bracket(*_: object) -> tuple:
            raise ValueError("its batches are samples, for which NumPy is needed")

    try:
        low, high = runpy.run_path(str(folder / _CLOSED_FORMS))["bounds"](ledger["events"], ledger["delta"], bracket)
    except ValueError as error:
        report.unknown.append(f"{what}: {error}")
        return
    except (ArithmeticError, AttributeError, LookupError, MemoryError, TypeError) as error:
        report.wrong.append(f"{_LEDGER}: its events are not what dpstudy writes ({error!r:.80}); {_AGAIN}")
        return
    if stated < low * (1 - 1e-6) or math.isnan(low):
        report.wrong.append(f"{_LEDGER}: states ε = {stated}, where its events are worth {low}; {_AGAIN}")
    elif stated < high * (1 - _AGREEMENT):
        report.unknown.append(f"{what}: by the accountant here they are worth between {low} and {_up(high)}")
    else:
        worth = f"are worth ε = {_up(high)} by another accountant"
        report.right.append(f"the events of {_LEDGER} {worth}; it states {_up(stated)}")


def _up(epsilon: float) -> float:
    """Six digits, rounded up: what is printed of an epsilon is never less than it is.

    >>> _up(3.9999999999), _up(0.12345671), _up(0.0)
    (4.0, 0.123457, 0.0)
    """
    if not 0 < epsilon < math.inf:
        return epsilon
    digits = 5 - math.floor(math.log10(epsilon))
    return math.ceil(epsilon * 10.0**digits) / 10.0**digits


def _present(folder: Path) -> dict:
    """Path in the folder -> SHA-256 of each file; of a link, which may lead outside, what it is instead."""
    digests = {}
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if path.is_symlink():
            digests[name] = "a link"
        elif path.is_file() and name not in _MARKS:
            digests[name] = _sha256(path)
    return digests


def _document(path: Path) -> dict:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ValueError(f"{path.name}: cannot be read ({error.strerror}); {_AGAIN}") from None
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path.name}: is not valid JSON ({str(error)[:200]}); {_AGAIN}") from None
    if not isinstance(content, dict):
        raise ValueError(f"{path.name}: is not what dpstudy writes; {_AGAIN}")
    return content


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, ValueError):
        return ""


def _texts(value: object) -> dict:
    return value if isinstance(value, dict) and all(isinstance(each, str) for each in value.values()) else {}


def _sha256(path: Path) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def main(folder: Path) -> int:
    """Print the results of verifying a bundle; the exit status is 1 if anything does not hold."""
    try:
        report = verify(folder)
    except (ValueError, OSError) as error:
        print(f"verify.py: {error}")
        return 1
    for word, sentences in (("right", report.right), ("could not check", report.unknown), ("WRONG", report.wrong)):
        for sentence in sentences:
            print(f"{word}: {sentence}")
    return 1 if report.wrong else 0


if __name__ == "__main__":
    sys.dont_write_bytecode = True
    sys.exit(main(Path(__file__).resolve().parent))
