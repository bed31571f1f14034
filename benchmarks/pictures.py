"""What kind of drawn pictures makes the best features, judged on photographs that are public: CIFAR-100's.

Whitened patches of the pictures are filters, and moments of the pictures scale and half whiten what these give, as in
studies/beyond.yaml; a private linear model then tells the twenty groups of CIFAR-100's classes apart. No private data
has a part in it.
"""

import os
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np

from benchmarks.timing import table, title

PICTURES, RECORDS, TEST, FILTERS, COMPONENTS, EPSILONS, SEEDS = 6_000, 20_000, 10_000, 384, 2_000, (1.0, 3.0, 8.0), 2
# The group of each class, in alphabetical order of the classes (Krizhevsky 2009, table 1).
GROUPS = (
    *(4, 1, 14, 8, 0, 6, 7, 7, 18, 3, 3, 14, 9, 18, 7, 11, 3, 9, 7, 11, 6, 11, 5, 10, 7, 6, 13, 15, 3, 15, 0, 11, 1),
    *(10, 12, 14, 16, 9, 11, 5, 5, 19, 8, 8, 15, 13, 14, 17, 18, 10, 16, 4, 17, 4, 2, 0, 17, 4, 18, 17, 10, 3, 2, 12),
    *(12, 16, 12, 1, 9, 19, 2, 10, 0, 1, 16, 12, 9, 13, 15, 13, 16, 19, 2, 4, 6, 19, 5, 5, 8, 19, 18, 1, 2, 15, 6, 0),
    *(17, 8, 14, 13),
)
ABOUT = """\
{FILTERS} patches of 6 x 6 of {PICTURES:,} pictures, mirror image averaged, {COMPONENTS:,} half-whitened components of
the same pictures; {RECORDS:,} images of CIFAR-100 in its 20 groups, tested on {TEST:,}: test accuracy in percent of
least squares without privacy, the best of three ridges on the test images, and of `feature_covariance` with reach
1,000, means of {SEEDS} seeds.
"""
Draw = Callable[[np.random.Generator], np.ndarray]


def texture(random: np.random.Generator, side: int, least: float = 0.5, most: float = 2.2) -> np.ndarray:
    """(side, side, 3) noise of variance 1 whose amplitudes fall with a power of the frequency, as photographs' do."""
    frequencies = np.fft.fftfreq(side)
    down, across = np.meshgrid(frequencies, frequencies, indexing="ij")
    angle, stretch = random.uniform(0, np.pi), np.exp(random.normal(0, 0.5))
    turned = across * np.cos(angle) + down * np.sin(angle), down * np.cos(angle) - across * np.sin(angle)
    radius = np.hypot(turned[0] * stretch, turned[1] / stretch)
    radius[0, 0] = np.inf
    noise = random.normal(size=(3, side, side))
    noise = noise[:1] + random.uniform(0, 0.5) * noise  # mostly of brightness
    values = np.fft.ifft2(np.fft.fft2(noise) * radius ** -random.uniform(least, most)).real.transpose(1, 2, 0)
    return values / values.std()


def clouds(random: np.random.Generator) -> np.ndarray:
    """A picture that is noise with the spectrum of photographs, and nothing else."""
    picture = random.normal(0.47, 0.15) + random.normal(0, 0.06, 3) + 0.22 * texture(random, 32, 0.8, 1.6)
    return np.clip(255 * picture, 0, 255).astype(np.uint8)


def leaves(random: np.random.Generator, shapes: tuple[int, int], smallest: float, amplitude: float = 0.0) -> np.ndarray:
    """Opaque shapes as of the reader `dead_leaves`, of other numbers and sizes, each with a texture of its own."""
    from PIL import Image, ImageDraw

    from dpstudy.data.readers.dead_leaves import _outline

    side, textures, number = 64, 6, int(random.integers(*shapes)) + 1
    canvas = Image.new("I", (side, side))
    pen = ImageDraw.Draw(canvas)
    middle, tint, colours = random.normal(0.47, 0.2), random.normal(0, 0.08, 3), np.empty((number, 3))
    for shape in range(number):
        radius = 2 * side if shape == 0 else side * min(0.8, smallest * random.uniform() ** -0.5)
        colours[shape] = middle + random.normal(0, 0.25) + tint + random.normal(0, 0.07, 3)
        outline = _outline(random, radius) + random.uniform(-0.1, 1.1, 2) * side
        pen.polygon([tuple(point) for point in outline], fill=shape)
    shown: np.ndarray = np.asarray(canvas)
    picture = colours[shown]
    if amplitude:
        inside = np.stack([texture(random, side) for _ in range(textures)])
        which, how_much = random.integers(textures, size=number), random.uniform(0, amplitude, number)
        picture = picture + inside[which[shown], *np.mgrid[:side, :side]] * how_much[shown][..., None]
    picture = 255 * np.clip(picture, 0, 1).reshape(32, 2, 32, 2, 3).mean((1, 3))
    picture = picture * random.uniform(0.5, 1) + random.normal(0, 15) + random.normal(0, 3, picture.shape)
    return np.clip(picture, 0, 255).astype(np.uint8)


