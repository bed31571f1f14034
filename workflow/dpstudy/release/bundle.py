"""Writing a bundle, a folder for publication: a cell's model, preprocessing, ledger, privacy statement and card."""

import importlib.util
import json
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from dpstudy.cell.refusals import BROUGHT, NOT_FOR_RELEASE, refusals
from dpstudy.core.errors import StudyError
from dpstudy.core.files import read_json, read_tensor_metadata, sha256, write_json
from dpstudy.features import extractor_modules, network_of, open_extractor, parts_of
from dpstudy.features.backends import OPENVINO
from dpstudy.features.scatter_filters import Filters
from dpstudy.models.kinds import HOLDS_RECORDS, MODELS, kind_of
from dpstudy.models.operating_points import counts_of
from dpstudy.privacy import event_bounds, second_accountant
from dpstudy.provenance.code import PACKAGE, closure
from dpstudy.release import verify
from dpstudy.release.card import card, trained
from dpstudy.release.facts import check_facts
from dpstudy.release.packages import providers, requirements
from dpstudy.release.sheet import write_sheet
from dpstudy.release.statement import statement
from dpstudy.schema.reading import FOLDER, check

_PREDICT = '''"""Scores of new images: python predict.py IMAGE ... > scores.csv (needs requirements.txt)."""

import sys

sys.dont_write_bytecode = True  # it would name this machine's folders, in a folder that is passed on
# An older Python must be able to read this file, so that it can say so.
if sys.version_info < (3, 11):
    sys.exit(
        "predict.py: needs Python 3.11 or newer, and %s is %s; run `python3.11 predict.py IMAGE ...` or one that is "
        "newer" % (sys.executable, sys.version.split()[0])
    )

from importlib.util import find_spec  # noqa: E402
from pathlib import Path  # noqa: E402

FOLDER = Path(__file__).resolve().parent
NEEDED = {needed}  # modules, and the packages of requirements.txt that bring them
INSTALL = "run `%s -m pip install -r %s`" % (sys.executable, FOLDER / "requirements.txt")

missing = sorted(set(package for module, package in NEEDED.items() if find_spec(module) is None))
if missing:
    sys.exit("predict.py: %s lacks %s; %s" % (sys.executable, ", ".join(missing), INSTALL))
if not (FOLDER / "dpstudy").is_dir():
    sys.exit("predict.py: %s has no folder dpstudy, which it runs on; take it from its owner again" % FOLDER)
sys.path.insert(0, str(FOLDER))

try:
    from dpstudy.release.predictor import main  # noqa: E402
except (ImportError, OSError) as error:  # OSError: of a library that a package loads
    reason = str(error).partition("\\n")[0]
    sys.exit("predict.py: cannot be started (%s); %s, or verify.py, which says what lacks here" % (reason, INSTALL))
sys.exit(main(FOLDER, sys.argv[1:]))
'''
_WITHOUT_GPU = "# Without a GPU: uv pip install --torch-backend cpu -r requirements.txt takes 1.5 GB instead of 6."
_OF_DICOM = {"pydicom": "pydicom", "gdcm": "python-gdcm"}  # which pydicom loads by itself
# Of the cards of public parts: not which or how many rows they were made from, nor how well they do on them, which
# depend on private records where those chose the rows (`drop: public`).
_CARDS = {
    "backbone": ("backbone", "architecture", "options", "classes", "image_shape", "public", "versions"),
    "fit": ("fit", "options", "features", "versions"),
}


