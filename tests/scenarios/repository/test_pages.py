"""The pages: links lead somewhere, studies that are named exist, and messages are those of the source."""

import argparse
import ast
import hashlib
import pickle
import re
import subprocess
from pathlib import Path

import numpy as np
import pytest
import yaml

from dpstudy.data.readers import open_reader
from dpstudy.features import open_extractor
from dpstudy.report.claims import REFERENCES

ROOT = Path(__file__).parents[3]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(ROOT.glob("docs/*.md"))]
TRACKED = subprocess.run(
    ["git", "ls-files", ":(glob)studies/*.yaml"], cwd=ROOT, capture_output=True, text=True
).stdout.split()
STUDIES = {Path(path).stem for path in TRACKED or ROOT.glob("studies/*.yaml")}  # a user's own lie there too


def prose(path):
    """A page without its blocks of code."""
    return re.sub(r"^```.*?^```", "", path.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)


def anchors(path):
    """What GitHub makes of a page's headings."""
    headings = re.findall(r"^#+ (.*)$", prose(path), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def links(path):
    """(target, anchor) of every link of a page to this repository."""
    for target in re.findall(r"\]\(([^)\s]+)\)", prose(path)):
        if not target.startswith("http"):
            yield target.partition("#")[::2]


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_links_lead_somewhere(path):
    for target, anchor in links(path):
        there = (path.parent / target).resolve() if target else path
        assert there.is_file(), target
        assert not anchor or anchor in anchors(there), f"{target}#{anchor}"


def test_the_readme_leads_to_every_page_and_reproduce_to_every_study():
    linked = {(ROOT / target).resolve() for target, _ in links(ROOT / "README.md")}
    assert set(ROOT.glob("docs/*.md")) <= linked
    reproduce = ROOT / "docs/reproduce.md"
    direct = set(re.findall(r"^\| `([\w.-]+)` \|", prose(reproduce), re.MULTILINE)) - {"config.yaml"}
    assert direct <= STUDIES, direct - STUDIES
    listed = direct | {name for name in STUDIES if name.startswith(("tramer2021", "de2022"))}
    assert listed == STUDIES, f"docs/reproduce.md: give a line to the studies {STUDIES - listed}"


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_files_that_a_page_names_are_there(path):
    """Of the repository; what a study makes, and what a reader writes, is not."""
    text = prose(path)
    made = {"studies/mine.yaml", "studies/NAME.yaml"}
    for name in re.findall(r"`((?:studies|tests|workflow|profiles|benchmarks)/[\w./-]+)`", text):
        new = f"`{name}`:" in path.read_text(encoding="utf-8") and path.name.startswith("add-a-")
        assert name in made or new or (ROOT / name).exists(), name


def sentences():
    """Every text in the source that is not a docstring; what is filled in at run time is "\\0"."""
    for path in sorted((ROOT / "workflow").rglob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        skipped = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
        for node in ast.walk(tree):
            if isinstance(node, ast.JoinedStr):
                yield "".join(part.value if isinstance(part, ast.Constant) else "\0" for part in node.values)
            elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in skipped:
                yield node.value


def test_every_message_of_the_faq_is_one_of_the_source():
    """A quoted message is cut at "…", a name of the user's: its words stand in one sentence, in that order."""
    quoted = re.findall(r"^\| `+ ?(.+?) ?`+ \| ", prose(ROOT / "docs/faq.md"), re.MULTILINE)
    assert len(quoted) > 35
    source = list(sentences())
    for message in quoted:
        parts = [part for part in message.split("…") if part]
        pattern = re.compile(".*".join(map(re.escape, parts)), re.DOTALL)
        near = [text for text in source if max(parts, key=len) in text]
        assert any(pattern.search(text) for text in near), message


def blocks(path, language):
    """The blocks of a page in some language."""
    return re.findall(rf"^```{language}\n(.*?)^```", path.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)


def test_the_lines_without_the_workflow_run():
    (program,) = [block for block in blocks(ROOT / "README.md", "python") if "import fit" in block]
    rng = np.random.default_rng(0)
    labels = np.arange(200) % 10
    names = {"features": (np.eye(10)[labels] + rng.standard_normal((200, 10))).astype(np.float32), "labels": labels}
    names["new_features"] = names["features"][:3]
    exec(program, names)
    assert names["scores"].shape == (3, 10) and names["result"].ledger["guarantee"] == "proved"


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_pieces_of_configs_are_mappings(path):
    for block in blocks(path, "yaml"):
        assert isinstance(yaml.safe_load(block), dict), block


@pytest.mark.parametrize("wrapped", [False, True])
def test_the_lines_that_convert_a_checkpoint_take_what_timm_s_training_script_writes(tmp_path, monkeypatch, wrapped):
    import timm
    import torch
    from timm.utils import CheckpointSaver

    network = timm.create_model("test_resnet", num_classes=3)
    held = torch.nn.DataParallel(network) if wrapped else network
    saver = CheckpointSaver(
        held,
        torch.optim.SGD(held.parameters(), lr=0.1),
        argparse.Namespace(model="test_resnet", lr=0.1),
        checkpoint_dir=str(tmp_path),
        unwrap_fn=lambda model: model,
    )
    saver.save_checkpoint(3, metric=71.5)
    monkeypatch.chdir(tmp_path)
    (program,) = [block for block in blocks(ROOT / "docs/features.md", "python") if "model_best.pth.tar" in block]
    exec(program, {})
    options = {"extractor": "timm", "model": "test_resnet", "weights": "model.safetensors", "scaling": "model"}
    extractor = open_extractor(options | {"size": "native"}, data_root=tmp_path)
    assert extractor(np.zeros((1, 32, 32, 3), np.uint8)).shape == (1, 96)


@pytest.mark.parametrize("kept", [lambda state: state, lambda state: {"model": state, "epoch": 3}])
def test_the_conversion_of_weights_takes_those_of_other_scripts(tmp_path, monkeypatch, kept):
    import timm
    import torch
    from safetensors.torch import load_file

    network = timm.create_model("test_resnet", num_classes=3)
    torch.save(kept(network.state_dict()), tmp_path / "model_best.pth.tar")
    monkeypatch.chdir(tmp_path)
    (program,) = [block for block in blocks(ROOT / "docs/features.md", "python") if "model_best.pth.tar" in block]
    exec(program, {})
    assert load_file("model.safetensors").keys() == network.state_dict().keys()


def test_the_lines_that_cut_cifar100_take_turns_by_the_hashes_of_names(tmp_path, monkeypatch):
    (program,) = [block for block in blocks(ROOT / "docs/reproduce.md", "python") if "cifar100-subset" in block]
    rng = np.random.default_rng(0)
    source = tmp_path / "cifar-100-python"
    source.mkdir()
    (source / "meta").write_bytes(pickle.dumps({b"fine_label_names": [b"%d" % n for n in range(100)]}, protocol=2))
    images, labels = rng.integers(0, 256, (1200, 3072)).astype(np.uint8), rng.permutation(np.arange(1200) % 100)
    names = [b"%d.png" % row for row in range(1200)]
    batch = {b"data": images, b"fine_labels": labels.tolist(), b"filenames": names}
    for pool in ("train", "test"):
        (source / pool).write_bytes(pickle.dumps(batch, protocol=2))
    monkeypatch.chdir(tmp_path)
    assert '("train", 150), ("test", 20)' in program
    exec(program.replace('("train", 150), ("test", 20)', '("train", 10), ("test", 10)'), {})
    reader = open_reader("mosaics", {"location": "cifar100-subset"}, tmp_path)
    ranked = sorted(range(1200), key=lambda row: hashlib.sha256(names[row]).digest())
    for place in (0, 7, 100, 999):
        row = [row for row in ranked if labels[row] == place % 100][place // 100]
        record = reader.read("test", np.array([place]))
        assert record.labels[0] == place % 100
        np.testing.assert_array_equal(record.images[0], images[row].reshape(3, 32, 32).transpose(1, 2, 0))


def test_the_papers_are_cited_alike():
    page, software = ((ROOT / name).read_text(encoding="utf-8") for name in ("docs/reproduce.md", "CITATION.cff"))
    for paper, (authors, title, where) in REFERENCES.items():
        assert f"| {paper} | {authors}, *{title}*, {where.partition('arXiv')[0]}" in page
        number = where.partition("arXiv:")[2]
        assert f'title: "{title}"' in software and number in software and f"/abs/{number})" in page or not number
