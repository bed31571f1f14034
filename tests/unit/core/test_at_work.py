"""Who is at work in a folder."""

import subprocess
import sys
from types import SimpleNamespace

from dpstudy.core import at_work
from dpstudy.core.at_work import here, slurm_jobs


def test_processes_are_told_by_their_folder_their_program_and_an_argument(tmp_path, monkeypatch):
    (tmp_path / "snakemake").write_text("import sys\nprint(flush=True)\nsys.stdin.read()\n")
    command = [sys.executable, str(tmp_path / "snakemake"), "--cores"]
    with subprocess.Popen(command, cwd=tmp_path, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as snakemake:
        snakemake.stdout.readline()
        (tmp_path / "link").symlink_to(tmp_path)
        assert [process.pid for process in here("snakemake", folder=tmp_path / "link")] == [snakemake.pid]
        assert here("python", "--cores", tmp_path) and not here("python", "--jobs", tmp_path)
        assert not here("snakemake")
        monkeypatch.chdir(tmp_path)
        assert here("snakemake")
        snakemake.stdin.close()


def test_jobs_of_other_folders_are_not_waited_for(tmp_path, monkeypatch):
    text = f"7|{tmp_path}|None\n8|{tmp_path / 'other'}|None\n9|{tmp_path}|Dependency\n"  # 9 waits for the end of 7
    monkeypatch.setattr(at_work.subprocess, "run", lambda *_, **__: SimpleNamespace(stdout=text))
    assert slurm_jobs(tmp_path) == ["7"]

    def absent(*_args, **_options):
        raise FileNotFoundError

    monkeypatch.setattr(at_work.subprocess, "run", absent)
    assert slurm_jobs(tmp_path) is None