@dataclass(frozen=True)
class Origin:
    """The source files of a bundle, and facts about them.

    Attributes:
        cell: folder of the cell: metrics.json, ledger.json, model.safetensors.
        certificate: what other accountants say of its ledger (`bounds`), its `replay`, and maybe `errata`.
        image: {"size": [H, W], "channels", "crop", maybe "frame" and "window"}: how images are decoded.
        classes: label names.
        multi_label: whether a record may have several.
        features: the feature set's options.
        backbone, fit: folders of public networks (of joined features, the folder of all networks) and projections, or
            None.
        weights: files of public weights that were brought.
        audit: path of audit.json, or None.
        unmatched: what was never compared with the private records.
        chosen: public sets of which private records chose the images.
        planted: public sets that hold copies of private records.
        test_public: whether the records of the test split are public, so that scores on them may be given.
        may_be_dicom: whether records may have been DICOM files, so that recipients may have such.
    """

    cell: str
    certificate: Mapping
    image: Mapping
    classes: Sequence[str]
    multi_label: bool
    features: Mapping
    backbone: str | None = None
    fit: str | None = None
    weights: Sequence[str] = ()
    audit: str | None = None
    unmatched: Sequence[str] = ()
    chosen: Sequence[str] = ()
    planted: Sequence[str] = ()
    test_public: bool = False
    may_be_dicom: bool = False


def write_bundle(name: str, origin: Origin, accept: Sequence[str], folder: str) -> None:
    """Write the bundle of one cell.

    Args:
        name: of the cell.
        accept: what the data owner answers for; see `refusals`.
        folder: to make.

    Raises:
        StudyError: the cell is not for release.
    """
    cell, target = Path(origin.cell), Path(folder)
    ledger, metrics = read_json(cell / "ledger.json"), read_json(cell / "metrics.json")
    audit = read_json(origin.audit) if origin.audit else None
    errata = origin.certificate.get("errata", ())
    against = refusals(
        ledger, metrics["tuned_on"], origin.unmatched, accept, audit, origin.chosen, origin.planted, errata
    )
    kind = kind_of(cell / "model.safetensors")
    if kind == HOLDS_RECORDS:
        against.append("its model holds a point for each private record")
    if origin.features["extractor"] == "precomputed":
        against.append(BROUGHT)
    if against:
        raise StudyError(NOT_FOR_RELEASE.format(name, "; ".join(against)))
    # Renamed when it is whole, so that none is found half-written; workflow/run.py knows such names.
    temporary = target.with_name(f".{target.name}.tmp")
    for leftover in (target, temporary):
        shutil.rmtree(leftover, ignore_errors=True)
    temporary.mkdir(parents=True)
    try:
        _write(name, origin, temporary, kind, errata, (ledger, metrics, audit))
        temporary.rename(target)
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise


def _write(name: str, origin: Origin, target: Path, kind: str, errata: Sequence[str], read: tuple) -> None:
    ledger, metrics, audit = read
    for file in ("model.safetensors", "ledger.json"):
        shutil.copyfile(Path(origin.cell, file), target / file)
    features = _features(origin, target)
    facts = {"name": name, "classes": list(origin.classes), "multi_label": origin.multi_label}
    facts |= {"image": dict(origin.image), "features": features}
    if backend := _backend(features, origin, target):
        facts["backend"] = backend
        if features["extractor"] not in ("scatternet", "joined"):
            features["backend"] = backend.partition(" ")[0]
    check(facts, "bundle", f"cell {name}")
    check_facts(facts, f"cell {name}")
    write_json(target / "bundle.json", facts)  # for the trial that finds what packages it needs
    if audit:
        write_json(target / "audit.json", audit)
    text = statement(ledger, name, origin.certificate["bounds"], audit, errata, origin.certificate.get("replay"))
    (target / "PRIVACY.md").write_text(text, encoding="utf-8")
    write_sheet(target / "PRIVACY.pdf", ledger, name, sha256(target / "model.safetensors"), errata)
    points = counts_of(read_tensor_metadata(target / "model.safetensors"), len(origin.classes))
    readme = card(ledger, facts, trained(metrics, origin.test_public), _packages(features, target), points)
    (target / "README.md").write_text(readme, encoding="utf-8")
    _write_program(target, kind, features, backend or "", origin.may_be_dicom)
    (target / "bundle.json").unlink()  # which is the list, and not in it
    files = {path.relative_to(target).as_posix(): sha256(path) for path in sorted(target.rglob("*")) if path.is_file()}
    write_json(target / "bundle.json", facts | {"files": files})
    for path in (target, *target.rglob("*")):  # made to be given away, in a folder that is closed to others
        path.chmod(0o755 if path.is_dir() else 0o644)


