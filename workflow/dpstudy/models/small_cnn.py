"""A small convolutional network for public pre-training on small images.

Three convolutions, an embedding layer and a classifier. There is no batch normalisation, so the embedding of a record
depends on that record alone.
"""

import torch
from torch import nn
from torch.nn import functional

_GRID = 4  # the feature maps are averaged to this many cells per axis before the embedding


class SmallCNN(nn.Module):
    """The network: images (n, C, H, W) in [0, 1], H and W at least 8, to logits (n, classes).

    Args:
        channels: C of the images.
        classes: the number of classes of the pre-training task.
        width: channels of the first convolution.
        embedding: width of the embedding layer, the dimension of the features.

    The buffer `centre` (embedding,) is the mean embedding of the public training set; `Centred` subtracts it.
    """

    def __init__(self, channels: int, classes: int, width: int = 32, embedding: int = 256):
        super().__init__()
        self.convolutions = nn.Sequential(
            nn.Conv2d(channels, width, 3, padding=1),
            nn.ReLU(),
            nn.Conv2d(width, width, 3, padding=1),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(width, 2 * width, 3, padding=1),
            nn.ReLU(),
            nn.AdaptiveAvgPool2d(_GRID),
            nn.Flatten(),
        )
        self.embedding = nn.Linear(2 * width * _GRID**2, embedding)
        self.classifier: nn.Module = nn.Linear(embedding, classes)
        self.centre: torch.Tensor
        self.register_buffer("centre", torch.zeros(embedding))

    def embed(self, images: torch.Tensor) -> torch.Tensor:
        """The activated embeddings (n, embedding)."""
        return torch.relu(self.embedding(self.convolutions(images)))

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """The logits (n, classes)."""
        return self.classifier(self.embed(images))


class Centred(nn.Module):
    """A module that returns a small CNN's features: images (n, C, H, W) to unit vectors (n, embedding).

    They are its embeddings, centred and scaled to L2 norm 1. Centring removes the direction that all records share,
    which would otherwise take most of a clipped record's norm; it costs no privacy, since the mean is that of public
    records.
    """

    def __init__(self, network: SmallCNN):
        super().__init__()
        self.network = network

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """The features (n, embedding)."""
        return functional.normalize(self.network.embed(images) - self.network.centre, dim=1)
