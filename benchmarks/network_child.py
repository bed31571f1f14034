"""One way to the clipped gradient sum of a network, in a process of its own: prints its seconds and peak memory.

On a GPU where there is one (its seconds and its memory), else on the CPU (CPU seconds, memory of the process).
"""

import json
import resource
import sys
import time
import warnings

import torch

from benchmarks.ways import Ways
from dpstudy.core.allocator import keep_freed_memory


def now(where: torch.device) -> float:
    """Seconds: of the clock once the GPU is done, or of this process on the CPU."""
    if where.type == "cpu":
        return time.process_time()
    torch.cuda.synchronize()
    return time.perf_counter()


if __name__ == "__main__":
    keep_freed_memory()  # as our jobs do; for all ways, so that none is slowed down by page faults
    warnings.filterwarnings("ignore")
    request = json.loads(sys.argv[1])
    torch.set_num_threads(request["threads"])
    ways = Ways(request["network"], request["batch"], request["copies"], request["physical"])
    task = ways[request["way"]]
    total, seconds = task(), []
    for _ in range(request["repeats"]):
        started = now(ways.where)
        task()
        seconds.append(now(ways.where) - started)
    largest = max(float(value.abs().max()) for value in total)
    check = [float(value.double().square().sum()) for value in total]
    if ways.where.type == "cpu":
        gib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    else:
        gib = torch.cuda.max_memory_allocated() / 2**30
    print(json.dumps({"seconds": seconds, "gib": gib, "check": sum(check) ** 0.5, "largest": largest}))
