"""verify.py of a bundle: what holds, what does not, and what it could not check, by Python's standard library alone."""

import ast
import json
import shutil
import subprocess
import sys

import pytest

from dpstudy.errors import StudyError
from dpstudy.files import read_json, read_tensor_metadata, read_tensors, sha256, write_json, write_tensors
from dpstudy.release import verify as module
from dpstudy.release.bundle import write_bundle
from dpstudy.release.predictor import Predictor
from dpstudy.release.verify import verify
from tests.release.test_bundle import origin_of, train

NAME = "toy/pixels/entry/eps=4"


@pytest.fixture(scope="module")
def released(tmp_path_factory):
    cell = train(tmp_path_factory.mktemp("cell"), {"method": "least_squares"}, 1)
    folder = tmp_path_factory.mktemp("released") / "bundle"
    write_bundle(NAME, origin_of(cell), [], str(folder))
    return folder


@pytest.fixture
def bundle(released, tmp_path):
    return shutil.copytree(released, tmp_path / "bundle")


def run(bundle):
    done = subprocess.run([sys.executable, "-I", "-S", bundle / "verify.py"], capture_output=True, text=True)
    assert done.stderr == ""
    return done.returncode, done.stdout.splitlines()


def list_anew(bundle):
    """As somebody does who changes a file and its entry in the list."""
    facts = read_json(bundle / "bundle.json")
    facts["files"] = {name: sha256(bundle / name) for name in facts["files"]}
    write_json(bundle / "bundle.json", facts)


def test_a_bundle_as_it_was_released_holds(bundle):
    status, lines = run(bundle)
    listed = read_json(bundle / "bundle.json")["files"]
    assert set(listed) == {
        path.relative_to(bundle).as_posix()
        for path in bundle.rglob("*")
        if path.is_file() and path.name != "bundle.json"
    }
    assert status == 0 and lines[:3] == [
        f"right: {len(listed)} files are as bundle.json lists them",
        f"right: ledger.json is of {NAME}, and of this model",
        "right: PRIVACY.md states the epsilon of ledger.json, 4.0",
    ]
    assert len(lines) == 5 and all(line.startswith("could not check: that ") for line in lines[3:])
    assert lines[4].endswith(f" {sha256(bundle / 'bundle.json')}")
    imported = {name for node in ast.walk(ast.parse(open(module.__file__).read())) for name in names(node)}
    assert imported <= sys.stdlib_module_names


def names(node):
    if isinstance(node, ast.Import):
        return [alias.name.partition(".")[0] for alias in node.names]
    return [node.module.partition(".")[0]] if isinstance(node, ast.ImportFrom) else []


def test_what_was_changed_removed_or_added_is_named(bundle, tmp_path):
    (bundle / "requirements.txt").write_text("other\n")
    (bundle / "dpstudy/errors.py").unlink()
    (bundle / "numpy.py").write_text("")
    (bundle / "LICENSE").write_text("")
    (tmp_path / "secret").write_text("")
    (bundle / "audit.json").symlink_to(tmp_path / "secret")
    (bundle / "README.md").open("a").write("what it is for")
    status, lines = run(bundle)
    assert status == 1 and not [line for line in lines if line.startswith("right: ") and "files" in line]
    wrong = [line.removeprefix("WRONG: ") for line in lines if line.startswith("WRONG: ")]
    assert [line.partition(": ")[0] for line in wrong] == ["dpstudy/errors.py", "numpy.py", "requirements.txt"]
    assert "is missing" in wrong[0] and "Python may run it" in wrong[1] and "is not what was released" in wrong[2]
    added = [line for line in lines if "was added since" in line or "was written in since" in line]
    assert [line.split(": ")[1] for line in added] == ["LICENSE", "README.md", "audit.json"]


def test_a_link_in_the_place_of_a_file_is_not_followed(bundle, tmp_path):
    shutil.move(bundle / "PRIVACY.md", tmp_path / "elsewhere")
    (bundle / "PRIVACY.md").symlink_to(tmp_path / "elsewhere")
    (told,) = verify(bundle).wrong
    assert told.startswith("PRIVACY.md: is not what was released (another SHA-256 than in bundle.json); ")


@pytest.mark.parametrize("what", ["epsilon", "model", "name", "guarantee"])
def test_a_list_that_was_changed_too_does_not_hide_what_contradicts_itself(bundle, what):
    ledger, facts = read_json(bundle / "ledger.json"), read_json(bundle / "bundle.json")
    if what == "epsilon":
        write_json(bundle / "ledger.json", ledger | {"epsilon": 5.0})
    elif what == "guarantee":
        write_json(bundle / "ledger.json", ledger | {"guarantee": "none", "epsilon": None})
    elif what == "model":
        model = bundle / "model.safetensors"
        other = {name: 2 * tensor for name, tensor in read_tensors(model).items()}
        write_tensors(model, other, read_tensor_metadata(model))
    else:
        write_json(bundle / "bundle.json", facts | {"name": "toy/pixels/entry/eps=1"})
    list_anew(bundle)
    (told,) = verify(bundle).wrong
    assert told.startswith(
        {
            "epsilon": "PRIVACY.md: states ε = 4.0, where ledger.json has 5.0; ",
            "guarantee": "ledger.json: proves no epsilon",
            "model": "model.safetensors: is not the model that ledger.json is of",
            "name": f"bundle.json: is of toy/pixels/entry/eps=1, where ledger.json and the model are of {NAME}; ",
        }[what]
    )
    assert run(bundle)[0] == 1
    if what == "model":
        with pytest.raises(StudyError, match=r"model\.safetensors: is not the model that ledger\.json is of"):
            Predictor(bundle)


def test_of_an_earlier_version_nothing_is_claimed(bundle):
    for name, keys in (("bundle.json", ["files"]), ("ledger.json", ["files", "cell"])):
        write_json(bundle / name, {key: value for key, value in read_json(bundle / name).items() if key not in keys})
    status, lines = run(bundle)
    assert status == 0 and [line for line in lines if line.startswith("right: ")] == [
        "right: PRIVACY.md states the epsilon of ledger.json, 4.0"
    ]
    assert "could not check: that ledger.json is of this model: an earlier version of dpstudy wrote it" in lines
    Predictor(bundle)


@pytest.mark.parametrize("name", ["bundle.json", "ledger.json"])
@pytest.mark.parametrize("content", ["{", "[]", "[" * 100_000, "9" * 5_000, '{"files": [1], "cell": 3}', None, "\xff"])
def test_a_document_that_is_none_is_a_sentence(bundle, name, content):
    (bundle / name).unlink()
    if content is not None:
        (bundle / name).write_bytes(content.encode("latin-1"))
    status, lines = run(bundle)
    assert status == 1 and "Traceback" not in "".join(lines)
    assert any(line.startswith((f"verify.py: {name}: ", f"WRONG: {name}: ")) for line in lines), lines


def test_numbers_of_a_ledger_that_are_none_are_a_sentence(bundle):
    text = (bundle / "ledger.json").read_text()
    for epsilon in ("NaN", "Infinity", "1e999", '"4"', "true", "[4]", str(10**400), str(-(10**400))):
        ledger = json.loads(text)
        changed = json.dumps(ledger | {"epsilon": "HERE"}).replace('"HERE"', epsilon)
        (bundle / "ledger.json").write_text(changed)
        list_anew(bundle)
        (told,) = verify(bundle).wrong
        assert told.startswith(("PRIVACY.md: states ε = 4.0, where ledger.json has ", "ledger.json: proves no epsilon"))
