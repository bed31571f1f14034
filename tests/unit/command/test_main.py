"""The command line: every command has help with an example that it understands, and mistakes are one line."""

import re
import shlex

import pytest

from dpstudy.command import main as command
from dpstudy.command.main import main
from dpstudy.release.predictor import options

NAMES = ["epsilon", "predict", "inspect", "verify", "check-method", "run", "status", "release"]
NAMES += ["plan", "rehearse", "wipe", "record", "curves", "evidence", "schemas", "leaderboard", "compare"]


def test_these_are_all():
    assert re.findall(r"^    (\S+)", command._parser().format_help(), re.MULTILINE) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_each_has_an_example_that_it_understands(name, capsys):
    with pytest.raises(SystemExit) as done:
        main([name, "--help"])
    assert done.value.code == 0
    example = re.search(r"example: dpstudy ([^;]+?)(?:;|$)", capsys.readouterr().out.replace("\n", " "))[1]
    assert command._parser().parse_args(shlex.split(example.partition(" > ")[0])).command == name


@pytest.mark.parametrize(
    ("line", "status", "words"),
    [
        ("epsilon --noise 1 --delta 1e-5 --stepps 3", 2, "dpstudy: unrecognized arguments: --stepps 3"),
        ("run --corse 2", 2, "dpstudy: unrecognized arguments: --corse"),
        ("epsilon --noise 1", 2, "required: --delta"),
        ("epsilon --noise 1 --epsilon 2 --delta 1e-5", 2, "not allowed with argument"),
        ("inspect nowhere", 1, "dpstudy: nowhere: no such folder or file"),
        ("verify nowhere", 1, "dpstudy: nowhere: no bundle: it has no bundle.json"),
        ("predict nowhere a.png", 1, "dpstudy: nowhere: no bundle: it has no bundle.json"),
        ("run nowhere.yaml", 1, "dpstudy: nowhere.yaml: no such file; a study is a YAML file"),
        ("compare nowhere elsewhere", 2, "dpstudy compare: nowhere"),
        ("record nowhere.yaml --kind full", 1, "dpstudy: nowhere.yaml: no such file; a study is a YAML file"),
        ("record --kind whole", 1, "dpstudy: say what kind of numbers these are"),
        ("check-method none-of-that-name", 1, "none-of-that-name"),
        ("", 2, "the following arguments are required: COMMAND"),
    ],
)
def test_mistakes_are_one_line(line, status, words, capsys):
    try:
        found = main(line.split())
    except SystemExit as done:
        found = done.code
    told = capsys.readouterr()
    said = told.err or told.out
    assert found == status and words in said and said.count("\n") == 1 and "Traceback" not in said


def test_predict_takes_all_that_a_bundles_program_takes(monkeypatch, tmp_path):
    calls = []
    monkeypatch.setattr("dpstudy.release.predictor.main", lambda folder, given: calls.append(given) or 0)
    (tmp_path / "bundle.json").write_text("{}")
    known = [action.option_strings[-1] for action in options()._actions if action.option_strings]
    asked = [f"{name}={'a=0.5' if name == '--prevalence' else 1}" for name in known if name != "--help"]
    assert len(asked) == 3 and main(["predict", str(tmp_path), *asked, "x.png"]) == 0
    (given,) = calls
    assert options().parse_args(given) == options().parse_args([*asked, "x.png"])


def test_epsilon_prints(capsys):
    assert main(["epsilon", "--noise", "4", "--delta", "1e-5"]) == 0
    assert "certified: ε = 0.9264 at δ = 1e-5" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("line", "given"),
    [
        ("run", [None, None, [], [], ["--cores", "all"]]),
        ("run a.yaml --in b --only c --only d --cores 2", ["a.yaml", "b", ["c", "d"], [], ["--cores", "2"]]),
        (
            "run --cores 2 --target e -- --retries 3 -n",
            [None, None, [], ["e"], ["--cores", "2", "--retries", "3", "-n"]],
        ),
        ("status a.yaml -- -n", ["a.yaml", None, [], [], ["-n"]]),
        ("release a/b/c/eps=1 f.yaml", ["f.yaml", None, [], ["results/release/a/b/c/eps=1"], ["--cores", "all"]]),
    ],
)
def test_the_workflow_is_given_what_was_asked(line, given, monkeypatch):
    calls = []
    monkeypatch.setattr("dpstudy.command.workflow.run", lambda *arguments: calls.append(arguments) or 1)
    assert main(line.split()) == 1
    assert calls == [(line.split()[0], *given)]
