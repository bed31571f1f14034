"""What leaves the machine: nothing of private records but through releases, and all that predicting needs."""

import csv
import io
import json
import re
import subprocess
import sys
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from dpstudy.cell.inputs import CellInputs
from dpstudy.core.errors import StudyError
from dpstudy.core.files import read_json, write_json
from dpstudy.data.readers import open_reader
from dpstudy.features import shards
from dpstudy.features.pixels import Pixels
from dpstudy.features.scatternet import ScatterNet
from dpstudy.models.kinds import load_model
from dpstudy.privacy.certificate import recertify
from dpstudy.privacy.noise import NoiseSource
from dpstudy.release import bundle
from dpstudy.release.bundle import Origin, write_bundle
from dpstudy.release.predictor import Predictor, main
from dpstudy.release.statement import statement
from dpstudy.schema.methods import method_schema
from tests.dicom_files import write_dicom
from tests.unit.tuning.conftest import request_of, trained

SIDE, ROWS = 12, 120
PIXELS = Pixels("unit")
SGD = {"method": "first_order", "learning_rate": 0.5, "clipping_norm": 1.0, "steps": 4}
METHODS = {
    "least squares": {"method": "least_squares"},
    "least squares, published": {"method": "least_squares", "variant": "published"},
    "covariance": {"method": "feature_covariance"},
    "newton": {"method": "newton", "steps": 2},
    "gradients": SGD,
    "samples": SGD | {"batch_size": 40},
    "normalised": SGD | {"normalisation": {"mean_clip": 1.0, "square_clip": 1.0, "noise_multiplier": 20.0}},
    "iterated": {"method": "iterated_sgd", "learning_rate": 0.1, "clipping_norm": 1.0, "batch_size": 40, "epochs": 1},
    "kernel means": {"method": "kernel_mean", "frequencies": 20},
    "network": {
        "method": "network_dpsgd",
        "network": "wrn-10-1",
        "learning_rate": 0.1,
        "clipping_norm": 1.0,
        "steps": 2,
    },
}


def pictures(seed, count=ROWS):
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 3, count)
    images = rng.integers(0, 90, (count, SIDE, SIDE, 1)) + 60 * labels[:, None, None, None]
    return images.astype(np.uint8), labels.astype(np.int32)


def write_split(folder, images, labels, extractor):
    features = extractor(images)
    names = np.array([f"r{row}" for row in range(len(images))])
    table = shards.FeatureTable(names, features.reshape(len(images), -1), labels, shape=features.shape[1:])
    shards.write_shard(folder / "part-00000.parquet", table, private=True)
    facts = {"dataset": "toy", "features": "pixels", "split": folder.name, "classes": ["a", "b", "c"], "private": True}
    shards.write_manifest(folder / "manifest.json", shard_paths=[folder / "part-00000.parquet"], **facts)


def train(root, options, seed, epsilon="4", extractor=PIXELS, **changes):
    """A cell trained on pictures of this seed; the test split is always the same."""
    write_split(root / "train", *pictures(seed), extractor)
    write_split(root / "test", *pictures(99), extractor)
    request = request_of(options, epsilon, noise="secure", **changes)
    trained(request, CellInputs((str(root / "train"),), str(root / "test")), root)
    return root


def origin_of(folder, **changes):
    origin = Origin(
        cell=str(folder),
        certificate=recertify(read_json(folder / "ledger.json")),
        image={"size": [SIDE, SIDE], "channels": 1, "crop": False},
        classes=["a", "b", "c"],
        multi_label=False,
        features={"extractor": "pixels", "scaling": "unit", "normalise": "none", "dtype": "float32"},
    )
    return replace(origin, **changes)


def contents(folder):
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


