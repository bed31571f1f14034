"""The examples in docstrings."""

import doctest
import importlib
from pathlib import Path

import pytest

LIBRARY = Path(__file__).parents[3] / "workflow"
WITH_EXAMPLES = sorted(path for path in LIBRARY.rglob("*.py") if ">>>" in path.read_text())


@pytest.mark.parametrize("path", WITH_EXAMPLES, ids=lambda path: str(path.relative_to(LIBRARY)))
def test_they_give_what_they_say(path):
    parts = path.relative_to(LIBRARY).with_suffix("").parts
    module = importlib.import_module(".".join(part for part in parts if part != "__init__"))
    found = doctest.testmod(module, optionflags=doctest.NORMALIZE_WHITESPACE)
    assert found.attempted and not found.failed


def test_there_are_some():
    assert len(WITH_EXAMPLES) >= 30