def _features(origin: Origin, target: Path) -> dict:
    """The feature set's options as the bundle has them; public networks and projections are copied."""
    options = json.loads(json.dumps(origin.features))
    parts, brought = parts_of(options), iter(origin.weights)
    if origin.fit:
        _copy(Path(origin.fit), target / "fit", "projection", _CARDS["fit"])
    if origin.features["extractor"] == "scatternet":
        (target / "backbone").mkdir()
        Filters.of(*origin.image["size"]).write(target / "backbone")
    for place, part in enumerate(parts):
        part.pop("trained_on", None)
        if network_of(part) and origin.backbone:
            within = _within(part, options)
            keys = _CARDS["backbone"] if "backbone" in part else None
            _copy(Path(origin.backbone, within), target / "backbone" / within, "model", keys)
        elif part.get("weights", "random") not in ("random", "hub"):
            source = Path(next(brought))
            part["weights"] = f"weights{f'-{place}' if part is not options else ''}{source.suffix}"
            shutil.copyfile(source, target / part["weights"])
    return options


def _copy(source: Path, target: Path, tensors: str, keys: Sequence[str] | None) -> None:
    """Tensors, and of their card these keys; all where None."""
    target.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source / f"{tensors}.safetensors", target / f"{tensors}.safetensors")
    card = read_json(source / "card.json")
    if "options" in card:  # what a fit was made of stands in bundle.json, without places of this machine
        card["options"].pop("features", None)
    write_json(target / "card.json", card if keys is None else {key: card[key] for key in keys})


def _packages(features: Mapping, target: Path) -> list[dict]:
    """The cards of packages whose weights are in the bundle: whose these are goes with them."""
    return [
        read_json(target / "backbone" / _within(part, features) / "card.json")
        for part in parts_of(features)
        if isinstance(part.get("weights"), dict)
    ]


def _within(part: Mapping, features: Mapping) -> str:
    """Where the network of a part lies in the folder of all: the only one in that folder itself."""
    return "" if part is features else network_of(part) or ""


def _backend(features: Mapping, origin: Origin, target: Path) -> str | None:
    """What computes features here, as it did in the study; None where there is no choice."""
    if features["extractor"] not in ("scatternet", "timm", "backbone", "joined"):
        return None
    extractor = open_extractor(dict(features), target / "backbone", target)
    extractor.shape((*origin.image["size"], origin.image["channels"]))  # which has a network run
    return extractor.backend  # type: ignore[attr-defined]


def _write_program(target: Path, kind: str, features: Mapping, backend: str, dicom: bool) -> None:
    """predict.py with the part of the library that it runs on, and verify.py with its accountants, which need none."""
    modules = [MODELS[kind][0], *extractor_modules(features)]
    files = list(map(Path, closure("dpstudy.release.predictor", *modules)))
    files += [FOLDER / f"{name}.schema.yaml" for name in ("bundle", "config")]  # what bundle.json is held against
    for path in files:
        copy = target / "dpstudy" / path.resolve().relative_to(PACKAGE)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, copy)
    needed = providers(target)
    if "pydicom" in needed:
        needed |= _OF_DICOM
    if OPENVINO in backend:  # which a process of its own loads
        needed[OPENVINO] = OPENVINO
    hints = [_WITHOUT_GPU] if "torch" in needed else []
    # predict.py asks for these where it is given a DICOM file; where pydicom is missing here, no record was one
    more = _OF_DICOM if dicom and importlib.util.find_spec("pydicom") else {}
    lines = [*hints, *requirements(needed | more)]
    (target / "requirements.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    for file in map(Path, (verify.__file__, event_bounds.__file__, second_accountant.__file__)):
        shutil.copyfile(file, target / file.name)
    program = _PREDICT.replace("{needed}", json.dumps(needed, indent=4))
    (target / "predict.py").write_text(program, encoding="utf-8")
