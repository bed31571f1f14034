"""A study in a folder of its own: the real Snakefile, rules and library, on tiny data."""

import atexit
import compileall
import fcntl
import functools
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from subprocess import CompletedProcess

import pytest
import yaml

from tests.workflow.clinic import CONFIG, write_clinic
from tests.workflow.jobs import can_be_minded
from tests.workflow.snakemakes import Snakemakes

ROOT = Path(__file__).parents[2]
SNAKEMAKE = str(Path(sys.executable).with_name("snakemake"))
TINY = {
    "study": "tiny",
    "report": {"claims": ["anon_smoothing"]},
    "datasets": {"digits": {"reader": "digits", "splits": {"test": 0.2}, "shards": 2, "delta": "1e-4"}},
    "public": {
        "glyphs": {
            "reader": "glyphs",
            "count": 400,
            "splits": {"validation": 0.2},
            "plant": {"dataset": "digits", "count": 9},
        }
    },
    "dedup": {"method": "squares"},
    "backbones": {"cnn": {"architecture": "small_cnn", "public": "glyphs", "width": 8, "embedding": 16, "epochs": 1}},
    "features": {"pixels": {"extractor": "pixels"}, "cnn": {"extractor": "backbone", "backbone": "cnn"}},
    "methods": {
        "ls": {"method": "least_squares"},
        "sgd": {"method": "first_order", "learning_rate": 2.0, "clipping_norm": 1.0, "steps": 5, "curve_points": 2},
    },
    "epsilons": ["1", "inf"],
    "seeds": [0, 1],
    "tables": {"tiny": {"dataset": "digits"}},
    "figures": {"tiny": {"dataset": "digits"}},
}


@dataclass
class StudyFolder:
    """A copy of the workflow with a config, in which Snakemake runs."""

    path: Path

    def write_config(self, config: dict, name: str = "config.yaml") -> None:
        (self.path / name).write_text(yaml.safe_dump(config, sort_keys=False))

    @property
    def environment(self) -> dict[str, str]:
        """As where the environment is another clone's, whose library Python would find: the one that is tested here."""
        outside = {name: value for name, value in os.environ.items() if name != "DPSTUDY_DATA"}
        return outside | {"PYTHONPATH": str(ROOT / "workflow"), "OMP_NUM_THREADS": "1"}

    def snakemake(self, *arguments: str, timeout: float = 600) -> CompletedProcess:
        return _runs("in earnest").run(self.path, ("--cores", "2", *arguments), self.environment, timeout)

    def planned(self, *arguments: str) -> list[tuple[str, str]]:
        """(rule, first output) of every job that a dry run names, sorted; `all` left out."""
        done = _runs("dry").run(self.path, ("--cores", "2", *arguments, "--dry-run"), self.environment)
        assert done.returncode == 0, done.stdout + done.stderr
        pattern = r"^(?:local)?rule (\w+):\n(?:    input: .*\n)?    output: ([^,\n]+)"
        return sorted(re.findall(pattern, done.stdout + done.stderr, re.MULTILINE))

    def read(self, name: str) -> bytes:
        return (self.path / "results" / name).read_bytes()


@functools.cache
def _runs(kind: str) -> Snakemakes:
    """One process for dry runs, another for those in earnest."""
    made = Snakemakes(StudyFolder(ROOT).environment, jobs=kind == "in earnest" and can_be_minded())
    atexit.register(made.close)
    return made


@functools.cache
def _compile() -> None:
    """Of a machine that keeps processes from writing compiled files, each of a study's jobs would do this anew."""
    compileall.compile_dir(ROOT / "workflow", quiet=2)


@functools.cache
def _imports() -> str:
    """What the library's files import, as a first start of Snakemake finds it: each study of its own would anew."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "imports.json"
        find = "from dpstudy.provenance import code, imports; import sys; from pathlib import Path; "
        find += "imports.read_imports(Path(sys.argv[1])); code.closure(*sys.argv[2:])"
        files = (ROOT / "workflow").rglob("*.py")
        subprocess.run([sys.executable, "-c", find, path, *files], check=True, env=StudyFolder(ROOT).environment)
        return path.read_text()


def copy_code(source: Path, path: Path) -> None:
    """Compiled files too, whose times are kept, so that they hold; not those that another process writes just now."""
    shutil.copytree(source, path, ignore=shutil.ignore_patterns("*.pyc.*"))


def make_folder(path: Path) -> StudyFolder:
    _compile()
    path.mkdir(parents=True, exist_ok=True)
    shutil.copy(ROOT / "Snakefile", path)
    shutil.copytree(ROOT / "profiles", path / "profiles")
    shutil.copytree(ROOT / "envs", path / "envs")
    copy_code(ROOT / "workflow", path / "workflow")
    (path / ".snakemake").mkdir(mode=0o700)
    (path / ".snakemake/dpstudy-imports.json").write_text(_imports())
    folder = StudyFolder(path)
    folder.write_config(TINY)
    return folder


def copy_of(study: StudyFolder, path: Path) -> StudyFolder:
    """A copy of a study, metadata and times of files included."""
    shutil.copytree(study.path, path, symlinks=True, copy_function=shutil.copy2)
    return StudyFolder(path)


def made_once(
    factory: pytest.TempPathFactory, name: str, run: Callable[[StudyFolder], CompletedProcess]
) -> StudyFolder:
    """A study that `run` has run, made once for all processes that test; tests that change it work on a copy."""
    base = factory.getbasetemp()
    shared = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    path = shared / "finished" / name
    with open(shared / f"{name}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not path.exists():
            shutil.rmtree(shared / f"{name}.tmp", ignore_errors=True)
            folder = make_folder(shared / f"{name}.tmp")
            result = run(folder)
            assert result.returncode == 0, result.stdout + result.stderr
            path.parent.mkdir(exist_ok=True)
            folder.path.rename(path)
    return StudyFolder(path)


@pytest.fixture(scope="session")
def finished(tmp_path_factory) -> StudyFolder:
    """The tiny study."""
    return made_once(tmp_path_factory, "tiny", StudyFolder.snakemake)


@pytest.fixture
def study(finished, tmp_path) -> StudyFolder:
    """A copy of the finished tiny study, metadata and times of files included; its records are there twice."""
    shutil.copytree(finished.path, tmp_path / "study", copy_function=shutil.copy2)
    return StudyFolder(tmp_path / "study")


@pytest.fixture(scope="session")
def finished_clinic(tmp_path_factory) -> StudyFolder:
    """A clinic's study with secure noise, up to its table."""

    def run(study):
        write_clinic(study.path / "data" / "clinic")
        study.write_config(CONFIG | {"tables": {"tiny": {"dataset": "clinic"}}})
        return study.snakemake("results/tables/tiny.tex")

    return made_once(tmp_path_factory, "clinic", run)


@pytest.fixture
def empty(tmp_path):
    """A study that nobody has run."""
    return make_folder(tmp_path / "study")
