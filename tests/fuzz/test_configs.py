"""A config with any mistake is read, or refused in a sentence of the project's own words."""

import copy
import datetime

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from dpstudy.config.loading import load
from dpstudy.core.errors import StudyError

from .bad_input import bounded, check_sentence, damaged, examples, refusal

VALID = """
study: test
question: What is it worth?
datasets:
  digits: {reader: digits, delta: "1e-4", splits: {test: 0.2, validation: 0.1}}
  own:
    reader: image_table
    location: own
    table: labels.csv
    path_column: path
    size: [32, 32]
    delta: "1e-4"
    label_columns: [edema, mass]
    splits: {test: 0.3}
    group_columns: [sex, {column: years, bands: [40, 60], name: age}]
public:
  glyphs: {reader: glyphs, count: 100, splits: {validation: 0.1}, plant: {dataset: digits, split: test, count: 2}}
backbones:
  glyph-cnn: {architecture: small_cnn, public: glyphs}
fits:
  pca: {public: glyphs, extractor: pixels, dim: 8}
features:
  pixels: {extractor: pixels, fit: pca}
  cnn: {extractor: backbone, backbone: glyph-cnn}
  net: {extractor: timm, model: resnet50, weights: hub, trained_on: [glyphs], size: [32, 32]}
methods:
  ls: {method: least_squares}
  dp-sgd:
    method: first_order
    clipping_norm: 1.0
    steps: 10
    tuning: {trials: 3, space: {learning_rate: {low: 0.1, high: 1.0}}}
epsilons: ["1", inf]
seeds: [0, 1]
cells: [{datasets: [digits], entries: [ls, dp-sgd]}]
overrides: [{match: {entry: ls, epsilon: ["1"]}, set: {clipping_norm: 2.0}}]
dedup: {method: squares}
audit: {entries: [ls], epsilons: ["1"], runs: 100}
tables:
  main: {dataset: digits, rows: [{features: pixels, entry: ls}]}
figures:
  main: {dataset: digits, entries: [ls]}
"""
JARGON = (
    "Traceback", "valid under", "is not of type", "does not match", "required property", "should not be valid",
    "is too short", "is too long", "non-empty", "was expected", "expected at most", "Additional properties",
    "Unevaluated", "non-unique", "is not a multiple", "is a dependency", "has too", "\n",
)  # fmt: skip
VALUES = [
    None, True, False, 0, -1, 1, 1.0, 2.5, 1e300, -0.0, float("inf"), float("nan"), 2**70, "", "a", "it's", 'say "x"',
    "..", "x\ny", "/etc", "\0", "é", "1", "1\n", "inf", "1e-5", "1e-5\n", [], [1], ["a"], [[]], [["digits"]], {},
    {"a": 1}, {"it's": 1}, {1: 2}, {None: None}, datetime.date(2020, 1, 1), b"bytes", {1, 2}, (1, 2), "x" * 90,
    "${x}", "{a}",
]  # fmt: skip
KEYS = ["a", "it's", 'say "x"', "x\ny", "", 1, None, True, 1.5, "..", "a b", "é", "A", (1, 2), "x" * 90, "digits\n"]


def places(value, path=()):
    """The path of every value within a value."""
    yield path
    children = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in children:
        yield from places(item, (*path, key))


def at(config, path):
    """The value at a path."""
    for key in path:
        config = config[key]
    return config


