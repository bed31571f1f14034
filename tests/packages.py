"""What pyproject.toml asks for, and what that asks for in turn."""

import importlib.metadata
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
