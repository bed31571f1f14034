"""De-duplication by alignment: seconds to describe, search and align more and more public images."""

import resource
import tempfile
import time
from pathlib import Path

import numpy as np

from benchmarks.curve import Curve

SHARD, PRIVATE = 10_000, 2_000
SIZES = (20_000, 50_000, 100_000)
PROJECTED = 14_000_000, 50_000  # public and private images


def run(threads: int, repeats: int, out: str | None = None) -> None:
    """Print the cost curve and what it comes to for 14 million public images; with `out`, draw it there.

    `repeats` is not used.
    """
    import torch

    from dpstudy.core.allocator import keep_freed_memory
    from dpstudy.dedup.basis import fit_basis
    from dpstudy.dedup.describe import DEFAULT_EMBEDDING, describe_all
    from dpstudy.dedup.jobs import Shard, align_shard, search_shard
    from dpstudy.features import open_extractor

    keep_freed_memory()
    torch.set_num_threads(threads)
    extractor = open_extractor(DEFAULT_EMBEDDING)
    random = np.random.default_rng(0)
    print(f"{PRIVATE} private images of 32 x 32 in colour against public ones in shards of {SHARD}")
    curve = Curve("dedup", "public images", "de-duplication against public images")
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)

        def describe(name: str, images: np.ndarray, private: bool) -> tuple[Shard, float]:
            started = time.perf_counter()
            described = describe_all(images, extractor, DEFAULT_EMBEDDING, private)
            taken = time.perf_counter() - started
            described.write(folder / f"{name}.safetensors", private)
            _store(folder / name, images)
            return Shard(str(folder / name), 0, str(folder / f"{name}.safetensors")), taken

        mine, own_seconds = describe("own", pictures(PRIVATE, random), True)
        print(f"describing a private image: {1000 * own_seconds / PRIVATE:.1f} ms")
        shards, found, describing, searching = [], [], 0.0, 0.0
        for number in range(SIZES[-1] // SHARD):
            shard, seconds = describe(f"web-{number}", pictures(SHARD, random), False)
            describing += seconds
            shards.append(("train", shard))
            if number == 0:
                fit_basis([each.description for _, each in shards], folder / "basis.safetensors")
            for _, each in shards[len(found) :]:
                started = time.perf_counter()
                found.append(folder / f"found-{len(found)}.safetensors")
                search_shard(each, [("own", mine)], folder / "basis.safetensors", found[-1])
                searching += time.perf_counter() - started
            rows = len(shards) * SHARD
            if rows in SIZES:
                started = time.perf_counter()
                align_shard(shards, found, ("own", "train"), "own", mine, folder / "basis.safetensors", folder / "part")
                aligning = time.perf_counter() - started
                peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
                print(
                    f"{rows:7d} public images: describe {describing:6.1f} s, search {searching:6.1f} s,"
                    f" align {aligning:6.1f} s; peak so far {peak:.2f} GiB"
                )
                for step, seconds in (("describe", describing), ("search", searching), ("align", aligning)):
                    curve.add(step, rows, seconds)
        each = describing / len(shards) / SHARD, searching / len(shards) / SHARD / PRIVATE
        public, private = PROJECTED
        hours = (public * each[0] / 3600, public * private * each[1] / 3600, aligning / PRIVATE * private / 3600)
        print(
            f"projected, {public} public and {private} private images, core hours: describe {hours[0]:.1f}, search"
            f" {hours[1]:.1f}, align {hours[2]:.1f}"
        )
    curve.finish(out)


def pictures(count: int, random: np.random.Generator) -> np.ndarray:
    """(count, 32, 32, 3) uint8 of smooth random colours with edges: no two alike."""
    coarse = random.normal(size=(count, 3, 8, 8)).astype(np.float32)
    rows = np.repeat(np.eye(8, dtype=np.float32), 4, axis=0)
    smooth = (np.roll(rows, 1, 0) + 2 * rows + np.roll(rows, -1, 0)) / 4
    planes = smooth @ coarse @ smooth.T + 0.5 * np.sign(smooth @ random.normal(size=(count, 1, 8, 8)) @ smooth.T)
    return np.clip(128 + 60 * planes, 0, 255).astype(np.uint8).transpose(0, 2, 3, 1)


def _store(folder: Path, images: np.ndarray) -> None:
    """A data set of one shard, whose ids the alignment reads."""
    from dpstudy.data import shards
    from dpstudy.data.records import Records

    ids = np.array([f"{folder.name}-{row}" for row in range(len(images))], dtype=object)
    shards.write_shard(folder / "part-00000.parquet", Records(ids, images, np.zeros(len(images), np.int32)), False)
    shards.write_manifest(
        folder / "manifest.json",
        dataset=folder.name,
        split="train",
        shard_paths=[folder / "part-00000.parquet"],
        classes=["thing"],
        private=False,
    )
