"""The virtual environment of `make study`: made when it is missing or half-made, and else only brought up to date."""

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
SETUP = ROOT / "workflow" / "setup.sh"
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


UV = """#!/bin/sh
echo "uv $*" >> "$CALLS"
[ "$FAULT" != "no network" ] && [ "$FAULT" != "another index" ] || exit 1
[ "$FAULT" != killed ] || kill -9 $$
case "$*" in *torch-backend*) [ "$FAULT" != "no torch" ] || { echo "no such host" >&2; exit 2; } ;; esac
"""
ASKED = ("-m venv", "-m pip install", "uv pip install")


@pytest.fixture
def set_up(tmp_path):
    """Run setup.sh with a fault, as often as it is called; returns its exit status and what Python and uv were asked
    to do. A folder `uv` is where uv is found."""
    (tmp_path / "python").write_text(PYTHON)
    (tmp_path / "python").chmod(0o755)
    (tmp_path / "list.txt").write_text(LIST)
    calls = tmp_path / "calls"

    def run(fault: str = "", torch: str = "", words: int = 3) -> tuple[int, list[str]]:
        calls.write_text("")
        command = ["sh", str(SETUP), "./python", ".venv", "list.txt", *([torch] if torch else [])]
        environment = {"PATH": f"{tmp_path / 'uv'}:/usr/bin:/bin", "CALLS": str(calls), "FAULT": fault}
        done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
        status, run.said = done.returncode, done.stderr
        asked = [" ".join(line.split()[:words]) for line in calls.read_text().splitlines()]
        return status, [line for line in asked if line.startswith(ASKED)]

    return run


@pytest.fixture
def uv(tmp_path):
    """uv is on the path."""
    (tmp_path / "uv").mkdir()
    (tmp_path / "uv/uv").write_text(UV)
    (tmp_path / "uv/uv").chmod(0o755)


# Without uv on the path it is installed first, which this pip only says.
MADE = (0, ["-m venv .venv", *["-m pip install"] * 3])
UPDATED = (0, ["-m pip install"] * 3)
UPDATED_BY_UV = (0, ["uv pip install"] * 2)
LIST = """numpy==2.4.1 \\
    --hash=sha256:00
torch==2.15.0 \\
    --hash=sha256:01
    # via timm
torchvision==0.29.2 \\
    --hash=sha256:02
nvidia-nccl-cu13==2.30.7 ; sys_platform == 'linux' \\
    --hash=sha256:03
tqdm==4.67.1 \\
    --hash=sha256:04
"""


def test_a_whole_environment_is_only_brought_up_to_date(set_up, tmp_path):
    assert set_up() == MADE
    (tmp_path / ".venv/a-package-of-the-user").touch()
    assert set_up() == UPDATED
    assert set_up("no network") == (1, ["-m pip install"] * 2)
    assert set_up() == UPDATED and (tmp_path / ".venv/a-package-of-the-user").exists()


def test_uv_installs_where_it_is_and_pip_what_it_cannot_get(set_up, uv):
    assert set_up() == (0, ["-m venv .venv", *["uv pip install"] * 2])
    assert set_up() == (0, ["uv pip install"] * 2)
    assert set_up("another index") == (0, ["uv pip install", "-m pip install"] * 2)
    assert set_up("no network") == (1, ["uv pip install", "-m pip install"])
    assert set_up("killed")[0] == 1 and set_up() == (0, ["-m venv .venv", *["uv pip install"] * 2])


def test_torch_for_cpus_comes_apart_from_the_list(set_up, uv, tmp_path, monkeypatch):
    options = "--quiet --compile-bytecode --python .venv/bin/python --no-deps"
    listed, torch = f"{options} --require-hashes -r .venv/cpu.txt", "torch==2.15.0 torchvision==0.29.2"
    cpu = [f"uv pip install {listed}", f"uv pip install {options} --torch-backend cpu {torch}"]
    assert set_up(torch="cpu", words=99)[1][1:3] == cpu
    assert (tmp_path / ".venv/cpu.txt").read_text() == "".join(LIST.splitlines(keepends=True)[i] for i in (0, 1, 9, 10))
    assert set_up(words=99)[1][:2] == cpu, "the environment remembers it"
    assert set_up(torch="gpu") == (1, [])


def test_torch_for_cpus_that_cannot_be_had_is_said_in_uv_s_words_and_not_remembered(set_up, uv):
    """pip, which has no such option, is not asked; and the next set-up, without the choice, is the usual one."""
    failed, asked = set_up("no torch", torch="cpu")
    assert failed == 1 and "-m pip install" not in asked
    assert set_up.said.startswith(
        "no such host\ndpstudy: PyTorch's own index gave no PyTorch for CPUs; leave TORCH=cpu out"
    )
    assert set_up() == UPDATED_BY_UV


def test_torch_for_cpus_cannot_come_without_uv(set_up):
    assert set_up(torch="cpu") == (1, ["-m venv .venv", "-m pip install", "-m pip install"])


@pytest.mark.slow
def test_wheels_of_torch_may_lie_in_a_folder(tmp_path):
    """A real environment, whose list and wheels are made here."""
    made(tmp_path / "wheels", "torch", "2.15.0+cpu")
    made(tmp_path / "wheels", "torchvision", "0.29.2+cpu")
    (tmp_path / "list.txt").write_text(
        "torch==2.15.0 \\\n    --hash=sha256:01\ntorchvision==0.29.2 \\\n    --hash=sha256:02\n"
    )
    (tmp_path / "setup.py").write_text("from setuptools import setup\nsetup(name='own', py_modules=[])\n")
    subprocess.run([sys.executable, "-m", "venv", "--system-site-packages", str(tmp_path / ".venv")], check=True)
    environment = os.environ | {"TORCH_WHEELS": str(tmp_path / "wheels"), "PATH": "/usr/bin:/bin"}
    environment |= {"PIP_NO_INDEX": "1", "UV_OFFLINE": "1"}
    command = ["sh", str(SETUP), sys.executable, ".venv", "list.txt", "cpu"]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
    installed = {path.name for path in (tmp_path / ".venv").glob("lib/python*/site-packages/torch*.dist-info")}
    assert installed == {"torch-2.15.0+cpu.dist-info", "torchvision-0.29.2+cpu.dist-info"}, done.stderr


def made(folder, name, version):
    """A wheel of nothing."""
    folder.mkdir(exist_ok=True)
    info, tag = f"{name}-{version}.dist-info", "py3-none-any"
    with zipfile.ZipFile(folder / f"{name}-{version}-{tag}.whl", "w") as wheel:
        wheel.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
        wheel.writestr(f"{info}/WHEEL", f"Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: {tag}\n")
        wheel.writestr(f"{info}/RECORD", "")


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
