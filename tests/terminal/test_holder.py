"""Who is named where a folder is in use: a process that can be stopped."""

import os
import socket
import subprocess
import sys

import run


def test_the_snakemake_that_outlived_its_run_is_named(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "snakemake").write_text("import sys\nprint(flush=True)\nsys.stdin.read()\n")
    note = tmp_path / run.RUN
    note.parent.mkdir()
    command = [sys.executable, str(tmp_path / "snakemake")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as snakemake:
        snakemake.stdout.readline()
        dead = subprocess.Popen([sys.executable, "-c", ""])
        dead.wait()
        note.write_text(f"{socket.gethostname()} {dead.pid} \n")
        assert run.holder() == f"process {snakemake.pid}"
        note.write_text(f"{socket.gethostname()} {os.getpid()} \n")
        assert run.holder() == f"process {os.getpid()}"
        note.write_text("elsewhere 7 \n")
        assert run.holder() == "process 7 on the machine 'elsewhere'"
        note.write_text("")
        assert run.holder() == "another run"
        snakemake.stdin.close()
