"""The engine on a GPU: images a second and memory of a private gradient sum, by network, precision and copies.

Against the same images without privacy, vmap and Opacus, on the same batches. On a machine without a GPU it runs on a
few images.
"""

import csv
import gc
import os
import statistics
import time
import warnings
from dataclasses import dataclass

import torch

from benchmarks.timing import table, title
from benchmarks.ways import CLIP, Ways
from dpstudy.core.arrays import place
from dpstudy.methods.record_gradients import RecordGradients
from dpstudy.models import networks

OTHERS = ("vmap", "Opacus hooks", "Opacus functorch", "Opacus ghost")
SECONDS = 1.5  # that a way is repeated for, at least
CHECKED = 8  # records, whose sums are held against float64


@dataclass(frozen=True)
class Case:
    """What is measured together; images of 32 x 32 but where it says otherwise."""

    network: str
    precision: str
    copies: int = 1
    images: int = 4096
    physical: int = 512  # images
    compiled: bool = False
    side: int = 32
    ways: tuple[str, ...] = ("plain", "dpstudy")


CASES = (  # in order of worth: a machine may be there for a while only
    Case("wrn-16-4", "bfloat16", ways=("plain", "dpstudy", *OTHERS)),
    Case("wrn-16-4", "tf32"),
    Case("wrn-16-4", "float32", ways=("plain", "dpstudy", "vmap")),
    Case("wrn-16-4", "bfloat16", copies=4, ways=("plain", "dpstudy", "vmap")),
    Case("wrn-16-4", "bfloat16", copies=16, ways=("plain", "dpstudy", "vmap")),
    Case("wrn-16-4-gn", "bfloat16", ways=("plain", "dpstudy", *OTHERS)),
    Case("wrn-16-4", "bfloat16", compiled=True),
    Case("wrn-28-10", "bfloat16", images=512, physical=64, ways=("plain", "dpstudy", "Opacus functorch")),
    Case("nf-resnet-50", "bfloat16", images=256, physical=64, side=224, ways=("plain", "dpstudy", "vmap")),
    Case("timm:efficientnet_lite0+gn", "bfloat16", images=256, physical=64, side=224),
    Case("wrn-28-10", "bfloat16", copies=16, images=512, physical=64),
    Case("nf-resnet-50", "tf32", images=256, physical=64, side=224),
)


def run(_threads: int, repeats: int, rows: int | None = None, out: str | None = None) -> None:
    """Print the table, and write gpu.csv into `out`."""
    place(tensors=True)  # the settings of a training
    warnings.filterwarnings("ignore")
    gpu = torch.cuda.get_device_name() if torch.cuda.is_available() else None
    title("Clipped gradient sums on a GPU")
    print(f"{gpu or 'No GPU here: a few images on the CPU'}, torch {torch.__version__}", flush=True)
    if gpu is None:
        rows = rows or 4
    lines: list[dict] = []
    for case in CASES:
        measured = _measure(case, repeats, rows)
        lines += measured
        for line in measured:
            print(",".join(str(value) for value in line.values()), flush=True)
        if out and lines:
            _write(os.path.join(out, "gpu.csv"), [{"gpu": gpu or "none", **line} for line in lines])
    table(tuple(lines[0]), [tuple(line.values()) for line in lines])


def _measure(case: Case, repeats: int, rows: int | None) -> list[dict]:
    images = min(case.images, rows * case.copies) if rows else case.images
    options = {"precision": case.precision, "compiled": case.compiled, "shape": (3, case.side, case.side)}
    options |= {"copies": case.copies, "physical": max(1, case.physical // case.copies)}
    lines: list[dict] = []
    for way in case.ways:
        facts = {"network": case.network, "side": case.side, "precision": case.precision, "compiled": case.compiled}
        facts |= {"copies": case.copies, "way": way}
        try:
            ways = Ways(case.network, max(1, images // case.copies), **options)
            seconds, gib = _timed(ways[way], repeats)
            off = f"{_off(case, ways):.1e}" if way == "dpstudy" else ""
        except Exception as error:  # another library's refusal, or no memory
            print(f"{case.network}, {way}: {' '.join(str(error).split())[:200]}", flush=True)
            continue
        finally:
            gc.collect()
            if torch.cuda.is_available():
                torch.cuda.empty_cache()
        speed = len(ways.images) / seconds
        plain = next((line["images_per_second"] for line in lines if line["way"] == "plain"), speed)
        facts |= {"images_per_second": round(speed), "times_plain": round(plain / speed, 2)}
        lines.append(facts | {"gib": round(gib, 2), "off_float64": off})
    return lines


def _timed(task, repeats: int) -> tuple[float, float]:
    """Median seconds, and the most memory of the GPU in GiB."""
    on_gpu = torch.cuda.is_available()
    task()
    if on_gpu:
        torch.cuda.synchronize()
        torch.cuda.reset_peak_memory_stats()
    seconds: list[float] = []
    while len(seconds) < repeats or (on_gpu and sum(seconds) < SECONDS):
        started = time.perf_counter()
        task()
        if on_gpu:
            torch.cuda.synchronize()
        seconds.append(time.perf_counter() - started)
    return statistics.median(seconds), torch.cuda.max_memory_allocated() / 2**30 if on_gpu else 0.0


def _off(case: Case, ways: Ways) -> float:
    """How far the sums of a few records are from those in float64, relative to the latter's norm.

    Some 2e-6 in float32, and some 4e-3 where a single ReLU of them all falls to the other side of zero.
    """
    records = min(CHECKED, ways.batch)
    part, labels = ways.images[: records * case.copies], ways.labels[:records]
    laid = networks.is_laid_channels_last(case.network)
    precision = "bfloat16" if case.precision == "bfloat16" else "float32"
    ours = RecordGradients(ways.network, precision, channels_last=laid)
    found = ours.clipped_sum(part, labels, "softmax", CLIP, case.copies)
    exact = RecordGradients(ways.network.double()).clipped_sum(part.double(), labels, "softmax", CLIP, case.copies)
    squares = [((found[name] - exact[name]).square().sum(), exact[name].square().sum()) for name in exact]
    return float((sum(a for a, _ in squares) / sum(b for _, b in squares)) ** 0.5)


def _write(path: str, lines: list[dict]) -> None:
    with open(path, "w", newline="") as file:
        writer = csv.DictWriter(file, list(lines[0]))
        writer.writeheader()
        writer.writerows(lines)