@pytest.mark.parametrize("case", METHODS)
def test_private_records_reach_a_bundle_through_releases_alone(case, tmp_path, monkeypatch):
    """Releases that do not depend on their sums, and two private data sets: the same bundle, byte for byte."""

    def released(self, name, query, std, step=0, tensor="", symmetric=False):
        self._enter(name, std, step, tensor)
        rng = np.random.default_rng(abs(hash((name, step, tensor))))
        found = rng.normal(size=query.shape).astype(query.dtype)
        return found + found.T if symmetric else found

    def sampling(self, name):
        self.untouched = False
        return np.random.default_rng(7)

    monkeypatch.setattr(NoiseSource, "released", released)
    monkeypatch.setattr(NoiseSource, "sampling", sampling)
    bundles, curves = [], []
    for seed in (1, 2):
        cell = train(tmp_path / f"cell{seed}", METHODS[case], seed)
        origin = origin_of(cell, test_public=True)  # as it is: both data sets have the same test split
        write_bundle("toy", origin, ["tuning"], str(tmp_path / f"bundle{seed}"))
        bundles.append(contents(tmp_path / f"bundle{seed}"))
        curves.append([path.read_bytes() for path in cell.glob("curve.parquet")])
    assert bundles[0] == bundles[1]
    assert curves[0] == curves[1], "a curve scores models that are made of something else than releases"
    assert bool(curves[0]) == method_schema(METHODS[case]["method"])["x-curve"]
    assert {"model.safetensors", "ledger.json", "bundle.json", "PRIVACY.md", "predict.py", "README.md"} <= set(
        bundles[0]
    )
    assert b"| top-1 accuracy (%) |" in bundles[0]["README.md"]


@pytest.fixture(scope="module")
def cell(tmp_path_factory):
    return train(tmp_path_factory.mktemp("cell"), {"method": "least_squares"}, 1)


def odd_pictures(folder):
    """Files whose pixels are not simply those that are seen, one a class."""
    images = [Image.fromarray(image[..., 0]) for image in pictures(6, 6)[0]]
    exif = Image.Exif()
    exif[0x0112] = 6
    faded = images[1].convert("RGBA")
    faded.putalpha(images[2])
    palette = images[2].quantize(9)
    cases = {
        "turned.jpg": (images[0].crop((0, 0, 9, 12)), {"exif": exif}),
        "faded.png": (faded, {}),
        "palette.gif": (palette, {"transparency": 3}),
        "printed.jpg": (images[3].convert("CMYK"), {}),
        "pages.tif": (images[4], {"save_all": True, "append_images": images[:2]}),
        "wide.png": (images[5].resize((30, 12)), {}),
    }
    for name, (image, options) in cases.items():
        (folder / name.partition(".")[0]).mkdir(parents=True)
        image.save(folder / name.partition(".")[0] / name, **options)
    deep = np.random.default_rng(1).integers(0, 4096, (12, 9)).astype(np.uint16)
    for name in ("deep", "scan"):
        (folder / name).mkdir()
    Image.fromarray(deep).save(folder / "deep" / "deep.png")
    write_dicom(folder / "scan" / "scan.dcm", deep, PhotometricInterpretation="MONOCHROME1")


@pytest.mark.parametrize("crop", [False, True])
def test_a_bundle_makes_of_a_file_the_features_that_its_shards_have(cell, tmp_path, crop):
    """Upright, on white, the same page, through one window: whatever the reader saw, `predict.py` sees."""
    odd_pictures(tmp_path / "own")
    entry = {"reader": "image_folder", "location": "own", "size": [SIDE, SIDE], "channels": 1, "frame": 0}
    entry["window"] = [2000, 3000]
    reader = open_reader("image_folder", entry | {"resize": "crop" if crop else "stretch"}, tmp_path)
    rows = reader.rows("all")
    learned = Pixels("unit")(reader.read("all", np.arange(len(rows))).images)
    image = {"size": [SIDE, SIDE], "channels": 1, "crop": crop, "frame": 0, "window": [2000, 3000]}
    write_bundle("toy", origin_of(cell, image=image), [], str(tmp_path / "bundle"))
    assert (
        "more than 8 bits a channel through a window 3000 wide around 2000"
        in (tmp_path / "bundle/README.md").read_text()
    )
    model = load_model(tmp_path / "bundle" / "model.safetensors")
    np.testing.assert_array_equal(
        Predictor(tmp_path / "bundle").scores(rows.files), model.scores(learned.reshape(len(rows), -1))
    )


