"""What a study of ImageNet costs, from measured pieces: three networks' features, the whole grid, five seeds.

Every method is measured at small n and m at each network's own d, and taken to be a + b n + c m + e n m: passes over
records go with n m or with n, what is solved or drawn a class goes with m. A GPU is measured where there is one.
"""

import io
import time
from collections.abc import Callable

import numpy as np

from benchmarks.timing import table, title

RECORDS, CLASSES = 1_281_167, 1_000
EPSILONS, SEEDS, TRIALS = 9, 5, 200
CORES, NODES = 16, 10  # of a machine; machines
SMALL_N, SMALL_M = (4_000, 16_000), (10, 40)
NETWORKS = {"vit_base_patch16_224": 768, "convnext_base": 1_024, "resnet50": 2_048}  # name -> features
LONG = 10.0  # seconds: what takes longer is measured once
ONE_STEP = {"steps": 1, "batch_size": "full", "clipping_norm": 0.005, "learning_rate": 1.0}
FULL_BATCH = ONE_STEP | {"optimiser": "adam", "loss": "sigmoid", "bias": -10.0}
ENTRIES: dict[str, tuple[str, dict, int, bool]] = {  # name -> method, settings, times the steps, searched
    "least squares": ("least_squares", {}, 1, False),
    "DP-LS": ("least_squares", {"variant": "published", "clipping_norm": 0.005}, 1, True),
    "default": ("feature_covariance", {}, 1, False),
    "DP-FC, 10 steps": ("feature_covariance", {"variant": "published", "steps": 10, "learning_rate": 1.0}, 1, True),
    "DP-Adam, 10 steps": ("first_order", FULL_BATCH | {"steps": 10}, 1, True),
    "DP-Adam, 100 steps": ("first_order", FULL_BATCH | {"steps": 10}, 10, True),
}


def run(threads: int, repeats: int) -> None:
    """Print the pieces, what each entry takes, and the sum on one machine and on several."""
    import torch

    torch.set_num_threads(threads)
    gpu = torch.cuda.is_available()
    title(
        f"ImageNet: n = {RECORDS:,}, m = {CLASSES:,}; networks of {', '.join(f'{d:,}' for d in NETWORKS.values())} "
        f"features, {EPSILONS} epsilons, {SEEDS} seeds, {TRIALS} trials"
    )
    print(f"{threads} thread(s); seconds of processor, of a GPU's wall clock where it does the work. GPU: {gpu}\n")
    decoding, forward = extraction(repeats)
    print()
    spent = {"extraction": RECORDS * (len(NETWORKS) * decoding + sum(forward.values()))}
    rows = []
    for name, (method, settings, times, searched) in ENTRIES.items():
        fits, spent[name] = EPSILONS * (SEEDS + (TRIALS if searched else 0)), 0.0
        for dim in NETWORKS.values():
            preparing, fitting = (scaled(part) for part in pieces(method, settings, dim))
            taken = EPSILONS * preparing * (2 if searched else 1) + times * fitting * fits
            longest = preparing + times * fitting * (TRIALS if searched else SEEDS)
            spent[name] += taken
            seconds = f"{preparing:,.0f}", f"{times * fitting:,.0f}"
            rows.append((name, str(dim), *seconds, str(fits), hours(taken), hours(longest)))
            print(f"{' | '.join(rows[-1])}", flush=True)  # what comes next may take minutes
    print(f"\nPreparing is once a job, fitting once a seed and, where {TRIALS} trials search, once a trial.")
    table(("entry", "d", "preparing (s)", "fitting (s)", "fits", "hours in all", "longest job (h)"), rows)
    whole = sum(spent.values())
    print(
        f"\nextraction {hours(spent['extraction'])} h + training {hours(whole - spent['extraction'])} h "
        f"= {hours(whole)} h of one core"
    )
    print(f"one machine of {CORES} cores: {hours(whole / CORES)} h; {NODES} of them: {hours(whole / CORES / NODES)} h")
    print("(jobs side by side without waiting; no shorter than the longest job)")


