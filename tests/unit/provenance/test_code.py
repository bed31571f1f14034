"""Declared code equals imported code: what a rule names as input is at least what the script runs on."""

import ast
import json
import re
import subprocess
import sys
from dataclasses import MISSING, fields
from pathlib import Path

import numpy as np
import pytest

from dpstudy import methods
from dpstudy.cell.monitor import CURVES
from dpstudy.core.arrays import has_driver
from dpstudy.core.errors import StudyError
from dpstudy.evaluation.metrics import modules
from dpstudy.features import extractor_modules, shards
from dpstudy.methods import module_name
from dpstudy.provenance.code import PACKAGE, closure
from dpstudy.provenance.hashes import library_hash
from dpstudy.provenance.imports import statements
from dpstudy.schema.methods import method_names, method_schema
from dpstudy.schema.reading import schema
from dpstudy.tables.specs import KINDS
from dpstudy.tables.styles import module_of, names

SCRIPTS = PACKAGE.parent / "scripts"
SOURCE, FEATURES = (schema("config")["$defs"][node] for node in ("source", "features"))
READERS = [f"dpstudy.data.readers.{name}" for name in SOURCE["x-readers"]]
EXTRACTORS = [module for name in FEATURES["x-extractors"] for module in extractor_modules({"extractor": name})]
STYLES = {kind: [module_of(kind, {"style": name}) for name in names(kind)] for kind in KINDS}
MODULES = {  # what a rule adds to a script, because the script chooses it by name
    "prepare_shard.py": READERS,
    "prepare_manifest.py": READERS,
    "extract_shard.py": EXTRACTORS,
    "fit_projection.py": EXTRACTORS,
    "train_cell.py": [f"dpstudy.methods.{name}" for name in method_names()],
    "tune_entry.py": [f"dpstudy.methods.{name}" for name in method_names()],
    "build_table.py": STYLES["tables"],
    "draw_figure.py": STYLES["figures"],
}
CASES = [(path.name, module) for path in sorted(SCRIPTS.glob("*.py")) for module in MODULES.get(path.name, [None])]
OPTIONS = {
    "least_squares": {"variant": "published"},
    "first_order": {
        "learning_rate": 1.0,
        "clipping_norm": 1.0,
        "steps": 2,
        "normalisation": {"mean_clip": 1.0, "square_clip": 1.0, "noise_multiplier": 30.0},
    },
    "iterated_sgd": {"learning_rate": 1.0, "clipping_norm": 1.0, "batch_size": 10, "epochs": 2},
    "instance_smoothing": {"projected_dim": 2, "epochs": 1, "attack_runs": 100},
    "network_dpsgd": {"network": "scatter-28", "learning_rate": 1.0, "clipping_norm": 1.0, "steps": 2},
}
NEEDED = {"network_dpsgd": {"torch"}, "instance_smoothing": {"torch"}}
HEAVY = {"torch", "torchvision", "timm", "opacus", "matplotlib", "sklearn", "snakemake"}

REPORT = """
import __main__, json, os, runpy, sys
__main__.__file__ = {script!r}  # Snakemake gives a script its place, and looks for modules there
sys.path.append(os.path.dirname({script!r}))
runpy.run_path({script!r}, init_globals=dict(snakemake=None), run_name="imported")
{more}
files = [getattr(module, "__file__", None) for module in list(sys.modules.values())]
print(json.dumps([sorted({{file for file in files if file}}), sorted({{name.split(".")[0] for name in sys.modules}})]))
"""

TRAIN = """
from types import SimpleNamespace as Names
class Files(dict):
    __getattr__ = dict.__getitem__
options, out = {options!r}, "results/cells/"
outputs = Files(
    run=out + "run.json", scores=out + "scores.parquet", ledger=out + "ledger.json", model=out + "model.safetensors"
)
if {stepped!r}:
    outputs["curve"] = out + "curve.parquet"
if {audited!r}:
    outputs["audit"] = out + "audit.json"
snakemake = Names(
    resources={{}},
    log=["logs/train.log"],
    input=Files(code="code.sha256"),
    output=outputs,
    params=Names(
        request=dict(
            cell=dict(dataset="toy", features="pixels", entry="entry", epsilon="1"),
            options=options, seeds=[0], noise="seeded", on_training=False, not_accounted=[], library={library!r},
            origin="", checkpoint=None, dataset=dict(reader="digits", delta="1e-3", unit="record", positives=1),
        ),
        inputs=dict(train=["results/features/toy/pixels/train"], held_out="results/features/toy/pixels/test"),
        spending=Names(spent=None, spend_again=False, ceiling=None, records="", not_accounted=[]),
    ),
)
runpy.run_path({script!r}, init_globals=dict(snakemake=snakemake), run_name="__main__")
"""


def run(script, more="", folder=None):
    """(files, top-level packages) that a fresh interpreter has imported at the end."""
    program = REPORT.format(script=str(SCRIPTS / script), more=more)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=folder)
    assert done.returncode == 0, done.stderr
    files, packages = json.loads(done.stdout.splitlines()[-1])
    return {Path(file).resolve() for file in files}, set(packages)


