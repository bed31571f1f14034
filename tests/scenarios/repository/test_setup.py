"""The virtual environment of `make study`: made when it is missing or half-made, and else only brought up to date."""

import os
import subprocess
from pathlib import Path

import pytest

SETUP = Path(__file__).parents[3] / "workflow" / "setup.sh"
# Says what it was asked, and acts as FAULT says: as Debian's without ensurepip, which makes an environment without pip,
# as a pip without network, or one that is killed.
PYTHON = """#!/bin/sh
echo "$*" >> "$CALLS"
case "$1 $2" in
"-c "*) [ "$FAULT" != old ] ;;
"-m venv")
    [ "$4" != --clear ] || rm -rf "$3"
    mkdir -p "$3/bin" && cp "$0" "$3/bin/python" && [ "$FAULT" != "no ensurepip" ] && touch "$3/has-pip" ;;
"-m pip")
    [ -e "${0%/bin/python}/has-pip" ] || exit 1
    [ "$3 $FAULT" != "install no network" ] || exit 1
    [ "$3 $FAULT" != "install killed" ] || kill -9 $$ ;;
esac
"""


@pytest.fixture
def set_up(tmp_path):
    """Run setup.sh with a fault, as often as it is called; returns its exit status and what Python was asked to do."""
    (tmp_path / "python").write_text(PYTHON)
    (tmp_path / "python").chmod(0o755)
    calls = tmp_path / "calls"

    def run(fault: str = "") -> tuple[int, list[str]]:
        calls.write_text("")
        command = ["sh", str(SETUP), "./python", ".venv", "list.txt"]
        environment = os.environ | {"CALLS": str(calls), "FAULT": fault}
        status = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True).returncode
        asked = [" ".join(line.split()[:3]) for line in calls.read_text().splitlines()]
        return status, [line for line in asked if line.startswith(("-m venv", "-m pip install"))]

    return run


MADE = (0, ["-m venv .venv", "-m pip install", "-m pip install"])
UPDATED = (0, ["-m pip install", "-m pip install"])


def test_a_whole_environment_is_only_brought_up_to_date(set_up, tmp_path):
    assert set_up() == MADE
    (tmp_path / ".venv/a-package-of-the-user").touch()
    assert set_up() == UPDATED
    assert set_up("no network") == (1, ["-m pip install"])
    assert set_up() == UPDATED and (tmp_path / ".venv/a-package-of-the-user").exists()


@pytest.mark.parametrize("fault", ["no ensurepip", "killed"])
def test_a_half_made_environment_is_made_again(set_up, fault):
    assert set_up(fault)[0] == 1
    assert set_up() == MADE and set_up() == UPDATED


def test_one_whose_python_is_gone_or_too_old_or_that_was_killed_in_an_update_is_made_again(set_up, tmp_path):
    assert set_up() == MADE
    (tmp_path / ".venv/bin/python").unlink()
    (tmp_path / ".venv/bin/python").symlink_to("of-a-release-that-was-upgraded")
    assert set_up() == MADE
    (tmp_path / ".venv/bin/python").write_text('#!/bin/sh\n[ "$1" != -c ]\n')
    assert set_up() == MADE and set_up("killed")[0] == 1 and set_up() == MADE


def test_a_python_that_is_too_old_makes_nothing(set_up, tmp_path):
    assert set_up("old") == (1, []) and not (tmp_path / ".venv").exists()
