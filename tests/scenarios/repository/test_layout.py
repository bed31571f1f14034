"""Unit tests are found by name: tests/unit/PACKAGE/test_MODULE.py, or test_MODULE_ASPECT.py, of PACKAGE/MODULE.py."""

from pathlib import Path

from tests.conftest import FOLDERS, QUICK

ROOT = Path(__file__).parents[3]
UNIT = ROOT / "tests/unit"
HOMES = (ROOT / "workflow/dpstudy", ROOT / "workflow")  # the library's packages; programs, and the view of a run
TESTS = sorted(path.relative_to(UNIT) for path in UNIT.rglob("test_*.py"))
WHOLE = ("core", "schema", "provenance", "privacy", "plan")  # packages of which no module goes without


def unit_tests(module):
    """Those of a module, which is named from the library's folder."""
    return [
        test for test in TESTS if test.parent == module.parent and f"{test.stem}_".startswith(f"test_{module.stem}_")
    ]


def is_of_a_module(test):
    """Whether a module is there that the test is named after; those of all of a package have the package's name."""
    modules = {path.stem: path for home in HOMES for path in (home / test.parent).glob("*.py")}
    names = [test.parent.name if name == "__init__" else name for name in modules]
    return any(f"{test.stem}_".startswith(f"test_{name}_") for name in names)


def test_unit_tests_are_named_after_modules():
    """What is about several modules is a scenario (tests/scenarios)."""
    assert not [f"tests/unit/{test}" for test in TESTS if not is_of_a_module(test)]


def test_each_module_that_others_rest_on_has_unit_tests():
    library = HOMES[0]
    modules = [path.relative_to(library) for path in sorted(library.rglob("*.py")) if path.name != "__init__.py"]
    without = [str(module) for module in modules if not unit_tests(module)]
    print(f"{len(without)} of {len(modules)} modules have no unit tests of their own:", *without, sep="\n")
    assert not [name for name in without if name.split("/")[0] in WHOLE]


def test_what_is_called_slow_or_quick_is_there():
    """Else `make test` would silently have more, or lose the real workflow."""
    folders = {path.name for path in (ROOT / "tests").rglob("*") if path.is_dir()}
    assert set(FOLDERS) <= folders and not [name for name in QUICK if not (ROOT / "tests/workflow" / name).exists()]