def library_files(files):
    return {file for file in files if file.is_relative_to(PACKAGE)}


def declared(script, *modules):
    return {Path(path).resolve() for path in closure(str(SCRIPTS / script), *modules)}


@pytest.fixture(scope="module")
def toy(tmp_path_factory):
    """A folder with a feature set of two splits."""
    root = tmp_path_factory.mktemp("toy")
    rng = np.random.default_rng(0)
    for split, rows in (("train", 40), ("test", 10)):
        folder = root / "results/features/toy/pixels" / split
        table = shards.FeatureTable(
            ids=np.array([f"{split}-{i}" for i in range(rows)]),
            features=rng.standard_normal((rows, 4)).astype(np.float32),
            labels=(np.arange(rows) % 3).astype(np.int32),
            shape=(1, 2, 2),
            classes=("a", "b", "c"),
        )
        shards.write_shard(folder / "part-00000.parquet", table, private=True)
        shards.write_manifest(
            folder / "manifest.json",
            dataset="toy",
            features="pixels",
            split=split,
            shard_paths=[folder / "part-00000.parquet"],
            classes=["a", "b", "c"],
            private=True,
        )
    (root / "code.sha256").touch()
    return root


@pytest.mark.parametrize("method", method_names())
def test_training_runs_on_declared_code_only(method, toy):
    options = {
        "method": method,
        "sanitise": "full",
        "accounting": "certified",
        "tuned_on": "nothing",
        **OPTIONS.get(method, {}),
    }
    script, stepped = str(SCRIPTS / "train_cell.py"), method_schema(method)["x-curve"]
    audited = method_schema(method).get("x-audited", False)
    more = TRAIN.format(options=options, stepped=stepped, audited=audited, script=script, library=library_hash([]))
    files, packages = run("train_cell.py", more, toy)
    assert library_files(files) - declared("train_cell.py", f"dpstudy.methods.{method}") == set()
    assert packages & HEAVY <= NEEDED.get(method, set()) | ({"torch"} if has_driver() else set())


