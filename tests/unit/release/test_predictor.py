"""predict.py of a bundle: what it makes of bad files, and of an interpreter that it cannot run in."""

import ast
import runpy
import sys

import numpy as np
import pytest
from PIL import Image

from dpstudy.models.kinds import load_model
from dpstudy.models.operating_points import counts_of, thresholds
from dpstudy.release.bundle import write_bundle
from dpstudy.release.predictor import main
from tests.dicom_files import write_dicom
from tests.unit.release.test_bundle import SIDE, origin_of, pictures, train

BAD = {
    "none.png": None,
    "cut.png": lambda content: content[: len(content) // 2],
    "empty.png": lambda content: b"",
    "deep.png": lambda content: b"",
}


@pytest.fixture(scope="module")
def cell(tmp_path_factory):
    return train(tmp_path_factory.mktemp("cell"), {"method": "least_squares"}, 1)


def test_a_bad_file_costs_that_file_alone(cell, tmp_path, monkeypatch, capsys):
    """Missing, cut off, empty, of 16 bits a channel, a folder: one sentence each, in batches too."""
    monkeypatch.setattr("dpstudy.release.predictor._BATCH", 2)
    write_bundle("toy", origin_of(cell), [], str(tmp_path / "bundle"))
    good, bad = [tmp_path / f"good{number}.png" for number in range(3)], [tmp_path / name for name in BAD]
    for path, image in zip(good, pictures(5, 3)[0], strict=True):
        Image.fromarray(image[..., 0]).save(path)
    for path, content in zip(bad, BAD.values(), strict=True):
        if content is not None:
            path.write_bytes(content(good[0].read_bytes()))
    Image.fromarray(np.full((SIDE, SIDE), 60000, np.uint16)).save(bad[-1])
    (tmp_path / "folder.png").mkdir()
    bad.append(tmp_path / "folder.png")
    assert main(tmp_path / "bundle", list(map(str, good))) == 0
    expected = capsys.readouterr().out
    paths = [good[0], *bad[:2], good[1], *bad[2:], good[2]]
    assert main(tmp_path / "bundle", list(map(str, paths))) == 1
    said = capsys.readouterr()
    assert said.out == expected, "the others are scored as they are without them"
    *reasons, last = said.err.splitlines()
    assert len(reasons) == len(bad)
    for path, line in zip(bad, reasons, strict=True):
        assert line.startswith("predict.py: ") and str(path) in line
    assert last == f"predict.py: {len(bad)} of {len(paths)} images are left out of the CSV, for the reasons above"
    assert main(tmp_path / "bundle", list(map(str, bad))) == 1
    assert capsys.readouterr().out == "", "no table without a row"


@pytest.mark.parametrize("window", [None, "file", [2048, 4096]])
def test_recipients_are_told_what_they_can_do(cell, tmp_path, capsys, window):
    """They have no config, where `window` and `frame` stand."""
    image = {"size": [SIDE, SIDE], "channels": 1, "crop": False} | ({"window": window} if window else {})
    write_bundle("toy", origin_of(cell, image=image), [], str(tmp_path / "bundle"))
    deep = np.full((SIDE, SIDE), 4000, np.uint16)
    paths = [tmp_path / "two.gif", tmp_path / "scan.dcm", tmp_path / "deep.png"]  # which no, one or any window is for
    write_dicom(paths[1], deep)
    Image.fromarray(deep).save(paths[2])
    first, second = (Image.fromarray(np.full((SIDE, SIDE), level, np.uint8)) for level in (9, 99))
    first.save(paths[0], save_all=True, append_images=[second])
    assert main(tmp_path / "bundle", list(map(str, paths))) == 1
    told = [line for line in capsys.readouterr().err.splitlines() if "image " in line and "save it" in line]
    assert len(told) == (3 if window is None else 2 if window == "file" else 1)
    for sentence in told:
        assert "`" not in sentence and "; save it as a file of one picture with 8 bits a channel" in sentence
        assert sentence.endswith("README.md names") == bool(window)


@pytest.mark.parametrize(
    ("part", "value", "sentence"),
    [
        ("sys.version_info", (3, 10), "needs Python 3.11 or newer, and "),
        ("importlib.util.find_spec", lambda name: None if name == "PIL" else name, " lacks pillow; run `"),
        ("dpstudy.release.predictor.main", ..., "cannot be started (cannot import name 'main' from "),
    ],
)
def test_what_a_bundle_needs_to_run_is_told_in_a_sentence(cell, tmp_path, monkeypatch, part, value, sentence):
    write_bundle("toy", origin_of(cell), [], str(tmp_path / "bundle"))
    program = tmp_path / "bundle" / "predict.py"
    ast.parse(program.read_text(), feature_version=(3, 5))
    ast.parse((tmp_path / "bundle" / "verify.py").read_text(), feature_version=(3, 6))
    program.read_bytes().decode("ascii")
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(sys, "dont_write_bytecode", sys.dont_write_bytecode)
    with monkeypatch.context() as patched:
        patched.delattr(part) if value is ... else patched.setattr(part, value)
        with pytest.raises(SystemExit) as ended:
            runpy.run_path(str(program), run_name="__main__")
        assert str(ended.value).startswith("predict.py: ") and sentence in str(ended.value)
        if part == "sys.version_info":
            with pytest.raises(SystemExit, match=r"verify.py: needs Python 3\.11"):
                runpy.run_path(str(tmp_path / "bundle" / "verify.py"))


def test_a_specificity_says_what_is_there_by_counts_that_the_model_brings(tmp_path, capsys):
    """Each class by its own threshold, of the probability before shares are corrected."""
    folder = train(
        tmp_path / "cell", {"method": "least_squares", "calibration": 0.3, "thresholds": 0.3}, 1, epsilon="2000"
    )
    write_bundle("toy", origin_of(folder), [], str(tmp_path / "bundle"))
    paths = [tmp_path / f"{number}.png" for number in range(6)]
    for path, image in zip(paths, pictures(5, 6)[0], strict=True):
        Image.fromarray(image[..., 0]).save(path)
    assert main(tmp_path / "bundle", ["--specificity", "0.8", *map(str, paths)]) == 0
    header, *rows = [line.split(",") for line in capsys.readouterr().out.splitlines()]
    classes = len(header) // 2 - 1
    assert header[2 + classes :] == [f"{name} at 0.8" for name in header[2 : 2 + classes]]
    model = load_model(tmp_path / "bundle" / "model.safetensors")
    found = thresholds(*counts_of(model.metadata, classes), 0.8)
    assert any(found)
    for row in rows:
        for place, threshold in enumerate(found):
            expected = "" if threshold is None else str(int(float(row[2 + place]) >= threshold.probability))
            assert row[2 + classes + place] == expected
    card = (tmp_path / "bundle" / "README.md").read_text(encoding="utf-8")
    assert "## Thresholds" in card and "predict.py --specificity 0.9" in card
    assert main(tmp_path / "bundle", ["--specificity", "2", str(paths[0])]) == 1
    assert "--specificity: a specificity is a number between 0 and 1, and not 2" in capsys.readouterr().err


def test_a_specificity_of_a_model_without_counts_is_refused(cell, tmp_path, capsys):
    write_bundle("toy", origin_of(cell), [], str(tmp_path / "bundle"))
    assert main(tmp_path / "bundle", ["--specificity", "0.9", "a.png"]) == 1
    assert "--specificity: the model brings no counts that thresholds are read off" in capsys.readouterr().err
    assert "## Thresholds" not in (tmp_path / "bundle" / "README.md").read_text(encoding="utf-8")
