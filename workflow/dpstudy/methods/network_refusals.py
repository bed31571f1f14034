"""Refusals of networks that cannot be trained privately: layers that mix records, and passes that fail."""

import contextlib
from collections.abc import Iterator

import torch
from torch import nn

from dpstudy.core.errors import StudyError

ALONE = "`record_by_record: true` takes each record's gradient alone"


def check_layers(network: nn.Module) -> None:
    """Refuse layers that mix records, draw random numbers or keep state, as far as a layer's type tells.

    Raises:
        StudyError: naming the layer.
    """
    for name, layer in network.named_modules():
        kind = type(layer).__name__
        if isinstance(layer, nn.modules.batchnorm._BatchNorm):
            raise StudyError(
                f"network layer {name!r}: {kind} mixes the records of a batch, so that no record's gradient can be "
                "bounded; use group normalisation"
            )
        if getattr(layer, "track_running_stats", False):
            raise StudyError(f"network layer {name!r}: {kind} keeps statistics of the records outside the ledger")
        dropped = layer.p if isinstance(layer, nn.modules.dropout._DropoutNd) else getattr(layer, "drop_prob", 0)
        if dropped:
            raise StudyError(f"network layer {name!r}: {kind} is not for private training; set its rate to 0")


def check_ties(network: nn.Module) -> None:
    """Refuse parameters shared by layers: the sum of two gradients has not the norm of the two side by side.

    Raises:
        StudyError: naming the parameter.
    """
    names: dict[int, str] = {}
    for name, value in network.named_parameters(remove_duplicate=False):
        if names.setdefault(id(value), name) != name:
            raise StudyError(
                f"network parameter {name!r} is {names[id(value)]!r} too; no rule covers shared weights; {ALONE}"
            )


@contextlib.contextmanager
def failures_of(name: str, advice: str = "") -> Iterator[None]:
    """A context that turns exceptions of a network's code, or of torch in it, into errors of one sentence.

    Raises:
        StudyError: with the first line of it.
    """
    try:
        yield
    except (StudyError, MemoryError):
        raise
    except Exception as error:
        first = (str(error) or type(error).__name__).splitlines()[0].strip().rstrip(".")
        raise StudyError(f"{_called(name)}: a pass through it fails ({first}){advice}") from error


def check_scores(scores: torch.Tensor, records: torch.Tensor, name: str) -> None:
    """Refuse scores of a network that are not one row per record.

    Raises:
        StudyError: they are not one row for each of the records.
    """
    shape = tuple(getattr(scores, "shape", ()))
    if len(shape) != 2 or shape[0] != len(records):
        what = f"scores of shape {shape}" if shape else type(scores).__name__
        raise StudyError(f"{_called(name)}: gives {what} for {len(records)} images; must be (images, classes)")


def _called(name: str) -> str:
    return f"network {name!r}" if name else "network"
