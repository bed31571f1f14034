"""Two clones and one environment: a study runs on the library of its own clone, whose hashes it bears, or not."""

import ast
import shutil
import subprocess
import sys

import pytest

from dpstudy.provenance.code import WORKFLOW
from tests.workflow.conftest import ROOT, SNAKEMAKE, TINY, StudyFolder, copy_code, make_folder

ONE_CELL = TINY | {
    "public": {},
    "backbones": {},
    "features": {"pixels": TINY["features"]["pixels"]},
    "methods": {"ls": TINY["methods"]["ls"]},
    "epsilons": ["1"],
    "seeds": [0],
}
CELL = "results/cells/digits/pixels/ls/eps=1"
RAISES = "\n\ndef fit(*_):\n    raise RuntimeError('the method of this clone')\n"
IN_JOBS = "any('.snakemake/scripts' in argument for argument in sys.orig_argv)"


@pytest.fixture
def clone(tmp_path) -> StudyFolder:
    """The clone in which the study runs."""
    folder = make_folder(tmp_path / "clone")
    folder.write_config(ONE_CELL)
    return folder


def run(folder, other, start, command=(SNAKEMAKE, "--cores", "2"), cwd=None):
    """Run a command in an environment of another clone, which starts Python with the lines `start`."""
    other.mkdir(exist_ok=True)
    (other / "sitecustomize.py").write_text(f"import sys\n{start}\n")
    environment = folder.environment | {"PYTHONPATH": str(other)}
    return subprocess.run(command, cwd=cwd or folder.path, env=environment, capture_output=True, text=True, timeout=300)


def another(tmp_path, line="") -> str:
    """Make another clone, its library a line longer; returns the line of Python that puts it before all others."""
    copy_code(ROOT / "workflow", tmp_path / "another")
    with open(tmp_path / "another" / "dpstudy" / "__init__.py", "a") as file:
        file.write(line)
    return f"sys.path.insert(0, {str(tmp_path / 'another')!r})"


def test_every_job_of_a_study_in_a_folder_elsewhere_runs_on_the_library_of_its_clone(clone, tmp_path):
    """From the data to the page: no job imports the other library, which would stop it."""
    mine = tmp_path / "mine"
    mine.mkdir()
    shutil.rmtree(clone.path / ".snakemake")  # nothing is to come of it
    (clone.path / "config.yaml").rename(mine / "config.yaml")
    library = clone.path / "workflow" / "dpstudy" / "__init__.py"
    library.write_text(library.read_text().replace('__version__ = "', '__version__ = "of this clone, '))
    start = another(tmp_path, "raise RuntimeError('the library of another clone')")
    command = [SNAKEMAKE, "--snakefile", "clone/Snakefile", "--directory", "mine", "--cores", "2"]
    done = run(clone, tmp_path / "site", start, command, cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert '"dpstudy": "of this clone, ' in (mine / CELL / "run.json").read_text()
    assert (mine / "results/report/index.html").is_file() and (mine / "results/tables/tiny.tex").is_file()
    assert f"{clone.path}/workflow/dpstudy/report/templates/report.html.j2" in done.stderr
    assert not (clone.path / "results").exists() and not (clone.path / ".snakemake").exists()
    done = run(clone, tmp_path / "site", start, [*command, "results/tables/all.tex", "all"], cwd=tmp_path)
    assert done.returncode == 0 and "1 of 1 steps (100%) done" in done.stderr, done.stdout + done.stderr
    (mine / "config.yaml").unlink()
    done = run(clone, tmp_path / "site", start, command, cwd=tmp_path)
    assert done.returncode == 1 and f"full checked path: {mine}/config.yaml" in done.stderr


def test_a_method_that_raises_in_this_clone_raises_whatever_another_would_do(clone, tmp_path):
    with open(clone.path / "workflow/dpstudy/methods/least_squares.py", "a") as file:
        file.write(RAISES)
    done = run(clone, tmp_path / "site", another(tmp_path))
    assert done.returncode == 1 and "RuntimeError: the method of this clone" in done.stderr, done.stderr
    assert not (clone.path / CELL).exists()


def test_a_job_in_which_another_library_is_loaded_already_says_so_and_makes_nothing(clone, tmp_path):
    start = f"if {IN_JOBS}:\n    {another(tmp_path)}\n    import dpstudy"
    done = run(clone, tmp_path / "site", start, [sys.executable, "workflow/run.py", "--cores", "1"])
    own = clone.path / "workflow" / "dpstudy"
    sentence = (
        f"dpstudy: {tmp_path}/another/dpstudy is what Python imports as dpstudy, and not this workflow's own {own}:"
    )
    assert done.returncode == 1 and "Traceback" not in done.stderr
    assert done.stderr.count(sentence) == 1 and "without a word" not in done.stderr
    assert not list((clone.path / "results").rglob("*.parquet"))


def test_a_workflow_in_which_another_library_is_loaded_already_says_so_and_runs_nothing(clone, tmp_path):
    done = run(clone, tmp_path / "site", f"{another(tmp_path)}\nimport dpstudy")
    assert done.returncode == 1 and "Traceback" not in done.stderr
    assert f"nothing was run: {tmp_path}/another/dpstudy is what Python imports as dpstudy" in done.stderr
    assert not (clone.path / "results").exists()


def test_every_script_looks_for_the_library_of_its_workflow_before_it_imports_anything_else():
    scripts = {path for path in WORKFLOW.rglob("scripts/**/*.py") if path.name != "this_workflow.py"}
    first = {}
    for script in scripts:
        imports = [
            one for one in ast.walk(ast.parse(script.read_bytes())) if isinstance(one, ast.Import | ast.ImportFrom)
        ]
        names = [getattr(one, "module", None) or one.names[0].name for one in imports]
        first[script] = next(name for name in names if name.split(".")[0] not in sys.stdlib_module_names)
    assert len(scripts) >= 31 and {path for path, name in first.items() if name != "this_workflow"} == set()


def test_no_rule_runs_anything_but_such_a_script():
    for path in (ROOT / "Snakefile", *sorted(WORKFLOW.glob("rules/*.smk"))):
        words = [line.strip() for line in path.read_text().splitlines()]
        assert not {"shell:", "run:", "notebook:", "wrapper:", "template_engine:", "cwl:"} & set(words), path
        scripts = [words[i + 1].strip('"') for i, word in enumerate(words) if word == "script:"]
        assert all((path.parent / script).resolve().parent == WORKFLOW / "scripts" for script in scripts)
