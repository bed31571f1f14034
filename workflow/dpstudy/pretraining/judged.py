"""The validation accuracy of a pre-trained network on held-out public rows, and other facts for its card."""

from collections.abc import Iterator, Mapping

import numpy as np
import torch
from torch import nn

from dpstudy.features.network_input import NetworkInput
from dpstudy.features.scaling import standardised
from dpstudy.models.small_cnn import SmallCNN
from dpstudy.pretraining.pictures import planes_of, resized
from dpstudy.pretraining.rows import PublicRows

_ROWS = 512  # at once
_NEIGHBOURS, _COMPARED = 20, 10_000  # for a network without classifier: rows that vote, of so many of the training set


@torch.inference_mode()
def mean_embedding(network: SmallCNN, rows: PublicRows, scaling: str, size: tuple[int, int]) -> torch.Tensor:
    """The mean embedding (embedding,) of public rows."""
    total = torch.zeros(network.centre.shape, dtype=torch.float64)
    for records in rows.batches(_ROWS):
        planes = standardised(resized(planes_of(records.images), size), scaling)
        total += network.embed(planes).double().sum(0)
    return (total / len(rows)).float()


def validation(
    network: nn.Module, train: PublicRows, held_out: PublicRows | None, options: Mapping, size: tuple[int, int]
) -> dict:
    """The card's validation_rows, validation_accuracy (percent) and validation_by.

    Accuracy is null where there are no rows, no single labels, or one class. It is by "classifier", or for a network
    that has none by "20 nearest neighbours" among training rows.
    """
    manifest = held_out.manifest if held_out else {}
    if not held_out or not len(held_out) or manifest["multi_label"] or len(manifest["classes"]) < 2:
        return {"validation_rows": 0, "validation_accuracy": None, "validation_by": None}
    if options.get("objective") == "labels":
        right = sum(
            int((scores.argmax(1) == labels).sum()) for scores, labels in _outputs(network, held_out, options, size)
        )
        by = "classifier"
    else:
        right, by = _by_neighbours(network, train, held_out, options, size), f"{_NEIGHBOURS} nearest neighbours"
    accuracy = round(100 * right / len(held_out), 3)
    return {"validation_rows": len(held_out), "validation_accuracy": accuracy, "validation_by": by}


def _by_neighbours(network, train: PublicRows, held_out: PublicRows, options: Mapping, size) -> int:
    """How many rows have the label that most of their neighbours have, by the cosine of their features."""
    from sklearn.neighbors import KNeighborsClassifier

    known, labels = [], []
    for features, truth in _outputs(network, train, options, size):
        known.append(features)
        labels.append(truth)
        if sum(map(len, labels)) >= _COMPARED:
            break
    known_labels = np.concatenate(labels)[:_COMPARED]
    votes = KNeighborsClassifier(min(_NEIGHBOURS, len(known_labels)), metric="cosine")
    votes.fit(np.concatenate(known)[:_COMPARED], known_labels)
    return sum(
        int((votes.predict(features) == truth).sum()) for features, truth in _outputs(network, held_out, options, size)
    )


def _outputs(network: nn.Module, rows: PublicRows, options: Mapping, size) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """What the network gives for the rows, some at a time, and their labels."""
    seen = NetworkInput(network, rows.manifest["image_shape"][2], options["scaling"], size)
    for records in rows.batches(_ROWS):
        yield seen(records.images), records.labels
    network.cpu()
