"""The processes that share a job run the library of the job."""

from pathlib import Path

from dpstudy import torchrun

WORKER = """
import json, os, dpstudy
def main(task):
    content = json.load(open(task))
    open(f"{content['folder']}/{os.environ['RANK']}", "w").write(dpstudy.__file__)
"""


def test_processes_of_a_job_import_its_library_whatever_else_has_the_name(tmp_path, monkeypatch):
    """A folder of the name where the study runs, on PYTHONPATH, and one that a start-up file puts first of all."""
    for other in ("here", "path", "site"):
        (tmp_path / other / "dpstudy").mkdir(parents=True)
        (tmp_path / other / "dpstudy" / "__init__.py").write_text("raise RuntimeError('another library')")
    (tmp_path / "path" / "sitecustomize.py").write_text(f"import sys; sys.path.insert(0, {str(tmp_path / 'site')!r})")
    (tmp_path / "path" / "worker.py").write_text(WORKER)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "path"))
    monkeypatch.chdir(tmp_path / "here")
    torchrun.run("worker", {"folder": str(tmp_path)}, processes=2, threads=2)
    assert {Path((tmp_path / rank).read_text()).parents[1] for rank in "01"} == {Path(torchrun.__file__).parents[1]}
