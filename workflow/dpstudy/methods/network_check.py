"""A test, before any network is trained, that records of a batch do not influence each other.

Each record's gradient, as the engine has it beside others, is compared with that of the record alone; and once more
beside others that are another kind of picture, enormous, blank, equal to it. In float64 a few records at a time; in
float32 as many as a training takes at a time. That is evidence and no proof: code may do at its thousandth call what it
does at none before. Of this library's own networks it can be read in their code, and record by record (one_by_one.py)
nothing else has a part in a gradient.
"""

import contextlib
import copy
import math
from collections.abc import Hashable, Iterator

import torch
from torch import nn

from dpstudy.core.errors import StudyError
from dpstudy.methods.network_refusals import check_scores, failures_of
from dpstudy.methods.one_by_one import OneByOne, separate_copy
from dpstudy.methods.record_gradients import RecordGradients

Engine = RecordGradients | OneByOne
_RECORDS, _COPIES = 3, 2
_TOLERANCE = 1e-6  # relative: the network's code may compute some steps in float32
_MOVED = 0.05  # how far parameters are moved first: a branch whose gain starts at 0 would hide what is in it
_MOVED_WEIGHTS = 0.5  # over the root of their fan-in: so that signals keep their size
_SAME, _SIMILAR = 1e-5, 1e-2  # float32 tolerances, for batches of equal size with other records, and for other sizes
_LOSS = "sigmoid"  # a loss in which each class's score has a term of its own
_checked: set[tuple] = set()  # networks that this process has checked, as it may train one many times


def check_network(
    name: str,
    network: nn.Module,
    shape: tuple[int, ...],
    classes: int,
    *,
    micro_batch: int = _RECORDS,
    copies: int = 1,
    one_by_one: bool = False,
    channels_last: bool = False,
    definition: Hashable | None = None,
) -> None:
    """Refuse a network in which records of a batch influence each other; it is tested on random images only.

    Args:
        network: stays as it is.
        micro_batch, copies: of the training; K copies of each record.
        one_by_one: gradients are taken record by record.
        channels_last: as of RecordGradients.
        definition: what builds the network from its name, shape and classes: what it built is tested once in a process.
            None: the network is tested in any case.

    Raises:
        StudyError: a record's gradient or scores depend on the records beside it, on how many they are, on its place
            among them, on those before it, or on chance (or some layer is not what its rule takes it for); a pass
            changes the network's state, or fails; or a layer is refused.
    """
    trained = tuple(value.requires_grad for value in network.parameters())
    key = (definition, name, trained, *shape, classes, micro_batch, copies, one_by_one, channels_last)
    if key in _checked:
        return
    generator = torch.Generator().manual_seed(0)
    network = _moved(network, generator)

    def engine_of(network: nn.Module) -> Engine:
        engine = OneByOne(network, name=name) if one_by_one else None
        return engine or RecordGradients(network, channels_last=channels_last, name=name)

    exact = copy.deepcopy(network).double()
    with _in_float64():
        _check_few(name, exact, engine_of(exact), _Pictures(exact, shape, classes, min(copies, _COPIES), generator))
    del exact
    if micro_batch > _RECORDS and not one_by_one:
        pictures = _Pictures(network, shape, classes, copies, generator)
        _check_many(name, network, engine_of(network), pictures, micro_batch)
    if definition:
        _checked.add(key)


@contextlib.contextmanager
def _in_float64() -> Iterator[None]:
    """A context in which tensors that the network's code makes are float64, as its parameters are."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        yield
    finally:
        torch.set_default_dtype(before)


class _Pictures:
    """Random images, K copies of each, and labels, of the dtype and on the device of a network's parameters."""

    def __init__(self, network: nn.Module, shape, classes: int, copies: int, generator: torch.Generator):
        self._like, self._shape, self._generator = next(network.parameters()), shape, generator
        self.classes, self.copies = classes, copies

    def usual(self, records: int) -> torch.Tensor:
        """(records copies, ...) images of standard normal values."""
        drawn = torch.randn(records * self.copies, *self._shape, generator=self._generator, dtype=torch.float32)
        return drawn.to(self._like)

    def strange(self, records: int, beside: torch.Tensor, kind: int = 0) -> torch.Tensor:
        """(records copies, ...) extreme images of six kinds in turn, starting with `kind`.

        They are enormous, blank, tiny, bright, all one grey, or equal to the first image of `beside`.
        """
        pictures = self.usual(records).unflatten(0, (records, self.copies))
        for picture in pictures:
            grey, first = torch.full_like(picture, -2.0), beside[: self.copies]
            kinds = 1e3 * picture, 0 * picture, 1e-3 * picture, picture.abs(), grey, first
            picture.copy_(kinds[kind % len(kinds)])
            kind += 1
        return pictures.flatten(0, 1)

    def labels(self, records: int, first: int = 0) -> torch.Tensor:
        """(records,) class indices in turn, starting with that of record `first`."""
        return torch.arange(first, first + records, device=self._like.device) % self.classes

    def rows(self, records: torch.Tensor, taken: torch.Tensor) -> torch.Tensor:
        """The copies of the records that the mask `taken` selects."""
        return records.unflatten(0, (-1, self.copies))[taken].flatten(0, 1)

    def among(self, records: torch.Tensor, others: torch.Tensor, taken: torch.Tensor) -> torch.Tensor:
        """The records in the places that the mask `taken` selects, and `others` in the rest."""
        mixed = torch.cat([records, others]).unflatten(0, (-1, self.copies))
        mixed[taken] = records.unflatten(0, (-1, self.copies))
        mixed[~taken] = others.unflatten(0, (-1, self.copies))
        return mixed.flatten(0, 1)


