"""The worked examples of docs/add-a-*.md, written into a copy of the repository and run as they stand."""

import csv
import re
import shutil
import subprocess
import sys

import pytest
import yaml

from dpstudy.core.files import read_json
from tests.workflow.conftest import ROOT, copy_code, make_folder

PAGES = ("add-a-method", "add-a-data-set", "add-a-backbone")
BLOCK = re.compile(r"`([\w./-]+)`:\n\n```(\w+)\n(.*?)^```", re.DOTALL | re.MULTILINE)


def blocks(page):
    """(path, language, content) of every block of a page that says which file it is of."""
    return BLOCK.findall((ROOT / "docs" / f"{page}.md").read_text(encoding="utf-8"))


def apply(diff, text):
    """The text with the lines of `-` replaced, or those of `+` inserted, where the others stand."""
    kinds = [(line[:1], line[1:]) for line in diff.splitlines(keepends=True)]
    before = "".join(rest for kind, rest in kinds if kind != "+")
    after = "".join(rest for kind, rest in kinds if kind != "-")
    assert text.count(before) == 1, f"these lines stand {text.count(before)} times:\n{before}"
    return text.replace(before, after)


def merged(below, above):
    return below | {
        key: merged(below[key], value) if isinstance(below.get(key), dict) else value for key, value in above.items()
    }


@pytest.fixture(scope="module")
def extended(tmp_path_factory):
    """A copy of the repository with what the three pages add, and their study without the network."""
    folder = make_folder(tmp_path_factory.mktemp("examples") / "dpstudy")
    copy_code(ROOT / "tests", folder.path / "tests")
    shutil.copy(ROOT / "pyproject.toml", folder.path)
    study = {}
    for page in PAGES:
        found = blocks(page)
        assert len(found) > 5, page
        for name, language, content in found:
            path = folder.path / name
            if language == "diff":
                path.write_text(apply(content, path.read_text(encoding="utf-8")), encoding="utf-8")
            elif name.startswith("studies/"):
                study = merged(study, yaml.safe_load(content))
            else:
                assert not path.exists(), name
                path.write_text(content, encoding="utf-8")
    folder.write_config(study, "whole.yaml")
    for kind, name in (("datasets", "digits"), ("features", "pixels"), ("features", "mlp")):
        del study[kind][name]
    folder.write_config(study | {"public": {}, "backbones": {}})
    (folder.path / "docs").mkdir()
    shutil.copy(ROOT / "docs/methods.md", folder.path / "docs")
    written = python(folder, "-m", "dpstudy", "schemas")
    assert written == "class_means.schema.yaml, network_dpsgd.schema.yaml, config.schema.yaml, methods.md\n"
    return folder


def python(folder, *arguments):
    """What Python says in the copy, with the copy's library."""
    command = [sys.executable, *arguments]
    environment = folder.environment | {"PYTHONPATH": str(folder.path / "workflow")}
    done = subprocess.run(command, cwd=folder.path, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_new_names_make_a_row_of_a_table_that_other_accountants_vouch_for(extended):
    python(extended, "write_tables.py")
    result = extended.snakemake("results/tables/mine.csv")
    assert result.returncode == 0, result.stdout + result.stderr
    cell = "digit-tables/blocks/class-means/eps=4"
    ledger = read_json(extended.path / "results/cells" / cell / "ledger.json")
    assert ledger["guarantee"] == "proved" and 3.99 < ledger["epsilon"] <= 4 and ledger["n"] == 1400
    assert [event["name"] for event in ledger["events"]] == ["sums"]
    assert cell in (extended.path / "results/privacy/certificates/digit-tables.json").read_text(encoding="utf-8")
    with (extended.path / "results/tables/mine.csv").open(encoding="utf-8") as file:
        (row,) = csv.DictReader(file)
    assert (row["features"], row["entry"], row["guarantee"]) == ("blocks", "class-means", "proved")
    assert float(row["ours"]) > 60  # guessing has 10


def test_the_study_of_all_three_pages_loads(extended):
    program = (
        "import yaml; from dpstudy.config import cells, loading; print(*cells.unfold(loading.load(yaml.safe_load(open("
    )
    said = python(extended, "-c", program + "'whole.yaml')))), sep='\\n')")
    assert len(said.splitlines()) == 6 and said.count("mlp") == 2


def test_the_tests_that_the_pages_ask_for_pass(extended):
    """The examples' own, and those that learned of them by a line."""
    files = dict.fromkeys(name for page in PAGES for name, *_ in blocks(page) if "/test_" in name)
    chosen = "class_means or (class and means) or pixel_table or block_means or mlp or is_here"
    said = python(
        extended, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-n", "0", *files, "-k", chosen, "--durations=5"
    )
    print(said)
    assert len(files) == 11


def test_a_hyper_parameter_is_added_by_one_line(tmp_path):
    """Its schema, default, range and place in the table follow (docs/add-a-method.md, section 3)."""
    folder = make_folder(tmp_path / "dpstudy")
    shutil.copytree(ROOT / "docs", folder.path / "docs")
    module = folder.path / "workflow/dpstudy/methods/least_squares.py"
    text, last = module.read_text(encoding="utf-8"), '    METHOD: ClassVar[str] = "least_squares"\n'
    assert text.count(last) == 1
    line = '    trim: float = setting(0.5, "Of the spectrum, what is left out.", least=0, below=1)\n'
    module.write_text(text.replace(last, line + "\n" + last), encoding="utf-8")
    assert python(folder, "-m", "dpstudy", "schemas") == "least_squares.schema.yaml, methods.md\n"
    assert "`trim` 0.5 (≥0,<1)" in (folder.path / "docs/methods.md").read_text(encoding="utf-8")
    program = """if True:
        import yaml
        from dpstudy.config import cells, loading
        from dpstudy.core.errors import StudyError
        config = yaml.safe_load(open("config.yaml"))
        print(cells.unfold(loading.load(config))[0].options(loading.load(config))["trim"])
        config["methods"]["ls"]["trim"] = 1
        try:
            loading.load(config)
        except StudyError as error:
            print(error)
    """
    said = python(folder, "-c", program).splitlines()
    assert said == ["0.5", "methods.ls.trim: 1 must be less than 1"]