def hours(seconds: float) -> str:
    """Hours, with a digit where they are few."""
    value = seconds / 3600
    return f"{value:,.0f}" if value >= 10 else f"{value:.2g}"


def extraction(repeats: int) -> tuple[float, dict[str, float]]:
    """Seconds an image to decode and resize, and of each network to compute features."""
    import timm
    import torch
    from PIL import Image

    pixels = np.random.default_rng(0).integers(0, 256, (8, 8, 3)).astype(np.uint8)
    photograph = Image.fromarray(pixels).resize((500, 375), Image.Resampling.BICUBIC)  # a usual size there
    file = io.BytesIO()
    photograph.save(file, "JPEG", quality=95)

    def decode() -> np.ndarray:
        return np.asarray(Image.open(io.BytesIO(file.getvalue())).convert("RGB").resize((224, 224)))

    decoding = least(lambda: [decode() for _ in range(20)], repeats) / 20
    print(f"decoding and resizing a JPEG of 500 x 375: {1e3 * decoding:.1f} ms")
    where = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    batch, found = (256 if where.type == "cuda" else 4), {}
    for name in NETWORKS:
        network = timm.create_model(name, pretrained=False, num_classes=0).eval().to(where)
        images = torch.zeros(batch, 3, 224, 224, device=where)

        def forward(network=network, images=images) -> None:
            with torch.inference_mode():
                network(images)

        found[name] = least(forward, repeats) / batch
        print(f"{name}: {1e3 * found[name]:.1f} ms an image")
    return decoding, found


def pieces(method: str, settings: dict, dim: int) -> tuple[dict[tuple[int, int], float], dict[tuple[int, int], float]]:
    """(n, m) -> seconds of preparing, and of fitting one seed, at `dim` features."""
    from dpstudy import methods
    from dpstudy.methods.problem import Problem
    from dpstudy.privacy.budget import Budget
    from dpstudy.privacy.noise import NoiseSource

    module, parameters = methods.load(method), methods.parameters(method, settings)
    preparing, fitting = {}, {}
    for n in SMALL_N:
        for m in SMALL_M:
            generator = np.random.default_rng(0)
            rows = [(generator.standard_normal((n, dim), dtype=np.float32), generator.integers(0, m, n))]
            problem = Problem(RECORDS, (dim,), m, Budget("1", 7.8e-7))
            plan = module.plan(parameters, problem)
            preparing[n, m] = least(lambda rows=rows, problem=problem: module.prepare(rows, parameters, problem), 2)
            data = module.prepare(rows, parameters, problem)

            def fit(data=data, problem=problem, plan=plan) -> None:
                module.fit(data, parameters, problem, plan, NoiseSource("seeded", "benchmark"))

            fitting[n, m] = least(fit, 2)
    return preparing, fitting


def scaled(seconds: dict[tuple[int, int], float]) -> float:
    """At the whole n and m, by a + b n + c m + e n m through the four points; no term counts less than nothing."""
    terms = np.array([[1, n, m, n * m] for n, m in seconds])
    found = np.linalg.solve(terms / terms.max(0), np.array(list(seconds.values()))) / terms.max(0)
    return float(np.maximum(found, 0) @ [1, RECORDS, CLASSES, RECORDS * CLASSES])


def least(task: Callable[[], object], repeats: int) -> float:
    """Seconds of the quickest run, after one that does not count; of the first alone where it is long."""
    import torch

    def now() -> float:
        if torch.cuda.is_available():
            torch.cuda.synchronize()
            return time.perf_counter()
        return time.process_time()

    taken = []
    for _ in range(repeats + 1):
        started = now()
        task()
        taken.append(now() - started)
        if taken[0] > LONG:
            break
    return min(taken[1:] or taken)
