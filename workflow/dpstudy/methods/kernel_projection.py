"""Training a projection with the contrastive loss of kernel densities (anon_smoothing, Eq. 1).

For each record of a mini-batch, the log of the summed kernels of its own class shall exceed that of all other points
by a margin, as Eq. 1 has it; or, class by class, the log density of its own class that of every other one. A record's
own point is left out of what it is judged by, or that point alone would satisfy the loss. The sums are over all points
(or a random part of them), and the gradient flows through both sides. It couples records: clipping it record by record
would bound nothing. Nothing here is private.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import torch

from dpstudy.methods.optimisers import Adam
from dpstudy.methods.records import Records
from dpstudy.models.kernel_density import NOWHERE, Points, blocks, log_mean, members
from dpstudy.privacy.secure_sampling import AnyGenerator

_BEGINNING = 4096  # records that the scale of the first projection is read off


@dataclass(frozen=True)
class Contrast:
    """The settings of a projection's contrastive training.

    Attributes:
        margin: m, in log densities.
        epochs, batch_size: passes, and records of a step.
        learning_rate: of Adam, relative to the root mean square of the first projection's entries.
        references: how many points the densities of a step are over; None: all.
        negatives: "pooled", all points of other classes together, or "each" class by itself.
    """

    margin: float
    epochs: int
    batch_size: int
    learning_rate: float
    references: int | None
    negatives: str = "pooled"


def projected(records: Records, projection: torch.Tensor) -> torch.Tensor:
    """(n, p) points W x of all records; those of records that are not finite are zero."""
    return torch.cat([block.features @ projection.T for block in records.blocks()])


def first_projection(records: Records, dim: int, generator: AnyGenerator) -> torch.Tensor:
    """(p, d) random orthonormal rows, scaled so that projected records have a mean variance of 1 per dimension."""
    columns = np.linalg.qr(generator.standard_normal((records.dim, dim)))[0]
    projection = torch.from_numpy(columns.T.astype(np.float32)).to(records.place.device)
    block = next(records.blocks(_BEGINNING))
    variance = (block.features @ projection.T).var(0).mean()
    return projection / variance.sqrt() if variance > 0 else projection


def train(
    records: Records,
    labels: torch.Tensor,
    projection: torch.Tensor,
    contrast: Contrast,
    smoothed: Callable[[torch.Tensor], tuple[torch.Tensor, torch.Tensor]],
    generator: AnyGenerator,
) -> Iterator[torch.Tensor]:
    """The (p, d) projection after each epoch.

    Args:
        labels: (n,) class indices or (n, m) zeros and ones.
        smoothed: maps the (n, p) points to (n, p) what is added to them, and to the (n,) variances of their kernels;
            asked once an epoch.
    """
    projection = projection.clone()
    optimiser = Adam(contrast.learning_rate * float(projection.square().mean().sqrt()), projection)
    n = len(labels)
    for _ in range(contrast.epochs):
        added, variances = smoothed(projected(records, projection))
        order = torch.from_numpy(generator.permutation(n))
        for start in range(0, n, contrast.batch_size):
            batch = order[start : start + contrast.batch_size].to(records.place.device)
            points = projected(records, projection) + added
            chosen = _references(n, contrast.references, generator).to(records.place.device)
            gradient = point_gradients(points, variances, labels, batch, chosen, contrast, records.classes)
            optimiser.step(projection, _pulled_back(records, gradient))
        yield projection.clone()


def _references(n: int, count: int | None, generator: AnyGenerator) -> torch.Tensor:
    if count is None or count >= n:
        return torch.arange(n)
    return torch.from_numpy(np.sort(generator.choice(n, count, replace=False)))


def point_gradients(
    points: torch.Tensor,
    variances: torch.Tensor,
    labels: torch.Tensor,
    batch: torch.Tensor,
    references: torch.Tensor,
    contrast: Contrast,
    classes: int,
) -> torch.Tensor:
    """(n, p) gradient of the batch's mean loss with respect to the points, computed in blocks of the batch.

    Args:
        points, variances, labels: of all n records.
        batch: (b,) rows that are judged.
        references: (r,) rows that the densities are over, ascending.
    """
    points = points.detach().requires_grad_()
    groups = members(labels[references], classes)
    for part in blocks(len(batch), len(references)):
        rows = batch[part]
        loss = batch_loss(points, variances, labels, rows, references, groups, contrast)
        (loss / len(batch)).backward()
    if points.grad is None:
        raise ValueError("no row is judged: the loss has no gradient")
    return points.grad


def batch_loss(points, variances, labels, rows, references, groups, contrast: Contrast) -> torch.Tensor:
    """The summed hinge loss of some rows: by how much each misses the margin, averaged where it has several margins.

    Of several labels a record, each label's points stand against those of the records without it.
    """
    kernels = Points(points[references], variances[references])
    place = torch.searchsorted(references, rows).clamp_max(len(references) - 1)
    itself = references[place] == rows
    logs = kernels.log_kernels(points[rows])
    mask = torch.zeros_like(logs, dtype=torch.bool)
    mask[torch.arange(len(rows), device=rows.device)[itself], place[itself]] = True
    logs = logs.masked_fill(mask, NOWHERE)
    row_labels = labels[rows]
    if labels.ndim == 1 and contrast.negatives == "pooled":
        ours = labels[references][None, :] == row_labels[:, None]
        mine, theirs = (torch.logsumexp(logs.masked_fill(~side, NOWHERE), 1) for side in (ours, ~ours))
        missed = torch.relu(contrast.margin + theirs - mine)
        return torch.where((mine > NOWHERE / 2) & (theirs > NOWHERE / 2), missed, 0.0).sum()
    if labels.ndim == 1:
        densities = torch.stack(
            [log_mean(logs, ours, (itself & (row_labels == label)).long()) for label, (ours, _) in enumerate(groups)], 1
        )
        target = densities.gather(1, row_labels[:, None])
        missed = torch.relu(contrast.margin + densities - target).scatter(1, row_labels[:, None], 0.0)
        missed = torch.where((target > NOWHERE) & (densities > NOWHERE), missed, 0.0)
        return missed.sum() / max(1, len(groups) - 1)
    total = logs.new_zeros(())
    for label, (ours, others) in enumerate(groups):
        bears = row_labels[:, label] != 0
        mine = log_mean(logs, ours, (itself & bears).long())
        theirs = log_mean(logs, others, (itself & ~bears).long())
        gap = torch.where(bears, mine - theirs, theirs - mine)
        missed = torch.relu(contrast.margin - gap)
        total = total + torch.where((mine > NOWHERE) & (theirs > NOWHERE), missed, 0.0).sum()
    return total / len(groups)


def _pulled_back(records: Records, gradient: torch.Tensor) -> torch.Tensor:
    """(p, d) gradient with respect to the projection, from the gradient with respect to the points."""
    total, place = gradient.new_zeros(gradient.shape[1], records.dim), 0
    for block in records.blocks():
        total.addmm_(gradient[place : place + len(block.features)].T, block.features)
        place += len(block.features)
    return total
