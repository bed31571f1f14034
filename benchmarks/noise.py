"""Noise of a release, drawn from the operating system's entropy on a grid, against seeded noise."""

import numpy as np

from benchmarks.timing import alternate, medians, table, title, verdict
from dpstudy.privacy.noise import NoiseSource

SIZES = {"a gradient (10 x 4,097)": (10, 4097), "a Gram (2,000 x 2,000)": (2000, 2000)}
ALLOWED = 3.0  # times seeded noise
_AT_LEAST = 4_000_000  # numbers a measurement


def run(threads: int, repeats: int) -> None:
    """Print nanoseconds a number, sum and noise together, and the ratio."""
    title(f"One number of a release, nanoseconds of CPU ({threads} thread)")
    rows, worst = [], 0.0
    for name, shape in SIZES.items():
        query = np.zeros(shape, np.float32)
        times = -(-_AT_LEAST // query.size)

        def release(mode: str, query=query, times=times) -> None:
            source = NoiseSource(mode, "benchmark")
            for step in range(times):
                source.released("gradient", query, 1.3, step)

        seconds = medians(alternate({mode: lambda mode=mode: release(mode) for mode in ("seeded", "secure")}, repeats))
        each = {mode: 1e9 * value / times / query.size for mode, value in seconds.items()}
        ratio = each["secure"] / each["seeded"]
        worst = max(worst, ratio)
        rows.append((name, f"{each['seeded']:.1f}", f"{each['secure']:.1f}", f"{ratio:.2f}"))
    table(("release", "seeded", "secure", "ratio"), rows)
    print(f"goal: at most {ALLOWED:g} times seeded noise: {verdict(worst <= ALLOWED)}")
