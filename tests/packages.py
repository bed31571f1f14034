"""What pyproject.toml asks for, and what that asks for in turn."""

import importlib.metadata
import subprocess
import sys
import tomllib
from pathlib import Path

from packaging.requirements import Requirement

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def closure(names):
    """Distributions that these ask for, and what those ask for; by their normal names."""
    found, waiting = {}, [Requirement(name) for name in names]
    while waiting:
        requirement = waiting.pop()
        name = requirement.name.lower().replace("_", "-")
        if name not in found:
            found[name] = importlib.metadata.distribution(name)
            asked = map(Requirement, found[name].requires or ())
            extras = requirement.extras or {""}
            waiting += [r for r in asked if not r.marker or any(r.marker.evaluate({"extra": e}) for e in extras)]
    return found


def environment(folder, names):
    """Python in an environment that has these and what they ask for alone; links to the packages that are here."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    packages = next(folder.glob("lib/python*/site-packages"))
    for distribution in closure(names).values():
        for top in {file.parts[0] for file in distribution.files or () if file.parts[0] not in ("..", "__pycache__")}:
            place = Path(distribution.locate_file(top))
            if place.exists() and not (packages / top).exists():
                (packages / top).symlink_to(place)
    return folder / "bin/python"
