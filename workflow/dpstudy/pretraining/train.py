"""The training loop of a pre-training: images, steps, checkpoints, progress."""

from collections.abc import Iterator

import torch
from torch import nn
from torch.utils.data import DataLoader

from dpstudy.core.progress import progress
from dpstudy.methods.keeper import Keeper
from dpstudy.methods.ranks import Ranks
from dpstudy.pretraining.pictures import Pictures
from dpstudy.pretraining.recipe import Recipe
from dpstudy.pretraining.rows import Order, PublicRows
from dpstudy.pretraining.run import PretrainingRun


def train(
    network: nn.Module,
    rows: PublicRows,
    recipe: Recipe,
    scaling: str,
    size: tuple[int, int],
    *,
    ranks: Ranks | None = None,
    keeper: Keeper | None = None,
    workers: int = 0,
) -> nn.Module:
    """Train a network on public rows; it is returned in evaluation mode, on the CPU.

    It must not have been used before.

    Args:
        size: (h, w) of the pictures.
        ranks: the processes that share the training, each calling this with the same arguments.
        keeper: of the checkpoint; a training that was killed goes on from it to the same end.
        workers: processes beside each that make pictures ahead; what they make does not depend on their number.

    Raises:
        StudyError: training diverged, or a file is missing or damaged.
    """
    ranks = ranks or Ranks()
    order = Order.of(recipe.seed, rows, recipe.batch_size)
    steps = recipe.steps or order.steps(recipe.epochs)
    shape = (rows.manifest["image_shape"][2], *size)
    pictures = Pictures(rows, order, recipe, scaling, size, (ranks.rank, ranks.size))
    alone = Pictures(rows, order, recipe, scaling, size, (0, 1))
    first = map(alone.__getitem__, range(steps))  # of whole batches: the same for every process
    run = PretrainingRun(network, shape, len(rows.manifest["classes"]), recipe, ranks, first)
    checkpoint = ranks.agreed(keeper.load() if keeper and ranks.first else None)
    if checkpoint:
        run.restore(*checkpoint)
    todo = range(run.done, steps)
    for step, (seen, labels) in zip(todo, _ahead(pictures, todo, workers, ranks), strict=True):
        run.step(seen, labels, len(order.at(step)[1]), steps)
        if ranks.first and keeper and keeper.due() and run.done < steps:
            keeper.save(*run.state())
    if ranks.first and keeper:
        keeper.remove()
    return run.finished()


def _ahead(pictures: Pictures, steps: range, workers: int, ranks: Ranks) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    """The items of these steps, in order, made by other processes where there are any."""
    loader = DataLoader(
        pictures, batch_size=None, sampler=steps, num_workers=workers, pin_memory=torch.cuda.is_available()
    )
    if not ranks.first:
        return iter(loader)

    def epochs(done: int) -> str:
        return f"step {steps.start + done} of {steps.stop}"

    return progress(loader, "pre-training", total=len(steps), note=epochs)
