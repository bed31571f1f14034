"""verify.py of a bundle: what holds, what does not, and what it could not check, by Python's standard library alone."""

import ast
import json
import math
import re
import shutil
import subprocess
import sys
from dataclasses import replace

import pytest

from dpstudy.core.errors import StudyError
from dpstudy.core.files import read_json, read_tensor_metadata, read_tensors, sha256, write_json, write_tensors
from dpstudy.privacy.budget import Budget
from dpstudy.privacy.event_bounds import bounds
from dpstudy.privacy.events import Event
from dpstudy.privacy.ledger import build_ledger
from dpstudy.release import verify as module
from dpstudy.release.bundle import write_bundle
from dpstudy.release.predictor import Predictor
from dpstudy.release.verify import verify
from tests.unit.release.test_bundle import origin_of, train

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
    ledger = read_json(bundle / "ledger.json")
    worth = bounds(ledger["events"], ledger["delta"], None)[1]
    assert (
        status == 0
        and ledger["epsilon"] == pytest.approx(4, abs=5e-6)
        and worth == pytest.approx(4, rel=1e-6)
        and lines[:4]
        == [
            f"right: {len(listed)} files are as bundle.json lists them",
            f"right: ledger.json is of {NAME}, and of this model",
            "right: PRIVACY.md states the epsilon of ledger.json, 4.0",
            f"right: the events of ledger.json are worth ε = {module._up(worth)} by another accountant; it states 4.0",
        ]
    )
    assert len(lines) == 6 and all(line.startswith("could not check: that ") for line in lines[4:])
    assert lines[5].endswith(f" {sha256(bundle / 'bundle.json')}")
    imported = {name for node in ast.walk(ast.parse(open(module.__file__).read())) for name in names(node)}
    assert imported <= sys.stdlib_module_names
    for file, needed in (("event_bounds.py", set()), ("second_accountant.py", {"numpy"})):
        found = {name for node in ast.walk(ast.parse((bundle / file).read_text())) for name in names(node)}
        assert found <= sys.stdlib_module_names | needed


def names(node):
    if isinstance(node, ast.Import):
        return [alias.name.partition(".")[0] for alias in node.names]
    return [node.module.partition(".")[0]] if isinstance(node, ast.ImportFrom) else []


def test_what_was_changed_removed_or_added_is_named(bundle, tmp_path):
    (bundle / "requirements.txt").write_text("other\n")
    (bundle / "dpstudy/core/errors.py").unlink()
    (bundle / "numpy.py").write_text("")
    (bundle / "LICENSE").write_text("")
    (tmp_path / "secret").write_text("")
    (bundle / "audit.json").symlink_to(tmp_path / "secret")
    (bundle / "README.md").open("a").write("what it is for")
    status, lines = run(bundle)
    assert status == 1 and not [line for line in lines if line.startswith("right: ") and "files" in line]
    wrong = [line.removeprefix("WRONG: ") for line in lines if line.startswith("WRONG: ")]
    assert [line.partition(": ")[0] for line in wrong] == ["dpstudy/core/errors.py", "numpy.py", "requirements.txt"]
    assert "is missing" in wrong[0] and "Python may run it" in wrong[1] and "is not what was released" in wrong[2]
    added = [line for line in lines if "was added since" in line or "was written in since" in line]
    assert [line.split(": ")[1] for line in added] == ["LICENSE", "README.md", "audit.json"]


@pytest.mark.parametrize(("place", "told"), [("env", "env: is"), (".", "pyvenv.cfg, bin, lib: are")])
def test_an_environment_made_inside_is_one_line(bundle, place, told):
    for name in ("pyvenv.cfg", "bin/activate.py", "lib/python3.11/site-packages/numpy/__init__.py", "lib/numpy.so"):
        (bundle / place / name).parent.mkdir(parents=True, exist_ok=True)
        (bundle / place / name).write_text("")
    (bundle / place / "lib64").symlink_to("lib")
    (bundle / "numpy.py").write_text("")
    status, lines = run(bundle)
    wrong = [line for line in lines if line.startswith("WRONG: ")]
    assert status == 1 and len(wrong) == 2
    assert wrong[0].startswith(f"WRONG: {told} a virtual environment") and "outside this folder" in wrong[0]
    assert wrong[1].startswith("WRONG: numpy.py: ")
    assert not [line for line in lines if "env/" in line or "lib/" in line or "lib64" in line]


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


def test_a_card_may_be_written_in_but_not_state_another_epsilon(bundle):
    card = bundle / "README.md"
    text = card.read_text()
    assert " ε = 4." in text and "e^ε = 54.6" in text
    card.write_text(text + "For wards, with an epsilon of 4.0.\n")
    assert verify(bundle).wrong == []
    for old, new, stated in (
        (" ε = 4.", " ε = 0.1.", "0.1"),
        (" ε = 4.", " ε = 8. Or so", "8"),
        ("# toy", "An epsilon of 1e-3!\n\n# toy", "1e-3"),
    ):
        card.write_text(text.replace(old, new))
        for listed in (False, True):
            if listed:
                list_anew(bundle)
            (told,) = verify(bundle).wrong
            assert told.startswith(f"README.md: states ε = {stated}, where ledger.json has ")
        assert run(bundle)[0] == 1
        card.write_text(text)
        list_anew(bundle)


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


