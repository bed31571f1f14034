"""Extras against what the library imports, and what pyproject.toml says that they bring."""

import ast
import importlib.metadata
import sys

import pytest
from packaging.requirements import Requirement

from dpstudy.core import extras
from dpstudy.core.errors import StudyError
from dpstudy.core.extras import EXTRAS
from tests.packages import PROJECT, ROOT, closure


def test_every_package_that_the_library_imports_is_the_core_s_or_an_extra_s():
    brought = importlib.metadata.packages_distributions()
    core = {
        name
        for name, own in brought.items()
        if {each.lower() for each in own} & closure(PROJECT["dependencies"]).keys()
    }
    imported = set()
    for path in (ROOT / "workflow/dpstudy").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_bytes())):
            if isinstance(node, ast.Import):
                imported |= {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and not node.level:
                imported.add(node.module.partition(".")[0])
    others = imported - set(sys.stdlib_module_names) - core - {"dpstudy"}
    carried = {"triton": "torch", "huggingface_hub": "timm"}  # which bring them
    assert {carried.get(name, name) for name in others} <= EXTRAS.keys()


def test_an_extra_has_the_packages_that_it_is_named_for():
    brought = importlib.metadata.packages_distributions()
    for module, extra in EXTRAS.items():
        names = {Requirement(name).name.lower() for name in PROJECT["optional-dependencies"][extra]}
        assert names & {name.lower() for name in brought[module]}, module


def test_a_missing_package_is_a_sentence_and_another_fault_is_not():
    with pytest.raises(
        StudyError, match=r"^x: needs torch, which is not installed; run pip install 'dpstudy\[networks\]'$"
    ):
        with extras.named("x"):
            raise ModuleNotFoundError("No module named 'torch.nn'", name="torch.nn")
    with pytest.raises(ModuleNotFoundError), extras.named("x"):
        raise ModuleNotFoundError("No module named 'typo'", name="typo")
