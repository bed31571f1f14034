"""What several studies share stands once: a study is merged over the files that it includes."""

import pytest
import yaml

from dpstudy.config.including import read_config, with_included
from dpstudy.config.loading import load
from dpstudy.core.errors import StudyError
from dpstudy.plan.study import load_study

SHARED = {
    "datasets": {"digits": {"reader": "digits", "delta": "1e-4"}},
    "features": {"pixels": {"extractor": "pixels"}},
    "methods": {
        "least-squares": {"method": "least_squares"},
        "dp-ls": {"method": "least_squares", "variant": "published", "clipping_norm": 1.0, "ridge": 1.0},
    },
    "epsilons": ["1", "8"],
    "seeds": [0, 1],
}


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "base").mkdir()
    (tmp_path / "base" / "digits.yaml").write_text(yaml.safe_dump(SHARED))
    return tmp_path


def written(folder, **study):
    path = folder / "mine.yaml"
    path.write_text(yaml.safe_dump({"study": "mine", "include": "base/digits.yaml"} | study, sort_keys=False))
    return path


def test_a_study_is_merged_over_what_it_includes(folder):
    path = written(
        folder, epsilons=["2"], methods={"dp-ls": {"ridge": 2.0}, "least-squares": None, "mine": {"method": "newton"}}
    )
    config = read_config(path)
    assert "include" not in config and config["study"] == "mine"
    assert config["epsilons"] == ["2"] and config["seeds"] == [0, 1]  # a list is replaced
    assert config["methods"] == {"dp-ls": SHARED["methods"]["dp-ls"] | {"ridge": 2.0}, "mine": {"method": "newton"}}
    assert config["datasets"] == SHARED["datasets"]
    written_out = {"study": "mine"} | SHARED | {"epsilons": ["2"], "methods": config["methods"]}
    assert load(config) == load(written_out)


def test_as_snakemake_reads_it_names_are_relative_to_the_studys_folder(folder, monkeypatch, tmp_path_factory):
    path = written(folder)
    monkeypatch.chdir(tmp_path_factory.mktemp("elsewhere"))
    assert load_study(yaml.safe_load(path.read_text()), [path]) == load({"study": "mine"} | SHARED)


def test_of_several_the_later_ones_count_and_nothing_is_shared_between_studies(folder):
    (folder / "base" / "few.yaml").write_text("seeds: [7]\nmethods: {dp-ls: {ridge: 9.0}}\n")
    both = {"study": "mine", "include": ["base/digits.yaml", "base/few.yaml"]}
    config = with_included(both, [folder / "mine.yaml"])
    assert config["seeds"] == [7] and config["methods"]["dp-ls"]["ridge"] == 9.0
    assert both["include"] == ["base/digits.yaml", "base/few.yaml"]


def test_words_that_a_file_leaves_open_are_filled_in(folder):
    shared = """
        methods: {"ls-{name}": {method: least_squares, ridge: "{ridge}"}}
        epsilons: "{budgets}"
        question: What does {name} give at {odd}?
    """
    (folder / "base" / "open.yaml").write_text(shared)
    words = {"name": "mine", "ridge": 2.0, "budgets": ["1", "2"]}
    config = read_config(written(folder, include=["base/digits.yaml", {"file": "base/open.yaml", "with": words}]))
    assert config["methods"]["ls-mine"] == {"method": "least_squares", "ridge": 2.0}
    assert config["epsilons"] == ["1", "2"] and config["epsilons"] is not words["budgets"]
    assert config["question"] == "What does mine give at {odd}?"  # as names of a sweep stand there


def test_without_the_key_a_config_is_as_it_stands():
    raw = {"study": "mine", "methods": {"none": None}}
    assert with_included(raw, ["mine.yaml"]) is raw and with_included(["no study"], []) == ["no study"]


@pytest.mark.parametrize(
    ("included", "content", "sentence"),
    [
        ("base/digit.yaml", None, r"no file 'base/digit.yaml' beside the study \(did you mean 'base/digits.yaml'\?\)"),
        ("base/odd.yaml", "- a list", "holds no keys of a study"),
        ("base/odd.yaml", "a: [", "base/odd.yaml: not YAML"),
        ("base/odd.yaml", "include: base/digits.yaml", "an included file cannot include others"),
        ("base/odd.yaml", "seeds: [1]\nseeds: [2]\n", "seeds"),
        (3, None, "must be the name of a file, or a list of them, got 3"),
        ([], None, "must be the name of a file"),
        ({"fil": "base/digits.yaml"}, None, "must be the name of a file"),
        (
            {"file": "base/digits.yaml", "with": ["name"]},
            None,
            "words that a file leaves open are given as {file: NAME",
        ),
        (
            {"file": "base/odd.yaml", "with": {"names": 1}},
            "study: '{name}'",
            r"{names} stands nowhere .*mean 'name'\?\)",
        ),
    ],
)
def test_what_cannot_be_included_is_said(folder, included, content, sentence):
    if content is not None:
        (folder / "base" / "odd.yaml").write_text(content)
    with pytest.raises(StudyError, match=sentence):
        read_config(written(folder, include=included))


def test_a_config_that_stands_in_no_file_includes_nothing():
    with pytest.raises(StudyError, match="include: is for a study in a file"):
        load({"study": "mine", "include": "base/digits.yaml"} | SHARED)