SAMPLED = Event("gradient", "gaussian", 1.1, 1.0, 500, "poisson", 4096 / 50_000)
CUT = Event("gradient", "gaussian", 1.1, 1.0, 500, "truncated-poisson", 0.02, largest=1300, units=50_000)
OFTEN_CUT = Event("gradient", "gaussian", 1.1, 1.0, 500, "truncated-poisson", 0.02, largest=1010, units=50_000)
SECRET = Event("gradient", "iterated-gaussian", 5.0, 1.0, 1000, "shuffle", 0.02, epochs=20, secret_order=True)
CHOSEN = [
    Event("gram", "gaussian", 7.0, 1.0, part="train"),
    Event("choice", "exponential", 2.0, 1.0, part="validation"),
]


def with_ledger(bundle, events, factor=1.0, **changes):
    """A bundle whose ledger, statement and card are of these events, with epsilon times a factor; listed anew."""
    ledger = build_ledger(events, Budget("4", 1e-5), n=1000, unit="record", noise="secure")
    ledger |= {key: read_json(bundle / "ledger.json")[key] for key in ("cell", "files")} | changes
    stated = ledger["epsilon"] = ledger["epsilon"] * factor
    write_json(bundle / "ledger.json", ledger)
    for name in ("PRIVACY.md", "README.md"):
        text = (bundle / name).read_text()
        (bundle / name).write_text(re.sub(r" ε = [0-9.]+\.\n", f" ε = {math.ceil(stated * 1e6) / 1e6:.6f}.\n", text))
    list_anew(bundle)
    return ledger


@pytest.mark.parametrize("events", [[SAMPLED], [CUT], [SECRET], CHOSEN], ids=["sampled", "cut", "secret", "chosen"])
def test_an_epsilon_that_is_too_small_for_its_events_falls_everywhere_else(bundle, tmp_path, events):
    """The list, the statement and the hashes agree with it."""
    right = shutil.copytree(bundle, tmp_path / "right")
    with_ledger(right, events)
    report = verify(right)
    assert report.wrong == [] and any("by another accountant; it states" in told for told in report.right)
    assert not list(right.glob("__pycache__"))
    ledger = with_ledger(bundle, events, 0.998)
    (told,) = verify(bundle).wrong
    assert told.startswith(f"ledger.json: states ε = {ledger['epsilon']}, where its events are worth ")


def test_more_noise_than_there_was_does_not_pass_either(bundle):
    ledger = read_json(bundle / "ledger.json")
    ledger["events"].append(ledger["events"][0] | {"name": "more"})
    write_json(bundle / "ledger.json", ledger)
    list_anew(bundle)
    (told,) = verify(bundle).wrong
    assert "where its events are worth" in told
    ledger["events"][-1]["noise_multiplier"] = 0.0
    write_json(bundle / "ledger.json", ledger)
    list_anew(bundle)
    (told,) = verify(bundle).wrong
    assert "where its events are worth inf" in told


def test_what_the_accountant_of_a_bundle_does_not_know_it_could_not_check(bundle):
    def told(events, factor=1.0, **changes):
        with_ledger(bundle, events, factor, **changes)
        report = verify(bundle)
        assert report.wrong == []
        return [sentence for sentence in report.unknown if "follows from its events" in sentence]

    assert "repeat-and-select is not known" in told([replace(SAMPLED, trials=5.0)])[0]
    assert "replacing a unit" in told([SAMPLED], adjacency="replace-one")[0]
    assert "between 0.0 and inf" in told([OFTEN_CUT])[0]
    with_ledger(bundle, [SAMPLED])
    assert any("for which NumPy is needed" in line for line in run(bundle)[1])
    assert run(bundle)[0] == 0


def test_an_accountant_that_was_changed_is_not_run(bundle, tmp_path):
    ran = tmp_path / "ran"
    (bundle / "event_bounds.py").open("a").write(f"open({str(ran)!r}, 'w')\n")
    (told,) = verify(bundle).wrong
    assert told.startswith("event_bounds.py: is not what was released") and not ran.exists()


def test_events_that_are_none_are_a_sentence(bundle):
    ledger = read_json(bundle / "ledger.json")
    for events in (3, [3], [{}], [ledger["events"][0] | {"noise_multiplier": "x"}], None):
        write_json(bundle / "ledger.json", ledger | {"events": events})
        list_anew(bundle)
        (told,) = verify(bundle).wrong
        assert told.startswith("ledger.json: its events are not what dpstudy writes")