def test_who_scores_large_images_says_so(cell, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", SIDE**2 - 1)
    write_bundle("toy", origin_of(cell), [], str(tmp_path / "bundle"))
    Image.fromarray(pictures(5, 1)[0][0, ..., 0]).save(tmp_path / "a.png")
    assert main(tmp_path / "bundle", [str(tmp_path / "a.png")]) == 1
    assert "or raise `max_pixels`" in capsys.readouterr().err
    assert main(tmp_path / "bundle", ["--max-pixels", str(SIDE**2), str(tmp_path / "a.png")]) == 0


def test_a_bundle_predicts_new_images_by_itself(cell, tmp_path):
    """In an interpreter that knows no other library of ours, from a folder elsewhere."""
    write_bundle("toy", origin_of(cell), [], str(tmp_path / "bundle"))
    images, _ = pictures(5, 4)
    paths = []
    for number, image in enumerate(images):
        paths.append(tmp_path / f"{number}.png")
        Image.fromarray(image[..., 0]).save(paths[-1])
    command = [sys.executable, "-I", str(tmp_path / "bundle" / "predict.py"), *map(str, paths)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    rows = list(csv.DictReader(io.StringIO(done.stdout)))
    expected = load_model(cell / "model.safetensors").scores(Pixels("unit")(images).reshape(4, -1))
    found = np.array([[float(row[name]) for name in "abc"] for row in rows])
    assert np.allclose(found, expected, rtol=1e-4, atol=1e-5)
    assert not list((tmp_path / "bundle").rglob("*.pyc"))
    assert [row["predicted"] for row in rows] == ["abc"[k] for k in expected.argmax(1)]
    without = subprocess.run([sys.executable, "-S", *command[1:]], capture_output=True, text=True)  # without packages
    assert without.returncode == 1 and without.stdout == "" and without.stderr.count("\n") == 1
    requirements = (tmp_path / "bundle" / "requirements.txt").read_text()
    assert f"lacks {', '.join(line.partition('==')[0] for line in requirements.split())}; run `" in without.stderr


def test_a_linear_model_on_arithmetic_features_asks_for_three_small_packages(cell, tmp_path):
    scatternet = {"extractor": "scatternet", "scaling": "unit", "normalise": "none", "dtype": "float32"}
    asked = {}
    other = train(tmp_path / "other", METHODS["least squares"], 1, extractor=ScatterNet("unit"))
    for name, origin in {"pixels": origin_of(cell), "scatternet": origin_of(other, features=scatternet)}.items():
        write_bundle("toy", origin, [], str(tmp_path / name))
        lines = (tmp_path / name / "requirements.txt").read_text().splitlines()
        asked[name] = {line.partition("==")[0] for line in lines}
        assert [line.partition("==")[2] for line in lines] == [version(line.partition("==")[0]) for line in lines]
    assert asked["pixels"] == asked["scatternet"] == {"numpy", "pillow", "safetensors"}


def test_where_records_may_be_dicom_files_recipients_install_what_reads_such(cell, tmp_path, monkeypatch):
    """Though of 8 bits, and without a window; whoever has none needs it not."""
    asked = {}
    for name in ("known", "unknown"):
        write_bundle("toy", origin_of(cell, may_be_dicom=True), [], str(tmp_path / name))
        lines = (tmp_path / name / "requirements.txt").read_text().splitlines()
        asked[name] = {line.partition("==")[0] for line in lines}
        monkeypatch.setattr("importlib.util.find_spec", lambda _name: None)
    assert asked["known"] == asked["unknown"] | {"pydicom", "python-gdcm"}
    assert asked["unknown"] == {"numpy", "pillow", "safetensors"}
    (needed,) = (line for line in (tmp_path / "known" / "predict.py").read_text().split("NEEDED = ")[1:])
    assert "pydicom" not in needed.partition("}")[0]


def test_the_bundles_own_library_is_what_runs(cell, tmp_path):
    write_bundle("toy", origin_of(cell), [], str(tmp_path / "bundle"))
    program = (
        f"import sys; sys.path.insert(0, {str(tmp_path / 'bundle')!r}); import dpstudy.release.predictor as p; "
        "print(sorted({m.__file__ for n, m in sys.modules.items() if n.split('.')[0] == 'dpstudy'}))"
    )
    done = subprocess.run([sys.executable, "-I", "-c", program], capture_output=True, text=True, check=True)
    assert all(path.startswith(str(tmp_path)) for path in eval(done.stdout))


def test_the_statement_says_who_is_protected_and_how_well(cell, tmp_path):
    write_bundle("toy", origin_of(cell), [], str(tmp_path / "bundle"))
    text = (tmp_path / "bundle" / "PRIVACY.md").read_text()
    assert "one record (an image), among 120 that were learned from" in text
    assert "- The number of records that are learned from, 120, and of each of their splits, those included" in text
    assert ": it is exact, and counts as public." in text
    assert "ε = 4." in text and "at most e^ε = 54.6" in text and "right at most 70 % of the time" in text
    assert "recognises, of those who took part, at most " in text and " % at 0.1 % false positives." in text
    of_before = {key: value for key, value in read_json(cell / "ledger.json").items() if key != "trade_off"}
    told = statement(of_before, "toy", {"exact": 4.0})
    assert "right at most 98.3 % of the time" in told and "recognises" not in told
    assert "gram (how features go together): gaussian mechanism" in text and "This cell was not attacked." in text
    assert "Nothing is known to be left out" in text and "PLD 4" in text
    assert "let a coin decide" in text and "How this model was chosen" in text
    assert "Who has several, or one that stands in the data twice, is protected less" in text
    of_persons = read_json(cell / "ledger.json") | {"unit": "subject"}
    told = statement(of_persons, "toy", {"exact": 3.9999999, "pld": 4.00001, "rdp": None})
    assert "exact 4, PLD 4.001." in told  # a bound is rounded up
    assert "**Replayed**" not in told
    told = statement(of_persons, "toy", {"exact": 4.0}, replay={"pairs": 4, "records": 64})
    assert "- **Replayed**: Trained with the same settings on 64 made-up records, and again on 4 other sets" in told
    assert "- **Replayed**: Nothing was replayed: gone." in statement(
        of_persons, "toy", {"exact": 4.0}, replay={"exempt": "gone"}
    )
    told = statement(of_persons, "toy", {"exact": 3.9999999, "pld": 4.00001, "rdp": None})
    assert "Who has several" not in told and "- The number of persons that are learned from, 120, " in told
    for epsilon, factor in ((2.0, "7.39"), (9.5, "13359.8"), (20.0, "4.85166e+8"), (800.0, "2.72638e+347")):
        told = statement(of_persons | {"epsilon": epsilon}, "toy", {"exact": None})
        assert f"at most e^ε = {factor}," in told, "never below e^ε"


def test_what_is_not_for_release_is_refused_with_every_reason(cell, tmp_path):
    ledger, metrics = read_json(cell / "ledger.json"), read_json(cell / "metrics.json")
    bad = tmp_path / "bad"
    bad.mkdir()
    (bad / "model.safetensors").write_bytes((cell / "model.safetensors").read_bytes())
    write_json(
        bad / "ledger.json", ledger | {"noise": "seeded", "guarantee": "claimed", "epsilon": None, "delta": 0.01}
    )
    write_json(bad / "metrics.json", metrics | {"tuned_on": "a grid"})
    audit = {"audits": [{"statistic": "s", "epsilon_lower": 9.0, "runs": 5}], "verdict": "refuted: 9"}
    write_json(bad / "audit.json", audit | {"epsilon_certified": 4.0})
    origin = origin_of(cell, cell=str(bad), audit=str(bad / "audit.json"), unmatched=["imagenet"])
    with pytest.raises(StudyError) as refused:
        write_bundle("toy", replace(origin, features={"extractor": "precomputed"}), [], str(tmp_path / "out"))
    for reason in (
        *(
            "cell toy: not for release: its noise is seeded",
            "its guarantee is 'claimed'",
            "0.01 is not below 1/n = 1/120",
        ),
        *("release: {accept: [tuning]}", "'imagenet', which made its features", "an attack refutes its guarantee"),
        "its features were brought",
    ):
        assert reason in str(refused.value)
    assert not (tmp_path / "out").exists()
    write_json(bad / "ledger.json", ledger)
    write_json(bad / "audit.json", audit | {"verdict": "consistent: 1", "epsilon_certified": 4.0})
    fine = origin_of(cell, cell=str(bad), audit=str(bad / "audit.json"))
    with pytest.raises(StudyError, match="which was not paid for"):
        write_bundle("toy", fine, [], str(tmp_path / "out"))
    write_bundle("toy", fine, ["tuning"], str(tmp_path / "out"))
    assert "ε is at least 9.00" in (tmp_path / "out" / "PRIVACY.md").read_text()
    assert json.loads((tmp_path / "out" / "audit.json").read_text())["verdict"] == "consistent: 1"


def test_no_machine_path_and_no_score_is_in_a_bundle(cell, tmp_path):
    write_bundle("toy", origin_of(cell), [], str(tmp_path / "bundle"))
    for name, content in contents(tmp_path / "bundle").items():
        assert str(Path.cwd()).encode() not in content and str(tmp_path).encode() not in content, name
    assert not {"metrics.json", "curve.parquet"} & set(contents(tmp_path / "bundle"))


def test_a_bundle_is_there_when_it_is_whole(cell, tmp_path, monkeypatch):
    """A kill leaves none, or another name; verify.py would have called half of one an earlier version's."""
    folder, written = tmp_path / "bundle", bundle._write_program

    def dying(*given):
        written(*given)
        assert not folder.exists()
        raise KeyboardInterrupt

    with monkeypatch.context() as killed, pytest.raises(KeyboardInterrupt):
        killed.setattr(bundle, "_write_program", dying)
        write_bundle("toy", origin_of(cell), [], str(folder))
    assert not list(tmp_path.iterdir())
    for name in ("bundle", ".bundle.tmp"):  # of a run that was killed, by this version or an earlier one
        (tmp_path / name).mkdir()
        (tmp_path / name / "half").touch()
    write_bundle("toy", origin_of(cell), [], str(folder))
    assert [path.name for path in tmp_path.iterdir()] == ["bundle"] and not (folder / "half").exists()
    assert folder.stat().st_mode & 0o777 == 0o755


def test_a_training_beyond_the_owners_budget_is_refused_before_it_begins(tmp_path, monkeypatch):
    spent = str(tmp_path / "spent.jsonl")
    for epsilon, why in (
        ("4", "ε = 4 on these records (before it 0)"),
        ("inf", "its guarantee is 'none', without a bound"),
    ):
        with monkeypatch.context() as patched, pytest.raises(StudyError, match=re.escape(why)):
            patched.setattr("dpstudy.jobs.training.training_data", None)
            train(tmp_path / "cell", {"method": "least_squares"}, 1, epsilon, spent=spent, ceiling="3.9")
    assert not Path(spent).exists() and not (tmp_path / "cell" / "ledger.json").exists()
    train(tmp_path / "cell", {"method": "least_squares"}, 1, spent=spent, ceiling="4")


def test_training_a_cell_again_with_secure_noise_is_refused(tmp_path):
    spent = str(tmp_path / "spent.jsonl")
    train(tmp_path / "cell", {"method": "least_squares"}, 1, spent=spent)
    with pytest.raises(StudyError, match="it was trained with secure noise"):
        train(tmp_path / "cell", {"method": "least_squares"}, 1, spent=spent)
    train(tmp_path / "cell", {"method": "least_squares"}, 1, spent=spent, spend_again=True)
    train(tmp_path / "cell", {"method": "least_squares"}, 1, epsilon="inf", spent=spent)  # spends nothing
    assert len(Path(spent).read_text().splitlines()) == 2