@st.composite
def mistaken(draw):
    """A valid config with one or two small mistakes."""
    config = yaml.safe_load(VALID)
    for _ in range(draw(st.sampled_from((1, 1, 2)))):
        everywhere = [path for path in places(config) if path]
        if not everywhere:
            break
        *above, key = draw(st.sampled_from(everywhere))
        parent = at(config, above)
        kind = draw(st.sampled_from(("delete", "change", "rename", "nest", "move", "add", "repeat")))
        if kind == "delete":
            del parent[key]
        elif kind == "change":
            parent[key] = copy.deepcopy(draw(st.sampled_from(VALUES)))
        elif kind == "nest":
            parent[key] = draw(st.sampled_from(([parent[key]], {"a": parent[key]}, {key: parent[key]})))
        elif kind == "move":
            parent[key] = copy.deepcopy(at(config, draw(st.sampled_from(everywhere))))
        elif kind == "repeat" and isinstance(parent[key], list):
            parent[key] = parent[key] * 2
        elif isinstance(parent, list):
            parent.insert(0, copy.deepcopy(draw(st.sampled_from(VALUES))))
        elif kind == "rename":
            parent[draw(st.sampled_from(KEYS))] = parent.pop(key)
        else:
            parent[draw(st.sampled_from(KEYS))] = copy.deepcopy(draw(st.sampled_from(VALUES)))
    return config


def test_the_config_that_mistakes_are_made_in_is_valid():
    load(yaml.safe_load(VALID))


@examples(500)
@given(mistaken())
def test_a_mistaken_config_is_read_or_refused_in_plain_words(config):
    before = copy.deepcopy(config)
    try:
        with bounded():
            load(config)
    except StudyError as error:
        check_sentence(error)
        for sentence in error.args:  # of several mistakes one each
            assert not [word for word in JARGON if word in sentence and word not in repr(before)]
    assert repr(config) == repr(before)


@examples(200)
@given(damaged(VALID.encode()))
def test_a_damaged_file_of_a_config_is_no_yaml_or_refused(content):
    try:
        config = yaml.safe_load(content)
    except (yaml.YAMLError, ValueError):  # YAML's own: Snakemake says that the file is none
        return
    refusal(lambda: load(config))


@pytest.mark.parametrize(
    "question",
    [
        "&a [*a]",
        "&a {a: *a}",
        "[&a [x, x, x], &b [*a, *a, *a], &c [*b, *b, *b]" + "".join(
            f", &{chr(new)} [{', '.join([f'*{chr(new - 1)}'] * 9)}]" for new in range(100, 123)
        ) + "]",
        "[" * 100 + "]" * 100,
    ],
    ids=["itself in a list", "itself in a mapping", "multiplied", "deep"],
)  # fmt: skip
def test_a_config_without_end_is_refused(question):
    config = yaml.safe_load(VALID) | {"question": yaml.safe_load(question)}
    assert "look for an alias" in refusal(lambda: load(config), "the config")


@pytest.mark.parametrize(
    ("path", "value", "words"),
    [
        (("epsilons",), ["1\n"], r"epsilons[0]: '1\n' must be 'inf' or a positive"),
        (("datasets", "digits", "delta"), "1e-5\n", r"datasets.digits.delta: '1e-5\n' must be"),
        (("study",), "a\n", r"study: 'a\n' must be lower-case"),
        (("seeds",), [1.0], "seeds[0]: 1.0 must be an integer"),
        (
            ("datasets", "digits", "it's"),
            1,
            "datasets.digits.it's: unknown key (did you mean 'splits'?); allowed here: ",
        ),
        (("datasets", "own", "size"), [32], "datasets.own.size: [32] must hold at least 2 values"),
        (("datasets", "own", "size"), [32, 32, 32], "must hold at most 2 values"),
        (("features", "net", "size"), [32, 32, 32], "features.net.size: [32, 32, 32] must hold at most 2 values"),
        (("question",), ["x" * 500], "..."),
        (
            ("methods", "dp-sgd", "tuning", "space"),
            {"steps": {"choices": [None]}},
            "must be a string or a number or true",
        ),
    ],
    ids=lambda value: None,
)
def test_what_was_once_a_traceback_or_taken_for_right_is_said(path, value, words):
    config = yaml.safe_load(VALID)
    at(config, path[:-1])[path[-1]] = value
    said = refusal(lambda: load(config))
    assert said and words in said