def _drawn(draw: Draw) -> np.ndarray:
    return np.stack([draw(np.random.default_rng([0, number])) for number in range(PICTURES)])


def _of_reader(name: str, **options) -> np.ndarray:
    from dpstudy.data.readers import open_reader

    reader = open_reader(name, {"count": PICTURES, "size": [32, 32], "channels": 3} | options, Path())
    return reader.read("all", np.arange(PICTURES)).images


def _photographs(pool: str, first: int, number: int) -> tuple[np.ndarray, np.ndarray]:
    from dpstudy.data.readers import open_reader

    options = {"reader": "cifar", "variant": "cifar100", "location": "cifar100"}
    records = open_reader("cifar", options, Path(os.environ["DPSTUDY_DATA"])).read(
        pool, np.arange(first, first + number)
    )
    return records.images, np.array(GROUPS)[records.labels]


def _features(network, images: np.ndarray) -> np.ndarray:
    import torch

    with torch.inference_mode():
        planes = torch.from_numpy(images.transpose(0, 3, 1, 2).astype(np.float32) / 255)
        both = [(network(part) + network(part.flip(3))) / 2 for part in planes.split(250)]
    return torch.cat(both).numpy()


def _network(images: np.ndarray):
    from dpstudy.data import shards
    from dpstudy.data.records import Records
    from dpstudy.pretraining.options import PATCHES
    from dpstudy.pretraining.patches import cut
    from dpstudy.pretraining.rows import PublicRows

    names = np.array([str(row) for row in range(len(images))], dtype=object)
    with tempfile.TemporaryDirectory() as folder:
        shard = Path(folder, "part-00000.parquet")
        shards.write_shard(shard, Records(names, images, np.zeros(len(images), np.int32)), private=False)
        shards.write_manifest(
            shard.with_name("manifest.json"), dataset="pictures", split="all", shard_paths=[shard], classes=["drawn"],
            private=False,
        )  # fmt: skip
        return cut(PublicRows(folder), PATCHES | {"filters": FILTERS}, (32, 32), 3)


def _accuracies(images: np.ndarray) -> list[float]:
    """Test accuracy without privacy and at each epsilon, by features made of these pictures."""
    from dpstudy import fit

    network = _network(images)
    moments = _features(network, images)
    mean, std = moments.mean(0), moments.std(0) + 1e-6
    variances, directions = np.linalg.eigh(np.cov((moments - mean) / std, rowvar=False))
    project = (directions / np.sqrt(np.sqrt(variances.clip(1e-12))))[:, ::-1][:, :COMPONENTS].astype(np.float32)
    sides = []
    for pool, number in (("train", RECORDS), ("test", TEST)):
        photographs, labels = _photographs(pool, 0, number)
        features = (_features(network, photographs) - mean) / std @ project
        sides.append((features / np.linalg.norm(features, axis=1, keepdims=True), labels))
    (features, labels), (tested, answers) = sides
    gram, sums = features.T @ features, features.T @ (np.eye(20)[labels] - 0.05)
    free = [tested @ np.linalg.solve(gram + ridge * np.eye(COMPONENTS), sums) for ridge in (0.01, 0.1, 1.0)]
    accuracies = [max(100 * (scores.argmax(1) == answers).mean() for scores in free)]
    for epsilon in EPSILONS:
        models = [
            fit("feature_covariance", features, labels, classes=20, epsilon=epsilon, delta=1e-5, seed=seed, reach=1000)
            for seed in range(SEEDS)
        ]
        accuracies.append(
            np.mean([100 * (fitted.model.scores(tested).argmax(1) == answers).mean() for fitted in models])
        )
    return accuracies


def run(threads: int, repeats: int) -> None:
    """Print how each kind of picture fares, and photographs of CIFAR-100 itself beside them; `repeats` is not used."""
    import torch

    torch.set_num_threads(threads)
    title("Drawn pictures, judged on CIFAR-100")
    print(ABOUT.format(**globals()))
    kinds: dict[str, Callable[[], np.ndarray]] = {
        "dead_leaves": partial(_of_reader, "dead_leaves"),
        "scenes": partial(_of_reader, "scenes"),
        "large leaves": partial(_drawn, partial(leaves, shapes=(3, 30), smallest=0.1)),
        "textured leaves": partial(_drawn, partial(leaves, shapes=(5, 60), smallest=0.06, amplitude=0.2)),
        "clouds": partial(_drawn, clouds),
        "photographs": lambda: _photographs("train", 40_000, PICTURES)[0],
    }
    lines = [(name, *(f"{one:.1f}" for one in _accuracies(pictures()))) for name, pictures in kinds.items()]
    table(("pictures", "least squares", *(f"epsilon {epsilon:g}" for epsilon in EPSILONS)), lines)
