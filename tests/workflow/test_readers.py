"""What a whole run with secure noise writes, anywhere, is its owner's to read alone, whatever the umask is."""

import subprocess
import sys

import pytest

from tests.workflow.clinic import CONFIG, write_clinic
from tests.workflow.conftest import make_folder
from tests.workflow.readers import Watched

CELL = "clinic/pixels/least-squares/eps=2"
SHOWN = {"tables": {"t": {"dataset": "clinic"}}, "figures": {"f": {"dataset": "clinic"}}}
PROGRAMS = [
    ["workflow/status.py"],
    ["workflow/run.py", "--cores", "2"],
    ["workflow/status.py"],
    ["workflow/run.py", "--cores", "2", f"results/release/{CELL}"],
]


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    top = tmp_path_factory.mktemp("readers")
    write_clinic(make_folder(top / "study").path / "data" / "clinic")
    study = Watched(top)
    study.write_config(CONFIG | SHOWN)
    with study:
        for program in PROGRAMS:
            done = subprocess.run(
                [sys.executable, *program], cwd=study.path, env=study.environment, capture_output=True, text=True
            )
            assert done.returncode == 0, done.stdout + done.stderr
    return study


def test_nothing_that_a_run_writes_is_open_to_others(run):
    assert run.open_to_others() == []
    assert run.made()["study/results"] & 0o777 == 0o700 == (run.path / ".snakemake").stat().st_mode & 0o777


def test_every_kind_of_file_was_seen(run):
    """Else nothing would be said of it: logs, benchmarks, scripts, what lies in the folder for temporary files."""
    made = run.made()
    for part in (
        *("results/logs/", "results/benchmarks/", "results/cells/", "results/data/", "results/privacy/spent.jsonl"),
        *("results/report/index.html", "results/tables/t.tex", "results/figures/f.pdf", f"results/release/{CELL}/"),
        *(".snakemake/log/", ".snakemake/scripts", ".snakemake/locks", "dpstudy-run"),
    ):
        assert any(path.startswith(f"study/{part}") or path.endswith(part) for path in made), part
    assert any(path.startswith("tmp/") for path in made)
