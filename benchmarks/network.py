"""The clipped gradient sum of a Wide ResNet: against the same images without privacy, and against Opacus and vmap."""

import json
import statistics
import subprocess
import sys

from benchmarks.timing import table, title, verdict

BATCH, FEWER, PHYSICAL = 32, 8, (8, 32)
NETWORKS = ("wrn-16-4", "wrn-16-4-gn")  # with weight standardisation, and without, for which Opacus has samplers
WAYS = {
    1: ("plain", "dpstudy", "vmap", "Opacus hooks", "Opacus functorch", "Opacus ghost"),
    4: ("plain", "dpstudy", "vmap"),
    16: ("plain", "dpstudy", "vmap"),
}
LOGICAL = (32, 256)  # records a step, between which memory should not grow
GOALS = {1: 2.0, 4: 1.25, 16: 1.25}  # times plain, at most
ABOUT = """\
{BATCH} records of 32 x 32 x 3 (K = 16: {FEWER}), K copies each, float32, {threads} thread(s), CPU seconds: medians of
{repeats}; peak memory of a process of its own, Python and torch (about 0.5 GiB) included. On a machine with a GPU its
own seconds and memory. Each way but ours takes
physical batches of {PHYSICAL} records, whichever is faster (with copies {PHYSICAL[0]}); ours chooses its own. plain is
the gradient without privacy. Opacus knows no copies; where it has no sampler for a layer (weight standardisation) it
falls back on functorch.
"""


def measure(
    way: str, network: str, copies: int, physical: int, threads: int, repeats: int, batch: int = 0
) -> dict | None:
    """Run one way in a process of its own; None where it fails, which is said."""
    batch = batch or (BATCH if copies < 16 else FEWER)
    request = {"way": way, "network": network, "batch": batch, "copies": copies, "physical": min(physical, batch)}
    request |= {"threads": threads, "repeats": repeats}
    command = [sys.executable, "-m", "benchmarks.network_child", json.dumps(request)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        print(f"{way}, {network}, K = {copies}: {done.stderr.strip().splitlines()[-1]}", flush=True)
        return None
    found = json.loads(done.stdout.splitlines()[-1])
    return found | {"each": statistics.median(found["seconds"]) / batch, "physical": request["physical"]}


def run(threads: int, repeats: int) -> None:
    """Print time and memory of every way, for each network and number of copies."""
    title("(f) Clipped gradient sums of a Wide ResNet")
    print(ABOUT.format(**globals(), threads=threads, repeats=repeats))
    lines, verdicts = [], []
    for network in NETWORKS:
        for copies, ways in WAYS.items():
            best = {}
            for way in ways:
                sizes = PHYSICAL[:1] if way == "dpstudy" or copies > 1 else PHYSICAL
                found = [measure(way, network, copies, size, threads, repeats) for size in sizes]
                if any(found):
                    best[way] = min((one for one in found if one), key=lambda one: one["each"])
            lines += _lines(network, copies, best)
            verdicts += _verdicts(network, copies, best)
    table(("network", "K", "way", "ms a record", "x plain", "GiB", "norm of the sum"), lines)
    print("\n" + "\n".join(verdicts))
    _memory(threads)


def _memory(threads: int) -> None:
    """Peak memory by logical batch, without the images, which are there anyway."""
    found = {}
    for batch in LOGICAL:
        one = measure("dpstudy", NETWORKS[0], 1, PHYSICAL[0], threads, 1, batch)
        if one is None:
            return
        found[batch] = one["gib"] - batch * 4 * 3 * 32 * 32 / 2**30
    small, large = found.values()
    sizes = ", ".join(f"{gib:.2f} GiB at {batch}" for batch, gib in found.items())
    print(f"{NETWORKS[0]}, memory by logical batch: {sizes}: {verdict(large <= 1.1 * small)} (at most a tenth more)")


def _lines(network: str, copies: int, best: dict) -> list[tuple]:
    return [
        (network, copies, way, f"{1e3 * one['each']:.1f}", f"{one['each'] / best['plain']['each']:.2f}")
        + (f"{one['gib']:.2f}", f"{one['check']:.5f}")
        for way, one in best.items()
    ]


def _verdicts(network: str, copies: int, best: dict) -> list[str]:
    ratio = best["dpstudy"]["each"] / best["plain"]["each"]
    others = {way: one for way, one in best.items() if way not in ("plain", "dpstudy")}
    fastest = min(others, key=lambda way: others[way]["each"])
    gain = others[fastest]["each"] / best["dpstudy"]["each"]
    goal = GOALS[copies]
    return [
        f"{network}, K = {copies}: {ratio:.2f} times plain, at most {goal} asked: {verdict(ratio <= goal)}; "
        f"{gain:.2f} times as fast as {fastest}, at least 1 asked: {verdict(gain >= 1)}"
    ]
