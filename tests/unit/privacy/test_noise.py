"""Noise: right size, independent in every direction, never drawn twice, drawn in one place only.

Statistical checks use fresh seeds; thresholds of 6 standard errors hold with probability above 1 - 1e-7.
"""

import ast
import itertools
import secrets
from pathlib import Path

import numpy as np
import pytest
import torch
from scipy import stats

import dpstudy
from dpstudy.privacy.noise import NoiseSource

SIZE = 40_000
FAR = 6.0


def fresh_source(*key):
    return NoiseSource("seeded", *(key or ("cell", "train", 0, secrets.randbits(40))))


def correlation(a, b):
    return abs(float(np.corrcoef(a.ravel(), b.ravel())[0, 1]))


@pytest.mark.parametrize("mode", ["seeded", "secure"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("std", [0.01, 3.0, 1e6])
def test_standard_deviation_mean_and_shape(mode, dtype, std):
    noise = NoiseSource(mode, secrets.randbits(40)).gaussian("a", (200, 200), std, dtype=dtype)
    assert noise.shape == (200, 200) and noise.dtype == dtype
    assert abs(noise.std() / std - 1) < FAR / np.sqrt(2 * SIZE)
    assert abs(noise.mean()) < FAR * std / np.sqrt(SIZE)


@pytest.mark.parametrize("mode", ["seeded", "secure"])
def test_the_law_is_normal(mode):
    noise = NoiseSource(mode, secrets.randbits(40)).gaussian("a", (SIZE,), 2.0, dtype=np.float64)
    assert stats.kstest(noise / 2.0, "norm").pvalue > 1e-7


def test_streams_are_independent_across_steps_tensors_names_seeds_and_cells():
    seed = secrets.randbits(40)
    source = fresh_source("a/b/c/eps=1", "train", 0, seed)
    draws = {
        "step 0": source.gaussian("gradient", (SIZE,), 1.0),
        "step 1": source.gaussian("gradient", (SIZE,), 1.0, step=1),
        "step 11": source.gaussian("gradient", (SIZE,), 1.0, step=11),
        "tensor": source.gaussian("gradient", (SIZE,), 1.0, tensor="1"),
        "name": source.gaussian("gram", (SIZE,), 1.0),
        "seed": fresh_source("a/b/c/eps=1", "train", 0, seed + 1).gaussian("gradient", (SIZE,), 1.0),
        "cell": fresh_source("a/b/c/eps=2", "train", 0, seed).gaussian("gradient", (SIZE,), 1.0),
        "phase": fresh_source("a/b/c/eps=1", "audit", 0, seed).gaussian("gradient", (SIZE,), 1.0),
        "run": fresh_source("a/b/c/eps=1", "train", 1, seed).gaussian("gradient", (SIZE,), 1.0),
    }
    for (first, a), (second, b) in itertools.combinations(draws.items(), 2):
        assert correlation(a, b) < FAR / np.sqrt(SIZE), f"{first} and {second} share noise"


def test_parts_of_a_key_do_not_run_together():
    a = fresh_source("cell", "1", "12").gaussian("a", (50,), 1.0)
    b = fresh_source("cell", "11", "2").gaussian("a", (50,), 1.0)
    assert not np.allclose(a, b)


def test_the_same_draw_twice_is_an_error():
    source = fresh_source()
    source.gaussian("gradient", (3,), 1.0, step=4)
    with pytest.raises(RuntimeError, match="'gradient', step 4.*already drawn"):
        source.gaussian("gradient", (3,), 1.0, step=4)
    source.gaussian("gradient", (3,), 1.0, step=5)
    source.gaussian("gradient", (3,), 1.0, step=5, tensor="bias")
    assert source.drawn == {"gradient": 2}  # two tensors of one step are one release


def test_seeded_noise_is_reproducible_and_secure_noise_is_not():
    seed = secrets.randbits(40)
    draws = [fresh_source("cell", seed).gaussian("a", (100,), 1.0) for _ in range(2)]
    assert np.array_equal(*draws)
    draws = [NoiseSource("secure", "cell", seed).gaussian("a", (100,), 1.0) for _ in range(2)]
    assert not np.isclose(*draws).any()
    choices = [NoiseSource("secure", "cell", seed).sampling("batches").random(50) for _ in range(2)]
    assert not np.array_equal(*choices)


def test_sampling_has_a_stream_of_its_own():
    source = fresh_source()
    again = NoiseSource("seeded", *source.key)
    assert np.array_equal(source.sampling("batches").random(9), again.sampling("batches").random(9))
    normals = stats.norm.ppf(source.sampling("batches").random(SIZE))
    assert correlation(normals, source.gaussian("batches", (SIZE,), 1.0, dtype=np.float64)) < FAR / np.sqrt(SIZE)


@pytest.mark.parametrize("std", [-1.0, np.nan, np.inf])
def test_a_standard_deviation_without_meaning_is_refused(std):
    with pytest.raises(ValueError, match="standard deviation"):
        fresh_source().gaussian("a", (3,), std)


@pytest.mark.parametrize("query", [1.0, [1.0], np.ones(2, np.int64), np.ones(2, np.float16), torch.ones(2)])
def test_what_is_released_is_an_array_of_floats(query):
    source = NoiseSource("secure", "cell")
    with pytest.raises(TypeError, match="release 'sum': must be a NumPy array of float32 or float64, got "):
        source.released("sum", query, 1.0)
    assert not source.drawn


def test_an_unknown_mode_is_refused():
    with pytest.raises(ValueError, match="mode"):
        NoiseSource("random", 1)


@pytest.mark.parametrize("mode", ["seeded", "secure"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_symmetric_noise_is_isometric(mode, dtype):
    dim, std = 300, 2.5
    query = np.zeros((dim, dim), dtype)
    matrix = NoiseSource(mode, secrets.randbits(40)).released("gram", query, std, symmetric=True)
    assert matrix.dtype == dtype and not query.any()
    upper = matrix[np.triu_indices(dim, 1)]
    assert np.array_equal(matrix, matrix.T)
    assert abs(matrix.diagonal().std() / std - 1) < FAR / np.sqrt(2 * dim)
    assert abs(upper.std() / (std / np.sqrt(2)) - 1) < FAR / np.sqrt(2 * upper.size)
    assert correlation(upper[::2], upper[1::2]) < FAR / np.sqrt(upper.size // 2)


NORMAL_DRAWS = {"standard_normal", "normal", "normal_", "randn", "randn_like", "multivariate_normal", "gauss", "ndtri"}
NORMAL_DRAWS |= {"GridGaussian", "grid_gaussian"}
NOT_FOR_RELEASES = {  # jitter of public data, images of canaries
    "auditing/one_run.py",
    "data/readers/glyphs.py",
    "data/readers/dead_leaves.py",  # drawn pictures, which are public
    "data/readers/strokes.py",
    "data/readers/cutouts.py",
    "data/readers/scenes.py",
    "data/plant.py",
    "pretraining/pictures.py",
    "features/random_patches.py",  # filters, which are public
    "methods/kernel_projection.py",  # a projection before it is trained
    "methods/network_check.py",  # pictures to try a network with
    "methods/preconditioning.py",  # pictures to make public maps of
    "models/random_features.py",  # public frequencies
    "models/wide_resnet.py",  # weights before training
    "models/equivariant_resnet.py",  # the same
    "tables/claims/de2022_techniques.py",  # made-up gradients, clipped to see what clipping bounds
    "forecast/skill.py",  # quantiles: draws nothing
    "tables/ceiling.py",  # quadrature of a formula: draws nothing
    "privacy/secure_sampling.py",  # a projection before it is trained
    "privacy/audit.py",  # quantiles: draws nothing
}


def test_no_other_file_draws_normal_noise():
    package = Path(dpstudy.__file__).parent
    found = {}
    for path in package.rglob("*.py"):
        names = {node.attr for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Attribute)}
        names |= {node.id for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Name)}
        if names & NORMAL_DRAWS:
            found[path.relative_to(package).as_posix()] = sorted(names & NORMAL_DRAWS)
    assert set(found) - NOT_FOR_RELEASES == {"privacy/noise.py", "privacy/secure_noise.py"}, found


@pytest.mark.parametrize("mode", ["seeded", "secure"])
def test_a_shared_source_adds_one_vector_to_every_row_tensor_and_step(mode):
    shared, fresh = NoiseSource(mode, "a", shared=True), NoiseSource(mode, "a")
    draws = [
        [source.gaussian("g", (3, 50), 2.0, step, tensor) for step, tensor in ((1, ""), (2, ""), (2, "b"))]
        for source in (shared, fresh)
    ]
    first = draws[0][0][0].copy()
    assert all(np.array_equal(row, first) for draw in draws[0] for row in draw)
    assert len({row.tobytes() for draw in draws[1] for row in draw}) == 9
    assert not np.array_equal(first, shared.gaussian("h", (50,), 2.0))  # another release has a vector of its own
    assert shared.drawn == {"g": 2, "h": 1}
    draws[0][0][:] = 0  # what is handed out is the caller's
    assert np.array_equal(shared.gaussian("g", (50,), 2.0, 7), first)
