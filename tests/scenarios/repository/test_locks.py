"""The hash-locked lists hold what pyproject.toml asks for, in releases that it and the pins allow."""

import re

import pytest
from packaging.requirements import Requirement

from tests.packages import PROJECT, ROOT

EXTRAS = PROJECT["optional-dependencies"]


def locked(name):
    """Package -> version, of a list whose every entry has a hash."""
    text = (ROOT / f"envs/{name}.txt").read_text(encoding="utf-8")
    entries = re.findall(r"^([\w.-]+)==(\S+).*\\\n    --hash=sha256:[0-9a-f]{64}", text, re.MULTILINE)
    assert len(entries) == len(re.findall(r"^\w", text, re.MULTILINE))
    return {package.lower().replace("_", "-"): version for package, version in entries}


def asked(extra):
    """What an extra brings, those that it names among it, and the core."""
    found = [Requirement(line) for line in [*PROJECT["dependencies"], *EXTRAS[extra]]]
    inner = [name for each in found if each.name == "dpstudy" for name in each.extras]
    return [each for each in found if each.name != "dpstudy"] + [each for name in inner for each in asked(name)]


@pytest.mark.parametrize(("name", "extra"), [("requirements", "workflow"), ("requirements-dev", "dev")])
def test_a_list_has_what_its_extra_asks_for(name, extra):
    versions = locked(name)
    for requirement in asked(extra):
        assert requirement.specifier.contains(versions[requirement.name.lower()], prereleases=True), requirement


def test_the_lists_agree_with_the_pins_and_each_other():
    study, dev = locked("requirements"), locked("requirements-dev")
    assert study.items() <= dev.items()
    for line in (ROOT / "envs/pins.in").read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            pin = Requirement(line)
            assert pin.specifier.contains(study[pin.name]), pin


def test_no_index_is_named():
    for path in (ROOT / "envs").iterdir():
        assert "://" not in path.read_text(encoding="utf-8"), path


def test_uv_is_locked():
    assert locked("uv").keys() == {"uv"}