def _check_few(name: str, network: nn.Module, engine: Engine, pictures: _Pictures) -> None:
    """Compare each of a few records, beside usual and extreme ones, with the record alone, in float64."""
    fresh, copies = separate_copy(network), pictures.copies  # of which each copy sees one record
    alone = OneByOne(fresh, name=name)
    records, labels = pictures.usual(_RECORDS), pictures.labels(_RECORDS)
    before = _state(network)
    _scores(name, separate_copy(fresh), records[:copies], pictures.classes)
    first = engine.clipped_sum(records, labels, _LOSS, math.inf, copies)
    together = {key: torch.zeros_like(value) for key, value in first.items()}
    for place in range(_RECORDS):
        part = torch.arange(_RECORDS, device=labels.device) == place
        record = pictures.rows(records, part)
        slow = alone.clipped_sum(record, labels[part], _LOSS, math.inf, copies)
        together = {key: value + slow[key] for key, value in together.items()}
        beside = pictures.among(record, pictures.strange(_RECORDS - 1, record, (_RECORDS - 1) * place), part)
        _compare(name, engine.clipped_sum(beside, labels, _LOSS, math.inf, copies, part), slow, _TOLERANCE)
        scores = pictures.rows(_scores(name, network, beside, pictures.classes), part)
        _compare_scores(name, scores, _scores(name, separate_copy(fresh), record, pictures.classes), _TOLERANCE)
    _compare(name, first, together, _TOLERANCE)
    for key, value in _state(network).items():
        if not torch.equal(value, before[key]):
            raise StudyError(f"network {name!r}: a pass changes its state {key!r}, outside the ledger")


def _check_many(name: str, network: nn.Module, engine: Engine, pictures: _Pictures, micro_batch: int) -> None:
    """Compare every second record of a micro-batch, beside usual and extreme ones, with these alone, in float32."""
    records, labels, copies = pictures.usual(micro_batch), pictures.labels(micro_batch), pictures.copies
    taken = torch.arange(micro_batch, device=labels.device) % 2 == 0
    weights = taken * torch.linspace(0.5, 1.5, micro_batch, device=labels.device)
    first = engine.clipped_sum(records, labels, _LOSS, math.inf, copies, weights)
    chosen = pictures.rows(records, taken)
    beside = pictures.among(chosen, pictures.strange(micro_batch // 2, chosen), taken)
    _compare(name, engine.clipped_sum(beside, labels, _LOSS, math.inf, copies, weights), first, _SAME)
    usual, mixed, few = (_scores(name, network, x, pictures.classes) for x in (records, beside, chosen))
    _compare_scores(name, pictures.rows(mixed, taken), pictures.rows(usual, taken), _SAME)
    _compare_scores(name, few, pictures.rows(usual, taken), _SIMILAR)
    fewer = engine.clipped_sum(chosen, labels[taken], _LOSS, math.inf, copies, weights[taken])
    _compare(name, fewer, first, _SIMILAR)


def _compare(name: str, found: dict, expected: dict, tolerance: float) -> None:
    scale = tolerance * _largest(expected)
    for key, value in found.items():
        if _far(value, expected[key], scale):
            raise StudyError(
                f"network {name!r}: the gradient of one record with respect to {key!r} is not what it is without other "
                "records, so that it cannot be bounded; choose another network"
            )


def _scores(name: str, network: nn.Module, records: torch.Tensor, classes: int) -> torch.Tensor:
    """(n, m) scores of the network, as computed in prediction."""
    with torch.no_grad(), failures_of(name):
        scores = network(records)
    check_scores(scores, records, name)
    if scores.shape[1] != classes:
        raise StudyError(f"network {name!r}: gives {scores.shape[1]} scores where there are {classes} classes")
    return scores


def _compare_scores(name: str, found: torch.Tensor, expected: torch.Tensor, tolerance: float) -> None:
    if _far(found, expected, tolerance * float(expected.abs().max())):
        raise StudyError(
            f"network {name!r}: what it gives for one record is not what it is without other records, so that no "
            "record's part in it can be bounded; choose another network"
        )


def _largest(gradients: dict) -> float:
    return max(float(value.abs().max()) for value in gradients.values())


def _far(one: torch.Tensor, other: torch.Tensor, tolerance: float) -> bool:
    return not bool(((one - other).abs() <= tolerance).all())  # so that NaN counts as different


def _moved(network: nn.Module, generator: torch.Generator) -> nn.Module:
    """A copy of the network whose weights are moved away from their initial values."""
    with failures_of(""):
        network = copy.deepcopy(network)
    with torch.no_grad():
        for value in network.parameters():
            inputs = value[0].numel() if value.ndim > 1 else 1
            far = _MOVED_WEIGHTS * inputs**-0.5 if inputs > 1 else _MOVED
            value.add_((far * torch.randn(value.shape, generator=generator)).to(value))
    return network


def _state(network: nn.Module) -> dict[str, torch.Tensor]:
    """Copies of the parameters and buffers."""
    return {key: value.clone() for key, value in [*network.named_parameters(), *network.named_buffers()]}
