"""The wheel in an environment that has the core's packages alone: what `pip install dpstudy` gives."""

import re
import shutil
import subprocess
import sys

import pytest

from tests.packages import PROJECT, ROOT, environment

EXAMPLE = re.compile(r"```python\n(from dpstudy import fit, predict\n.*?)```", re.DOTALL)
RECORDS = """
import numpy as np
drawn = np.random.default_rng(0)
features, labels, new_features = drawn.standard_normal((900, 4)), drawn.integers(10, size=900), np.ones((3, 4))
"""
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    source, target = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("wheel")
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    shutil.copytree(
        ROOT / "workflow/dpstudy", source / "workflow/dpstudy", ignore=shutil.ignore_patterns("__pycache__")
    )
    options = ["--no-deps", "--no-build-isolation", "--no-index", "--quiet", "--wheel-dir", str(target)]
    subprocess.run([sys.executable, "-m", "pip", "wheel", *options, str(source)], check=True)
    return next(target.glob("*.whl"))


@pytest.fixture(scope="module")
def core(wheel, tmp_path_factory):
    """Python in an environment of the wheel and what it asks for, whose packages are links to those here."""
    python = environment(tmp_path_factory.mktemp("core"), PROJECT["dependencies"])
    options = ["--no-deps", "--no-index", "--quiet", "--disable-pip-version-check"]
    subprocess.run([sys.executable, "-m", "pip", "--python", python, "install", *options, wheel], check=True)
    return python


def said(python, code, folder):
    """What a program prints there, in a folder of its own, with none of this environment's variables."""
    done = subprocess.run(
        [python, "-c", code], cwd=folder, env={"PATH": ""}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_readme_s_example_runs(core, tmp_path):
    example = EXAMPLE.search((ROOT / "README.md").read_text(encoding="utf-8"))[1]
    code = f"{RECORDS}{example}\nprint(result.ledger['guarantee'], result.ledger['epsilon'] <= 1, scores.shape)"
    assert said(core, code, tmp_path) == "proved True (3, 10)\n"


def test_loss_distributions_and_types_are_there(core, tmp_path):
    code = f"""{RECORDS}
import dpstudy, importlib.metadata, pathlib
assert dpstudy.__version__ == importlib.metadata.version("dpstudy")
assert (pathlib.Path(dpstudy.__file__).parent / "py.typed").is_file()
options = dict(steps=5, learning_rate=1.0, clipping_norm=1.0, batch_size=90)
result = dpstudy.fit("first_order", features, labels, classes=10, epsilon=1.0, delta=1e-5, **options)
print(result.ledger["accountant"])"""
    assert said(core, code, tmp_path).startswith("PLD")


@pytest.mark.parametrize(
    ("code", "sentence"),
    [
        (
            "dpstudy.fit('network_dpsgd', features, labels, classes=10, epsilon=1.0, delta=1e-5, shape=(1, 2, 2), "
            "network='lenet', learning_rate=1.0, clipping_norm=1.0, steps=1)",
            "method 'network_dpsgd': needs torch, which is not installed; run pip install 'dpstudy[networks]'",
        ),
        (
            "dpstudy.DPClassifier()",
            "DPClassifier: needs sklearn, which is not installed; run pip install 'dpstudy[sklearn]'",
        ),
    ],
)
def test_a_missing_extra_is_a_sentence(core, tmp_path, code, sentence):
    program = f"{RECORDS}\nimport dpstudy\ntry:\n    {code}\nexcept dpstudy.StudyError as error:\n    print(error)"
    assert said(core, program, tmp_path) == f"{sentence}\n"
