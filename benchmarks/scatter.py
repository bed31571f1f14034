"""ScatterNet features against plain kymatio on the same images and cores."""

import statistics

import numpy as np
import torch

from benchmarks.timing import alternate, table, title, verdict
from dpstudy.features.scaling import scale
from dpstudy.features.scatternet import ScatterNet

IMAGES, FASTER, ALIKE = 512, 2.0, 1e-4  # images of one repeat; asked: at least, at most
SHAPES = {"32 x 32 RGB": ((32, 32, 3), "imagenet"), "28 x 28 grey": ((28, 28, 1), "unit")}


def run(threads: int, repeats: int) -> None:
    """Print images a second, the ratio, and the largest difference."""
    from kymatio.scattering2d.frontend.torch_frontend import ScatteringTorch2D as Scattering2D

    torch.set_num_threads(threads)
    title("(f) ScatterNet features")
    print(f"{IMAGES} images, {threads} thread(s), CPU seconds, median of {repeats} alternating repeats; kymatio in one")
    print("batch of 128 images, its fastest here.\n")
    lines, ratios, apart = [], {}, {}
    for name, (shape, scaling) in SHAPES.items():
        images = np.random.default_rng(0).integers(0, 256, (IMAGES, *shape)).astype(np.uint8)
        ours, plain = ScatterNet(scaling), Scattering2D(J=2, shape=shape[:2], L=8)

        def kymatio(images=images, plain=plain, scaling=scaling) -> np.ndarray:
            planes = torch.from_numpy(np.ascontiguousarray(scale(images, scaling).transpose(0, 3, 1, 2)))
            with torch.inference_mode():
                return torch.cat([plain(part) for part in planes.split(128)]).flatten(1, 2).numpy()

        largest = apart[name] = np.abs(kymatio() - ours(images)).max()
        seconds = alternate({"kymatio": kymatio, "ours": lambda i=images, o=ours: o(i)}, repeats)
        median = {task: statistics.median(values) for task, values in seconds.items()}
        ratios[name] = median["kymatio"] / median["ours"]
        rates = [f"{IMAGES / median[task]:.0f}" for task in ("kymatio", "ours")]
        lines.append((name, *rates, f"{ratios[name]:.2f}", f"{largest:.0e}"))
    table(("images", "kymatio, images/s", "dpstudy, images/s", "ratio", "largest difference"), lines)
    for name, ratio in ratios.items():
        print(
            f"{name}: {ratio:.2f} times as fast, at least {FASTER} asked: {verdict(ratio >= FASTER)}; "
            f"apart {apart[name]:.0e}, at most {ALIKE:.0e} asked: {verdict(apart[name] <= ALIKE)}"
        )
