"""Bundles of one kind load the same packages: each kind is tried once, in a process of its own."""

import json

import pytest

from dpstudy.models.kinds import kind_of
from dpstudy.release import packages

_found: dict[str, tuple] = {}
_tried = packages._loaded


@pytest.fixture(autouse=True)
def each_kind_is_tried_once(monkeypatch):
    def loaded(folder, hidden):
        facts = json.loads((folder / "bundle.json").read_text())
        made = [kind_of(folder / "model.safetensors"), hidden, facts["image"], facts["features"]]
        key = json.dumps(made, sort_keys=True)
        if key not in _found or _found[key][0] is None:
            _found[key] = _tried(folder, hidden)
        return _found[key]

    monkeypatch.setattr(packages, "_loaded", loaded)
