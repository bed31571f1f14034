"""`dpstudy run`, `status` and `release`: run the workflow of this cloned repository in any folder."""

import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from dpstudy.config.including import read_alone
from dpstudy.core.errors import StudyError
from dpstudy.provenance.code import WORKFLOW

_PROGRAMS = {"run": "run.py", "release": "run.py", "status": "status.py"}


def run(
    name: str, study: str | None, folder: str | None, only: Sequence[str], targets: Sequence[str], more: Sequence[str]
) -> int:
    """Run one of the workflow's programs; the exit status.

    Args:
        name: of a command, as above.
        study: path of a config, from here; None: the folder's config.yaml, else the clone's.
        folder: where results are made; a run makes it where it is missing. None: here.
        only: tables and figures.
        targets: files to make; none: all of the study.
        more: options of Snakemake's.

    Raises:
        StudyError: no clone; no such study.
    """
    repository = clone()
    target = Path(folder or ".").resolve()
    if study is not None:
        read_alone(Path(study))
    if target.exists() and not target.is_dir():
        raise StudyError(f"{folder}: is a file; name a folder, which may be a new one (--in DIR, make's IN=DIR)")
    made = next((path for path in (*reversed(target.parents), target) if not path.exists()), None)
    target.mkdir(parents=True, exist_ok=True)
    arguments = list(targets)
    if target != repository:
        arguments += ["--snakefile", str(repository / "Snakefile")]
    config = Path(study).resolve() if study is not None else _config(target, repository)
    arguments += ["--configfile", str(config)] if config else []
    arguments += ["--config", f"only=[{','.join(only)}]"] if only else []
    program = [sys.executable, str(WORKFLOW / _PROGRAMS[name]), *arguments, *more]
    status = 1
    try:
        status = subprocess.call(program, cwd=target)
        return status
    except KeyboardInterrupt:  # the program received the interrupt too
        return 130
    finally:
        # Status leaves no files behind; nor does a study with a mistake, of which only Snakemake's own are there.
        if made and (name == "status" or (status and {path.name for path in target.iterdir()} <= {".snakemake"})):
            shutil.rmtree(made, ignore_errors=True)
        elif target != Path.cwd():
            print(f"(paths above count from {folder})", file=sys.stderr)


def clone() -> Path:
    """The root folder of the repository that this library is part of.

    Raises:
        StudyError: it lies in none.
    """
    if not (WORKFLOW.parent / "Snakefile").is_file():
        raise StudyError(
            f"the workflow is not here: this is an installed library ({WORKFLOW}); clone the repository and run "
            "`pip install -e '.[workflow]'` or `make study` in it"
        )
    return WORKFLOW.parent


def _config(target: Path, repository: Path) -> Path | None:
    """The study where none is named; None: Snakemake finds it."""
    if target == repository:
        return None
    config = target / "config.yaml"
    return config if config.is_file() else repository / "config.yaml"
