"""The packages, with versions, that a bundle's program needs, found by running it."""

import ast
import importlib.metadata
import json
import os
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

from dpstudy.core.errors import StudyError

_OWN = "dpstudy"
_LARGE = "torch"  # which is left out where the bundle predicts without it
# Scores of pictures in all formats and layouts that there are; then which modules were loaded.
_TRIAL = """
import sys
folder, hidden = sys.argv[1:]
sys.dont_write_bytecode = True
if hidden:
    sys.modules[hidden] = None
sys.path.insert(0, folder)
import json, tempfile
from pathlib import Path
from PIL import Image, features
from dpstudy.release.predictor import Predictor
predictor = Predictor(folder)
with tempfile.TemporaryDirectory() as place:
    paths = []
    for mode in ("1", "L", "LA", "P", "RGB", "RGBA", "CMYK", "I;16"):
        picture = Image.new(mode, (40, 40))
        for ending in ("png", "jpg", "webp", "tif", "bmp", "gif", "ppm", "jp2"):
            path = Path(place, f"{mode.replace(';', '')}.{ending}")
            try:
                picture.save(path)
            except (OSError, ValueError, KeyError):  # a mode that the format has not, or a format that Pillow lacks
                continue
            paths.append(path)
    if "window" in json.loads(Path(folder, "bundle.json").read_text())["image"]:  # as files of hospitals have it
        import pydicom.examples
        paths.append(pydicom.examples.get_path("mr"))
    found, bad = predictor.scores_or_reasons(paths)
    assert len(found), next(iter(bad.values()))
print("MODULES", json.dumps(sorted({name.partition(".")[0] for name, module in sys.modules.items() if module})))
"""


def requirements(needed: dict[str, str]) -> list[str]:
    """Sorted lines of a requirements.txt for these packages.

    Raises:
        KeyError: a package is not installed here.
    """
    return sorted({f"{name}=={importlib.metadata.version(name)}" for name in needed.values()})


def providers(folder: Path) -> dict[str, str]:
    """Module -> its package, for all that a bundle's files import and that predicting loads, sorted.

    Without torch where the bundle predicts without it.

    Raises:
        KeyError: an imported package is not installed here.
        StudyError: the bundle does not predict.
    """
    loaded, _ = _loaded(folder, hidden=_LARGE)
    if loaded is None:
        loaded, why = _loaded(folder, hidden="")
        if loaded is None:
            raise StudyError(f"{folder}: does not predict: {why}")
    imported = {name for path in folder.rglob("*.py") for name in _imported(path)}
    packages = importlib.metadata.packages_distributions()
    return {name: packages[name][0] for name in sorted((imported & loaded) - sys.stdlib_module_names - {_OWN})}


def _loaded(folder: Path, hidden: str) -> tuple[set[str] | None, str]:
    """The modules that predicting loads, or None and why it failed."""
    command = [sys.executable, "-I", "-c", _TRIAL, str(folder), hidden]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    _, mark, names = done.stdout.rpartition("MODULES ")
    if done.returncode or not mark:
        return None, (done.stderr.strip().splitlines() or ["no reason"])[-1]
    return set(json.loads(names)), ""


def _imported(path: Path) -> Iterable[str]:
    for node in ast.walk(ast.parse(path.read_bytes(), filename=str(path))):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level and node.module:
            yield node.module.partition(".")[0]
