"""What docs/add-a-*.md and docs/concepts.md say: a mechanism, an accountant, a reader, a hyper-parameter, a claim and a
swept study are added to a copy, each by one file, and work together there."""

import csv
import json
import re
import shutil
import subprocess

import pytest
import yaml

from dpstudy.core.files import read_json
from tests.workflow.conftest import ROOT, make_folder
from tests.workflow.test_worked_examples import blocks, python

MECHANISM = "workflow/dpstudy/privacy/laplace.py"
ACCOUNTANTS = "workflow/dpstudy/privacy/accountants.py"
READER = "workflow/dpstudy/data/readers/pixel_table.py"
METHOD = "workflow/dpstudy/methods/least_squares.py"
CLAIMS = "workflow/published/claims/tramer2021.yaml"
STUDY = "studies/swept.yaml"
WRITTEN = {  # by `make schemas`, of what modules declare
    READER: {"workflow/dpstudy/schemas/config.schema.yaml"},
    METHOD: {"docs/methods.md", "workflow/dpstudy/schemas/methods/least_squares.schema.yaml"},
}
ACCOUNTANT = '''class Added:
    """Pure DP adds up."""

    key = "added"

    def supports(self, events):
        return pure(events)

    def bounds(self, events, delta, known, complete):
        return {"sum of pure epsilons": sum(event.count / event.noise_multiplier for event in events)}


'''
SWEPT = {
    "study": "swept",
    "question": "What does a new hyper-parameter give?",
    "data_root": "data",
    "datasets": yaml.safe_load(next(c for n, _, c in blocks("add-a-data-set") if n == "studies/mine.yaml"))["datasets"],
    "features": {"pixels": {"extractor": "pixels", "normalise": "l2"}},
    "methods": {"ls-{trim}": {"method": "least_squares", "sweep": {"trim": [0.25, 0.5]}}},
    "epsilons": ["1"],
    "seeds": [0],
    "tables": {
        "trims": {
            "caption": "Trims",
            "dataset": "digit-tables",
            "rows": [{"features": "pixels", "entry": "ls-*", "label": "{trim}"}],
        },
        "claims": {
            "style": "claims",
            "paper": "tramer2021",
            "caption": "One claim",
            "sections": ["mine"],
            "counterparts": {"digit-tables": {"dataset": "MNIST"}},
            "roles": {
                "digit-tables": {
                    "linear": {"features": "pixels", "entry": "ls-0p25"},
                    "cnn": {"features": "pixels", "entry": "ls-0p5"},
                }
            },
        },
    },
}
ASKED = """if True:
    import json
    from dpstudy.privacy import laplace
    from dpstudy.privacy.accounting import certify
    found = certify([laplace.event(4.0, 2)] * 3, 1e-6)
    print(json.dumps([found.epsilon, found.epsilon_by]))
"""


def page(name):
    return (ROOT / "docs" / f"{name}.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def copy(tmp_path_factory):
    folder = make_folder(tmp_path_factory.mktemp("six") / "dpstudy")
    shutil.copytree(ROOT / "docs", folder.path / "docs")
    for command in (["init", "-q"], ["config", "user.name", "t"], ["config", "user.email", "t@t"]):
        git(folder, *command)
    return folder


def git(folder, *arguments):
    return subprocess.run(["git", *arguments], cwd=folder.path, check=True, capture_output=True, text=True).stdout


def added(folder, path, text, before=""):
    """Write a file anew, or text into one before a line that stands there once; which others `make schemas` changed."""
    git(folder, "add", "--all")
    git(folder, "commit", "-qm", "before", "--allow-empty")
    file = folder.path / path
    assert bool(before) == file.exists()
    if before:
        old = file.read_text(encoding="utf-8")
        assert old.count(before) == 1
        text = old.replace(before, text + before)
    file.parent.mkdir(exist_ok=True)
    file.write_text(text, encoding="utf-8")
    if path.endswith(".py"):  # they are made of what modules declare
        python(folder, "-m", "dpstudy", "schemas")
    changed = {line[3:] for line in git(folder, "status", "--porcelain", "--untracked-files=all").splitlines()}
    return {name for name in changed if not re.search(r"\.pyc$", name)} - {path}


def test_each_is_one_file_and_all_work_together(copy):
    laplace = (ROOT / "tests/scenarios/extension/laplace.py").read_text(encoding="utf-8")
    assert "tests/scenarios/extension/laplace.py" in page("add-a-method") and not added(copy, MECHANISM, laplace)
    epsilon, by = json.loads(python(copy, "-c", ASKED))
    assert epsilon == pytest.approx(1.5, rel=1e-4) and "added" not in by

    listed = "ACCOUNTANTS: list[Accountant] = ["
    assert not added(copy, ACCOUNTANTS, ACCOUNTANT, listed)
    file = copy.path / ACCOUNTANTS
    file.write_text(file.read_text().replace(listed, listed + "Added(), "))
    assert json.loads(python(copy, "-c", ASKED))[1]["added"] == pytest.approx(1.5)

    (reader,) = (content for name, _, content in blocks("add-a-data-set") if name == READER)
    assert added(copy, READER, reader) == WRITTEN[READER]

    declared = '    METHOD: ClassVar[str] = "least_squares"\n'
    line = '    trim: float = setting(0.5, "Of the spectrum, what is left out.", least=0, below=1)\n\n'
    assert added(copy, METHOD, line, declared) == WRITTEN[METHOD]

    (claim,) = re.findall(r"```yaml\n(linear-at-one:.*?)```", page("add-a-table"), re.DOTALL)
    (first,) = re.findall(r"\A(?:#.*\n|\n)*^([a-z0-9-]+:\n)", (copy.path / CLAIMS).read_text(), re.MULTILINE)
    assert not added(copy, CLAIMS, claim, first)

    assert not added(copy, STUDY, yaml.safe_dump(SWEPT, sort_keys=False))
    (writes,) = (content for name, _, content in blocks("add-a-data-set") if name == "write_tables.py")
    python(copy, "-c", writes)
    copy.write_config(yaml.safe_load((copy.path / STUDY).read_text()))
    result = copy.snakemake()
    assert result.returncode == 0, result.stdout + result.stderr
    for name, trim in (("0p25", 0.25), ("0p5", 0.5)):
        cell = f"digit-tables/pixels/ls-{name}/eps=1"
        assert read_json(copy.path / "results/cells" / cell / "metrics.json")["hyperparameters"]["trim"] == trim
        ledger = read_json(copy.path / "results/cells" / cell / "ledger.json")
        assert ledger["guarantee"] == "proved" and "added" in ledger["epsilon_by"]
    verdict = next(row for row in rows(copy, "claims") if row["claim"].startswith("With no more than"))
    assert "0 of 1 for, 1 ties, 0 against" in verdict["here"], verdict


def rows(folder, table):
    with (folder.path / f"results/tables/{table}.csv").open(encoding="utf-8") as file:
        return list(csv.DictReader(file))
