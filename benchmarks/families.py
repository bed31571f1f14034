"""Which of timm's families of networks can be trained privately: the smallest network of each is tried."""

import concurrent.futures
import multiprocessing
import resource
import time

import torch

from dpstudy.core.errors import StudyError
from dpstudy.methods.network_check import check_network
from dpstudy.methods.one_by_one import OneByOne
from dpstudy.methods.record_gradients import RecordGradients
from dpstudy.models import networks

_SIDES = (32, 64, 96, 128, 160, 192, 224, 240, 256)  # of the images, the first that a network takes
_MEMORY = 12 << 30  # bytes of address space of each trial
_CLASSES, _STEPS, _NORM, _RATE = 4, 3, 1.0, 0.1


def smallest() -> dict[str, str]:
    """Family -> its network with the fewest parameters."""
    import timm

    found: dict[str, tuple[int, str]] = {}
    for family in timm.list_modules():
        for name in timm.list_models(module=family):
            with torch.device("meta"):
                try:
                    network = timm.create_model(name, num_classes=_CLASSES)
                except Exception:  # code that looks at numbers: another of its family will do
                    continue
            size = sum(value.numel() for value in network.parameters())
            found[family] = min(found.get(family, (size, name)), (size, name))
    return {family: name for family, (_, name) in found.items()}


def tried(name: str) -> tuple[str, int, str]:
    """How a network is trained ("by layers", "record by record", or why it is refused), on images of which side, and
    its whole name; checked against records alone, and trained for three steps."""
    said = ""
    for whole in (f"timm:{name}", f"timm:{name}+frozen"):
        for side in _SIDES:
            try:
                torch.manual_seed(0)
                network = networks.build(whole, (3, side, side), _CLASSES)
            except StudyError as error:
                said = said or str(error)
                continue
            for alone in (False, True):
                try:
                    _train(whole, network, side, alone)
                    return ("record by record" if alone else "by layers"), side, whole
                except StudyError as error:
                    said = str(error)
            break
        if "mixes the records" not in said:
            break
    return f"refused: {said}", 0, f"timm:{name}"


def _train(name: str, network: torch.nn.Module, side: int, alone: bool) -> None:
    check_network(name, network, (3, side, side), _CLASSES, one_by_one=alone)
    engine = OneByOne(network, name=name) if alone else RecordGradients(network, name=name)
    images, labels = torch.randn(3, 3, side, side), torch.arange(3) % _CLASSES
    weights = {key: value for key, value in network.named_parameters() if value.requires_grad}
    for _ in range(_STEPS):
        sums = engine.clipped_sum(images, labels, "softmax", _NORM)
        with torch.no_grad():
            for key, value in sums.items():
                weights[key].sub_(_RATE * value.float())
    if not all(torch.isfinite(value).all() for value in weights.values()):
        raise StudyError(f"network {name!r}: weights are not finite after {_STEPS} steps")


def _alone(name: str, threads: int) -> tuple[str, int, str, float]:
    """`tried`, and its CPU seconds, in a process that may not take all of the memory."""
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    torch.set_num_threads(threads)
    started = time.process_time()
    try:
        outcome = tried(name)
    except (MemoryError, RuntimeError) as error:  # torch's for memory that there is not
        outcome = f"failed: {(str(error) or type(error).__name__).splitlines()[0]}", 0, f"timm:{name}"
    return *outcome, time.process_time() - started


def run(threads: int, repeats: int) -> None:
    """Print a line for each family, and how many are accepted."""
    counts = {"by layers": 0, "record by record": 0}
    families = smallest()
    spawned = multiprocessing.get_context("spawn")
    with concurrent.futures.ProcessPoolExecutor(1, spawned, max_tasks_per_child=1) as processes:
        for family, name in families.items():
            how, side, whole, seconds = processes.submit(_alone, name, threads).result()
            if how in counts:
                counts[how] += 1
            print(family, whole, side, how[:100], f"{seconds:.0f}", sep=" | ", flush=True)
    print(f"{sum(counts.values())} of {len(families)} families: {counts}")
