"""What `dpstudy wipe` removes, and what it leaves."""

import fcntl
import subprocess
import sys

import pytest

from dpstudy.command import wiping
from dpstudy.command.main import main
from dpstudy.core.errors import StudyError

KEPT = ["results/privacy/spent.jsonl", "results/privacy/total.json", "results/release/own/x/ls/eps=2/model.safetensors"]
GONE = [
    "results/data/own/train/part-00000.parquet", "results/cells/own/x/ls/eps=2/scores.parquet", "results/summary.csv",
    "results/privacy/paid/cells/a/scores.parquet", "results/privacy/certificates/own.json", "results/report/index.html",
    "results/privacy/.spent.jsonl.lock", ".snakemake/log/a.log", ".snakemake/dpstudy-run", "results/tables/x.csv",
]  # fmt: skip
BESIDE = ["data/xrays/1.png", "data/dpstudy-spent.jsonl", "mine.yaml"]


@pytest.fixture
def folder(tmp_path):
    for name in (*KEPT, *GONE, *BESIDE):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("x")
    return tmp_path


def files(folder):
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if not path.is_dir())


def answering(monkeypatch, answer):
    monkeypatch.setattr(wiping, "ask_on_terminal", lambda question: answer)


def test_all_but_what_may_be_published_and_the_books_is_removed(folder, monkeypatch, capsys):
    answering(monkeypatch, "yes\n")
    assert main(["wipe", "--in", str(folder)]) == 0
    assert files(folder) == sorted([*KEPT, *BESIDE])
    said = capsys.readouterr().out
    for words in (
        "results/data  the images",
        "privacy/paid",
        "results/tables  statistics of test records",
        "stays: ",
        "spent.jsonl",
    ):
        assert words in said
    assert main(["wipe", "--in", str(folder)]) == 1
    assert "results: nothing is left of private records" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        ("n\n", "nothing was removed"),
        (None, "nobody is here to say yes; `dpstudy wipe --in {folder} --yes` (make wipe IN"),
    ],
)
def test_without_a_yes_nothing_is(folder, monkeypatch, capsys, answer, words):
    before = files(folder)
    answering(monkeypatch, answer)
    assert main(["wipe", "--in", str(folder)]) == 1 and files(folder) == before
    assert words.format(folder=folder) in capsys.readouterr().err
    monkeypatch.setattr(wiping, "ask_on_terminal", lambda question: pytest.fail(question))
    assert main(["wipe", "--in", str(folder), "--yes"]) == 0


def test_not_while_a_run_is_under_way(folder, capsys):
    with open(folder / ".snakemake/dpstudy-run", "w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        before = files(folder)
        assert main(["wipe", "--in", str(folder), "--yes"]) == 1 and files(folder) == before
    assert "a run is under way there" in capsys.readouterr().err


@pytest.mark.parametrize("program", ["snakemake", ".snakemake/scripts/tmp1.train_cell.py"])
def test_nor_while_snakemake_or_a_job_is_at_work(folder, capsys, program):
    """Of plain Snakemake nobody holds the lock of workflow/run.py; a job may outlive either."""
    (folder / program).parent.mkdir(exist_ok=True)
    (folder / program).write_text("print(flush=True)\nimport sys\nsys.stdin.read()\n")
    command = [sys.executable, str(folder / program)]
    with subprocess.Popen(command, cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        process.stdout.readline()
        before = files(folder)
        assert main(["wipe", "--in", str(folder), "--yes"]) == 1 and files(folder) == before
        process.stdin.close()
    assert f"Snakemake or its jobs are at work there (process {process.pid}); wait" in capsys.readouterr().err
    assert main(["wipe", "--in", str(folder), "--yes"]) == 0


def test_nor_while_snakemakes_lock_or_jobs_in_a_queue_are_there(folder, capsys, monkeypatch):
    (folder / ".snakemake/locks").mkdir()
    (folder / ".snakemake/locks/0.input.lock").write_text("")
    before = files(folder)
    assert main(["wipe", "--in", str(folder), "--yes"]) == 1 and files(folder) == before
    told = capsys.readouterr().err
    assert "Snakemake has locked it" in told and told.endswith(f"remove {folder / '.snakemake/locks'}\n")
    monkeypatch.setattr(wiping, "slurm_jobs", lambda place: ["7"])
    assert main(["wipe", "--in", str(folder), "--yes"]) == 1 and files(folder) == before
    assert "jobs of a run are in SLURM's queue (7); wait for them, or scancel them" in capsys.readouterr().err


def test_what_a_link_leads_to_stays(folder, tmp_path_factory):
    other = tmp_path_factory.mktemp("other")
    (other / "a").write_text("x")
    (folder / "results/features").symlink_to(other)
    assert main(["wipe", "--in", str(folder), "--yes"]) == 0
    assert (other / "a").exists() and not (folder / "results/features").is_symlink()


def test_a_folder_that_is_not_there_is_no_folder_without_private_records(tmp_path):
    with pytest.raises(StudyError, match="thurd: no such folder; name the one that the study was run in"):
        wiping.wipe(str(tmp_path / "thurd"), yes=True)


def test_what_no_study_makes_is_somebodys_and_stays(folder, capsys):
    (folder / "results/thesis.docx").write_text("mine")
    (folder / "results/notes/more").mkdir(parents=True)
    assert main(["wipe", "--in", str(folder), "--yes"]) == 0
    assert (folder / "results/thesis.docx").exists() and (folder / "results/notes/more").exists()
    assert "stays: " + str(folder / "results/thesis.docx") + ", which no study makes" in capsys.readouterr().out
    other = folder / "other"
    (other / "results/tables").mkdir(parents=True)  # as another workflow's, too
    (other / "results/thesis.docx").write_text("mine")
    assert main(["wipe", "--in", str(other), "--yes"]) == 1 and (other / "results/tables").exists()
    assert "nothing is left of private records" in capsys.readouterr().err


@pytest.mark.parametrize(
    "name",
    [
        "results/privacy/paid/cells/a/b/ls/eps=2/seed=0/x/scores.parquet",
        "results/data/own/train/manifest.json",
        "results/features/own/x/train/manifest.json",
        "results/cells/own/x/ls/eps=2/scores.parquet",
        "results/runs/own/x/net/eps=2/seed=0/scores.parquet",
        "results/private/statistics/own/x/train/clip=1/gram.safetensors",
        "results/records/a",
    ],
)
def test_whatever_an_owner_left_of_a_study_is_found(tmp_path, name):
    """They removed .snakemake and some of results by hand."""
    (tmp_path / name).parent.mkdir(parents=True)
    (tmp_path / name).write_text("x")
    assert main(["wipe", "--in", str(tmp_path), "--yes"]) == 0
    assert not (tmp_path / "results").exists()


def test_where_nothing_tells_of_a_study_it_is_not_said_that_tables_are_nobodys(tmp_path, capsys):
    (tmp_path / "results/tables").mkdir(parents=True)
    assert main(["wipe", "--in", str(tmp_path), "--yes"]) == 1 and (tmp_path / "results/tables").exists()
    assert "no study was run there, unless one whose other files were removed made tables: remove" in (
        capsys.readouterr().err
    )
