"""A toy feature set with the splits train, validation and test, and the search of a cell on it."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from dpstudy.cell.inputs import CellInputs, CellRequest, pose_problem
from dpstudy.config.cells import Cell
from dpstudy.features import shards
from dpstudy.jobs.scoring import score_cell
from dpstudy.jobs.training import train_cell
from dpstudy.methods.sufficient_statistics import accumulate
from dpstudy.privacy.ledger import check_run
from dpstudy.privacy.noise import NoiseSource
from dpstudy.provenance.hashes import library_hash
from dpstudy.schema.methods import method_schema
from dpstudy.schema.reading import fill_defaults, schema
from dpstudy.tuning import paid

ROWS = {"train": 400, "validation": 200, "test": 100}
LEARNING = {"learning_rate": {"low": 1e-3, "high": 1e3}, "loss": {"choices": ["softmax", "sigmoid"]}}
FIRST_ORDER = {"method": "first_order", "clipping_norm": 1.0, "steps": 5, "optimiser": "adam"}


def write_split(root: Path, split: str, features: np.ndarray, labels: np.ndarray, shape: tuple = ()) -> None:
    folder = root / split
    half = len(features) // 2
    paths = []
    for number, part in enumerate((slice(0, half), slice(half, None))):
        paths.append(folder / f"part-{number:05d}.parquet")
        names = np.arange(len(features))[part]
        table = shards.FeatureTable(
            ids=np.array([f"{split}-{name}" for name in names]),
            features=features[part].astype(np.float32),
            labels=labels[part].astype(np.int32),
            shape=shape or (features.shape[1],),
        )
        shards.write_shard(paths[-1], table, private=True)
    shards.write_manifest(
        folder / "manifest.json",
        dataset="toy",
        features="pixels",
        split=split,
        shard_paths=paths,
        classes=["a", "b", "c"],
        private=True,
    )


@pytest.fixture(scope="session")
def rows() -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Split -> (features, labels) of noisy clusters."""
    rng = np.random.default_rng(1)
    centers = 1.5 * rng.standard_normal((3, 6))
    found = {}
    for split, count in ROWS.items():
        labels = rng.integers(3, size=count)
        found[split] = (centers[labels] + rng.standard_normal((count, 6))).astype(np.float32) / 4, labels
    return found


@pytest.fixture(scope="session")
def toy_features(rows, tmp_path_factory) -> Path:
    root = tmp_path_factory.mktemp("features") / "toy" / "pixels"
    for split in ("train", "validation"):  # no test split: a search has no use for it
        write_split(root, split, *rows[split])
    return root


def request_of(options: dict, epsilon: str = "1", **changes) -> CellRequest:
    options = {key: value for key, value in options.items()}
    fill_defaults(options, method_schema(options["method"]), method_schema(options["method"]))
    for name in options.get("tuning", {}).get("space", {}):
        options.pop(name, None)
    options |= {"accounting": "certified", "sanitise": "full" if epsilon != "inf" else "none"}
    request = CellRequest(
        cell=Cell("toy", "pixels", "entry", epsilon),
        options=options,
        dataset={"reader": "digits", "delta": "1e-4", "unit": "record", "positives": 1},
        seeds=[0],
        noise="seeded",
        metrics=["top1"],
        not_accounted=[],
        code=[],
        library=library_hash([]),
    )
    return replace(request, **changes)


def tuned(options: dict, space: dict = LEARNING, **tuning) -> dict:
    """Options with a search (its defaults are filled in later)."""
    return options | {"tuning": {"space": space, "trials": 12} | tuning}


def trained(request: CellRequest, inputs: CellInputs, folder: Path) -> None:
    """Train a cell and score it, all files in one folder."""
    names = {"model": "model.safetensors", "run": "run.json", "scores": "scores.parquet", "ledger": "ledger.json"}
    if method_schema(request.options["method"])["x-curve"]:
        names["curve"] = "curve.parquet"
    files = {name: str(folder / file) for name, file in names.items()}
    train_cell(request, inputs, files)
    asked = {"metrics": list(request.metrics), "intervals": 0, "smallest_group": 20, "small_groups": "merge"}
    score_cell(files["run"], [files["scores"]], asked, "", str(folder / "metrics.json"))


def inputs_of(root: Path, **changes) -> CellInputs:
    return CellInputs((f"{root}/train",), f"{root}/validation", **changes)


# Of searches that are paid for.
RIDGES = {"ridge": {"choices": [0.01, 1.0, 100.0, 1e6]}}
LS = {"method": "least_squares", "clipping_norm": 1.0}
DELTA = 1e-4


def paying(options: dict, space: dict, epsilon: str = "1", **tuning):
    """A request whose tuning is paid for, all defaults filled in."""
    request = request_of(tuned(options, space, **tuning), epsilon)
    fill_defaults(request.options["tuning"], schema("tuning"), schema("tuning"))
    return request


def inputs(toy_features, rows, tmp_path, splits=("train",)):
    """Sums of splits as a rule would have made them, and the features of both."""
    paths = []
    for split in splits:
        paths.append(str(tmp_path / f"{split}.safetensors"))
        accumulate([rows[split]], 3, 1.0).save(paths[-1])
    given = inputs_of(toy_features, statistics=tuple(paths), validation=f"{toy_features}/validation")
    return replace(given, train=tuple(f"{toy_features}/{split}" for split in splits))


def set_up(request, given):
    tuning = paid.load(request, given)
    problem = pose_problem(request, given.manifests())
    return tuning, problem, tuning.plan(None, problem)


def fitted(request, given, seed=0, mode="seeded", **extra):
    tuning, problem, plan = set_up(request, given)
    source = NoiseSource(mode, "cell", seed)
    fit = tuning.fit(None, None, problem, plan, source, **extra)
    check_run(plan.events, source)
    return tuning, problem, plan, fit, source
