"""The processes that share a job run the library of the job."""

import json
import os
from pathlib import Path

from dpstudy.core import torchrun

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
    assert {Path((tmp_path / rank).read_text()).parents[1] for rank in "01"} == {Path(torchrun.__file__).parents[2]}


LISTING = """
import json, os, tempfile
from pathlib import Path
def main(task):
    made = {str(path): path.lstat().st_mode for path in Path(tempfile.gettempdir()).rglob("*")}
    Path(json.load(open(task))["folder"], os.environ["RANK"]).write_text(json.dumps(made))
"""


def test_what_lies_in_the_folder_for_temporary_files_is_open_to_its_owner_alone(tmp_path, monkeypatch):
    """A task names where private records lie. What torchrun itself makes there is seen too."""
    (tmp_path / "tmp").mkdir()
    (tmp_path / "listing.py").write_text(LISTING)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "tmp"))
    before = os.umask(0)
    try:
        torchrun.run("listing", {"folder": str(tmp_path)}, processes=1, threads=1)
    finally:
        os.umask(before)
    modes = json.loads((tmp_path / "0").read_text())
    assert any(path.endswith("task.json") for path in modes)
    tops = {path: mode for path, mode in modes.items() if Path(path).parent == tmp_path / "tmp"}
    assert tops and not [path for path, mode in tops.items() if mode & 0o077]