def test_every_script_runs_on_declared_code_only():
    """One interpreter for all of them (a fresh one each takes a minute), which forgets the library in between."""
    for script in sorted(path.name for path in SCRIPTS.glob("*.py")):
        assert {SCRIPTS / script, SCRIPTS / "this_workflow.py"} <= declared(script), "the script itself is declared"
    program = """
import __main__, importlib, json, os, runpy, sys
seen = {}
sys.path.append(os.path.dirname(json.loads(sys.argv[1])[0][0]))
for script, module in json.loads(sys.argv[1]):
    for name in [name for name in sys.modules if name.split(".")[0] in ("dpstudy", "this_workflow")]:
        del sys.modules[name]
    __main__.__file__ = script
    runpy.run_path(script, init_globals=dict(snakemake=None), run_name="imported")
    if module:
        importlib.import_module(module)
    seen[f"{script} {module}"] = [m.__file__ for n, m in sys.modules.items() if n.split(".")[0] == "dpstudy"]
print(json.dumps(seen))
"""
    cases = [(str(SCRIPTS / script), module) for script, module in CASES]
    done = subprocess.run([sys.executable, "-c", program, json.dumps(cases)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    seen = json.loads(done.stdout.splitlines()[-1])
    for script, module in CASES:
        files = {Path(file).resolve() for file in seen[f"{SCRIPTS / script} {module}"]}
        assert files - declared(script, *([module] if module else [])) == set(), (script, module)


def test_every_import_statement_of_the_library_is_found_wherever_it_stands():
    for path in PACKAGE.rglob("*.py"):
        tree = ast.parse(path.read_bytes())
        wanted = {node for node in ast.walk(tree) if isinstance(node, (ast.Import, ast.ImportFrom))}
        assert wanted <= set(statements(tree.body)), path


def test_imports_in_every_kind_of_block_are_found():
    text = """
import a
class B:
    import c
    async def d(self):
        with e:
            import f
        for g in h:
            import i
        else:
            import j
try:
    import k
except L:
    import m
else:
    import n
finally:
    import o
match p:
    case q:
        import r
if s:
    pass
elif t:
    import u
while v:
    import w
"""
    found = [node.names[0].name for node in statements(ast.parse(text).body) if isinstance(node, ast.Import)]
    assert sorted(found) == list("acfijkmnoruw")


def test_an_import_inside_a_function_is_declared():
    assert PACKAGE / "features" / "shards.py" in declared("sum_statistics.py")
    assert PACKAGE / "privacy" / "accounting.py" in declared("train_cell.py")  # imported late, by the curve


def test_methods_do_not_depend_on_each_other():
    squares = declared("train_cell.py", "dpstudy.methods.least_squares")
    assert PACKAGE / "methods" / "first_order.py" not in squares
    assert PACKAGE / "methods" / "sufficient_statistics.py" in squares
    assert PACKAGE / "tables" / "latex.py" not in squares


def test_an_edit_of_one_style_makes_no_table_of_another_anew():
    for kind, script in (("tables", "build_table.py"), ("figures", "draw_figure.py")):
        folder = PACKAGE / "tables" / "styles" / kind
        for module in STYLES[kind]:
            own = folder / f"{module.rpartition('.')[2]}.py"
            assert declared(script, module) & set(folder.glob("*.py")) == {own, folder / "__init__.py"}, module


def test_styles_are_asked_before_anything_runs_and_load_nothing_that_computes_or_draws():
    asked = "\n".join(f"import {module}" for kind in KINDS for module in STYLES[kind])
    program = f"import sys\n{asked}\nprint(*(name for name in sys.modules if '.' not in name))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert set(done.stdout.split()) & (HEAVY | {"pyarrow", "scipy", "pandas", "dp_accounting"}) == set()


@pytest.mark.parametrize("name", method_names())
def test_a_schema_and_its_parameters_are_the_same(name):
    """A study and `dpstudy.fit` mean the same by an entry that says nothing: a config has the default, or leaves it
    to the method where cells of versions without the setting stay what they are."""
    rules = schema(f"methods/{name}")
    known = {field.name: field for field in fields(methods.load(name).Parameters)}
    assert rules["properties"].keys() - {"method"} == known.keys(), "keys of the schema, fields of Parameters"
    for key, field in known.items():
        default = None if field.default is MISSING or not field.metadata["dpstudy"].filled else field.default
        assert key in rules.get("required", ()) or rules["properties"][key].get("default") == default, key


FOREIGN = {
    "elsewhere-1.dist-info/METADATA": "Metadata-Version: 2.1\nName: elsewhere\nVersion: 1\n",
    "elsewhere-1.dist-info/entry_points.txt": "[dpstudy.methods]\nbrought = elsewhere.brought\n",
    "elsewhere/__init__.py": "",
    "elsewhere/brought.py": """
import json
from dpstudy.methods.problem import Plan
from elsewhere import sums
from .inner.near import nothing
SCHEMA = {"type": "object", "additionalProperties": False, "x-reads": "features", "x-curve": False,
          "properties": {"method": {"const": "brought"}, "norm": {"type": "number", "default": 2.0}}}
class Parameters: pass
""",
    "elsewhere/sums.py": "",
    "elsewhere/unused.py": "",
    "elsewhere/inner/__init__.py": "",
    "elsewhere/inner/near.py": "from ..far import nothing\n",
    "elsewhere/far.py": "nothing = None\n",
}


def test_a_method_of_another_package_is_known_and_its_files_are_declared(tmp_path, monkeypatch):
    for name, content in FOREIGN.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(content)
    monkeypatch.syspath_prepend(tmp_path)
    assert "brought" in method_names() and method_schema("brought")["properties"]["norm"]["default"] == 2.0
    files = declared("train_cell.py", module_name("brought"))
    own = {str(path.relative_to(tmp_path)) for path in files if path.is_relative_to(tmp_path)}
    assert own == {name for name in FOREIGN if name.endswith(".py")} - {"elsewhere/unused.py"}
    assert PACKAGE / "methods" / "problem.py" in files
    assert all(path.is_relative_to(PACKAGE.parent) for path in files - {tmp_path / name for name in FOREIGN})
    with pytest.raises(StudyError, match="method 'unknown': there is none"):
        module_name("unknown")


def test_every_job_is_told_a_hash_of_the_code_that_it_runs_on():
    """Snakemake sees an edit of an input only if it is younger than the output: parameters it compares in any case."""
    text = "".join(path.read_text() for path in sorted((PACKAGE.parent / "rules").glob("*.smk")))
    rules = re.split(r"(?m)^(?= *(?:use )?rule \w+)", text)[1:]
    told = 0
    for rule in rules:
        name = re.match(r" *(?:use rule \w+ as|rule) (\w+)", rule)[1]
        if not (code := re.search(r"\bcode=(.*),\n", rule)):
            continue
        told += 1
        if re.search(r"\brequest=ask\(training\.", rule) or "params:" not in rule:
            continue  # it has the hash: tests of dpstudy.plan.training; or has the parameters of the rule it uses
        found = re.search(r"\blibrary=(.*),\n", rule)
        assert found, f"{name} has no parameter `library`"
        asked = {
            found[1],
            found[1].replace("code.script_hash(", "code.script_code("),
            found[1].replace("hash_of(", "ask("),
            found[1].removeprefix("library_hash(").removesuffix(")"),
        }
        assert code[1] in asked, name
    assert told >= 25


def test_a_metric_is_declared_by_its_name_and_curves_declare_theirs():
    """So that one more makes nothing stale, and an edit of one only what measures or prints it."""
    folder = PACKAGE / "evaluation" / "metrics"
    for script in ("score_cell.py", "summarise_cells.py", "build_table.py"):
        assert declared(script) & set(folder.glob("*.py")) == {folder / "__init__.py"}, script
    assert declared("score_cell.py", *modules(["auc"])) & {folder / "auc.py", folder / "top1.py"} == {folder / "auc.py"}
    assert {folder / f"{name}.py" for name in CURVES} <= declared("train_cell.py")
