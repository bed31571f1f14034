"""One size in a process of its own, for smoothing.py: prints as JSON the seconds of its passes and its peak memory."""

import json
import resource
import sys
import time

import numpy as np
import torch

from dpstudy.methods.kernel_projection import point_gradients
from dpstudy.methods.local_sensitivity import local_sensitivity, neighbour_distances
from dpstudy.models.kernel_density import KernelModel

request = json.loads(sys.argv[1])
torch.set_num_threads(request["threads"])
n, dim, classes = request["n"], request["dim"], request["classes"]
generator = torch.Generator().manual_seed(0)
points = torch.randn(n, dim, generator=generator)
labels, variances = torch.arange(n) % classes, torch.ones(n)
batch, everyone = torch.arange(request["batch"]), torch.arange(n)
model = KernelModel(
    np.eye(dim, dtype=np.float32), points.numpy(), variances.numpy(), labels.numpy().astype(np.int32), classes
)
queries = torch.randn(request["queries"], dim, generator=generator).numpy()
tasks = {
    "neighbours": lambda: neighbour_distances(points, 5),
    "sensitivities": lambda: local_sensitivity(points, variances, "share"),
    "gradients": lambda: point_gradients(points, variances, labels, batch, everyone, 10.0, classes),
    "scores": lambda: model.scores(queries),
}
seconds = {}
for name, task in tasks.items():
    started = time.process_time()
    task()
    seconds[name] = time.process_time() - started
print(json.dumps({"seconds": seconds, "gib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20}))
