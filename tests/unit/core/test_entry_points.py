"""Methods of other packages are found by their entry points."""

from dpstudy.core import entry_points as module
from dpstudy.core.entry_points import entry_points, name_module


def test_packages_that_are_installed_and_modules_that_were_named_are_both_found(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "_named", [])
    before = {entry.name for entry in entry_points()}
    (tmp_path / "brought-1.dist-info").mkdir()
    (tmp_path / "brought-1.dist-info/METADATA").write_text("Metadata-Version: 2.1\nName: brought\nVersion: 1\n")
    (tmp_path / "brought-1.dist-info/entry_points.txt").write_text("[dpstudy.methods]\nbrought = math\n")
    monkeypatch.syspath_prepend(tmp_path)
    name_module("named", "json")
    found = {entry.name: entry.load().__name__ for entry in entry_points() if entry.name not in before}
    assert found == {"brought": "math", "named": "json"}
