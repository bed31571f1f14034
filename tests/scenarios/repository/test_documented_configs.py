"""What README and docs show of a config is what a config may hold: blocks, and keys and values within a sentence."""

import copy
import re
from pathlib import Path

import pytest
import yaml

from dpstudy.config.loading import load
from dpstudy.schema.methods import method_names, method_schema
from dpstudy.schema.reading import schema
from dpstudy.schema.spelling import as_numbers, check_keys
from dpstudy.schema.validating import validator
from dpstudy.tables.keys import COMMON
from dpstudy.tables.styles import names, style_of

ROOT = Path(__file__).parents[3]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(ROOT.glob("docs/*.md"))]
CODE = re.compile(r"^```(\w*)\n(.*?)^```", re.DOTALL | re.MULTILINE)
RUN_ELSEWHERE = ("add-a-method", "add-a-data-set", "add-a-table", "add-a-backbone")  # tests/workflow/test_worked_*.py
# Of files that are no config: profiles of Snakemake, ledgers and cards; and messages, which test_pages.py looks up.
NO_CONFIG = {"gres", "gpu", "runtime", "guarantee", "overrides", "iterated_sgd", "evaluation", "dedup"}
PLACEHOLDER = re.compile(r"…|\.\.\.|\b[A-Z]{2,}\b|^[a-z]$")
BASE = {
    "study": "documented",
    "datasets": {"own": {"reader": "cifar", "location": "cifar", "delta": "1e-5", "splits": {"validation": 0.1}}},
    "features": {"images": {"extractor": "images"}, "pixels": {"extractor": "pixels"}},
    "methods": {
        "default": {"method": "least_squares"},
        "dp-sgd": {"method": "first_order", "learning_rate": 1.0, "clipping_norm": 1.0, "steps": 10},
        "lenet": {
            "method": "network_dpsgd", "network": "lenet", "optimiser": "sgd", "learning_rate": 1.0,
            "clipping_norm": 1.0, "batch_size": 100, "steps": 10,
        },
    },
    "epsilons": ["1", "8"],
    "seeds": [0],
}  # fmt: skip


def blocks():
    for path in PAGES:
        for language, text in CODE.findall(path.read_text(encoding="utf-8")):
            if language == "yaml" and path.stem not in RUN_ELSEWHERE:
                yield pytest.param(text, id=f"{path.stem}-{text.split(':')[0]}")


def merged(below, above):
    if not (isinstance(below, dict) and isinstance(above, dict)):
        return above
    return below | {key: merged(below.get(key), value) for key, value in above.items()}


@pytest.mark.parametrize("text", list(blocks()))
def test_a_block_is_part_of_a_study(text, tmp_path):
    file = tmp_path / "block.yaml"
    file.write_text(text, encoding="utf-8")
    check_keys(file)
    study = merged(
        copy.deepcopy(BASE), yaml.safe_load(re.sub(r', \.\.\.|^.*"\.\.\.".*$', "", text, flags=re.MULTILINE))
    )
    if "black_box" in study:
        del study["features"]["pixels"]
    if "dedup" in study:
        study["features"] |= {study["dedup"]["embedding"]: {"extractor": "scatternet"}}
    for source in (*study["datasets"].values(), *study.get("public", {}).values()):
        if source["reader"] == "imagenet":
            source.setdefault("size", [224, 224])
            source.setdefault("location", "imagenet")
            source.setdefault("delta", "1e-5") if source in study["datasets"].values() else None
    load(study)


def places():
    """key -> the schemas of it, of configs, methods, searches, tables and figures."""
    found = {}
    documents = [schema("config"), schema("tuning"), *map(method_schema, method_names())]
    documents += [{"properties": dict(COMMON[kind])} for kind in COMMON]
    documents += [{"properties": dict(style_of(kind, {"style": name}).keys)} for kind in COMMON for name in names(kind)]

    def walk(node):
        if isinstance(node, dict):
            for key, rules in node["properties"].items() if isinstance(node.get("properties"), dict) else ():
                found.setdefault(key, []).append(rules)
            for child in node.values():
                walk(child)
        elif isinstance(node, list):
            for child in node:
                walk(child)

    for document in documents:
        walk(document)
    return found


def fragments():
    for path in PAGES:
        prose = CODE.sub("", path.read_text(encoding="utf-8"))
        for text in re.findall(r"`([a-z_]+: [^`]+)`", prose):
            text = " ".join(text.split()).replace(r"\|", "|")  # as tables of Markdown have it
            if not PLACEHOLDER.search(text.partition(": ")[2]):
                yield pytest.param(text, id=f"{path.stem}-{text}")


PLACES = places()


@pytest.mark.parametrize("text", list(fragments()))
def test_a_key_and_a_value_within_a_sentence_are_allowed(text):
    ((key, value),) = yaml.safe_load(text).items()
    if key in NO_CONFIG:
        assert key in ("dedup", "evaluation", "overrides") or key not in PLACES
        return
    assert key in PLACES, f"{key}: no such key"
    roots = {"$defs": schema("config")["$defs"]}
    shapes = [{"properties": {key: rules}} | roots for rules in PLACES[key]]
    assert any(validator()(shape).is_valid(as_numbers({key: value}, shape)) for shape in shapes), text


def test_the_search_of_the_readme_is_a_search(tmp_path):
    (line,) = re.findall(r"`(tuning: \{[^`]*)`", (ROOT / "README.md").read_text(encoding="utf-8"))
    study = copy.deepcopy(BASE)
    del study["methods"]["dp-sgd"]["learning_rate"]
    study["methods"]["dp-sgd"] |= yaml.safe_load(line)
    space = load(study)["methods"]["dp-sgd"]["tuning"]["space"]
    assert space["learning_rate"] == {"low": 0.001, "high": 100.0, "log": True, "integer": False}
