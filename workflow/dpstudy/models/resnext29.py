"""ResNeXt-29 (8 x 64d) for 32 x 32 images (Xie et al. 2017, section 5.3), from which tramer2021 transfers.

A 3 x 3 convolution, three stages of three bottleneck blocks with grouped convolutions, average pooling. Parameters and
buffers have the names of the implementation whose CIFAR-100 checkpoint the paper uses (github.com/bearpaw/
pytorch-classification): conv_1_3x3, bn_1, stage_{1,2,3}.stage_{1,2,3}_bottleneck_{0,1,2}.{conv_reduce, bn_reduce,
conv_conv, bn, conv_expand, bn_expand, shortcut.shortcut_conv, shortcut.shortcut_bn} and classifier.
"""

from collections import OrderedDict

import torch
from torch import nn
from torch.nn import functional

STAGES, BLOCKS, WIDEN = 3, 3, 4  # 2 + 3 * STAGES * BLOCKS = 29 layers
_STEM = 64  # channels of the first convolution; stage s ends with 64 * 2^(s-1) * WIDEN
FEATURES = _STEM * 2 ** (STAGES - 1) * WIDEN  # 1,024


class Bottleneck(nn.Module):
    """The bottleneck block relu(shortcut(x) + expand(grouped(reduce(x)))) with batch normalisation (Figure 3c)."""

    def __init__(self, channels: int, out: int, inner: int, groups: int, stride: int):
        super().__init__()
        self.conv_reduce = nn.Conv2d(channels, inner, 1, bias=False)
        self.bn_reduce = nn.BatchNorm2d(inner)
        self.conv_conv = nn.Conv2d(inner, inner, 3, stride, 1, groups=groups, bias=False)
        self.bn = nn.BatchNorm2d(inner)
        self.conv_expand = nn.Conv2d(inner, out, 1, bias=False)
        self.bn_expand = nn.BatchNorm2d(out)
        projection: OrderedDict[str, nn.Module] = OrderedDict()
        if channels != out:
            projection["shortcut_conv"] = nn.Conv2d(channels, out, 1, stride, bias=False)
            projection["shortcut_bn"] = nn.BatchNorm2d(out)
        self.shortcut = nn.Sequential(projection)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """The output (n, out, H / stride, W / stride) of maps (n, channels, H, W)."""
        inner = functional.relu(self.bn_reduce(self.conv_reduce(x)))
        inner = functional.relu(self.bn(self.conv_conv(inner)))
        return functional.relu(self.shortcut(x) + self.bn_expand(self.conv_expand(inner)))


class ResNeXt29(nn.Module):
    """The network: standardised images (n, 3, H, W) to features (n, 1024), or with `classes` to logits (n, classes).

    Args:
        classes: of a classifier on the features; 0 leaves it out.
        cardinality: groups of the grouped convolutions.
        width: channels of a group in the first stage; they double with each stage.

    Of 8 groups of 64, the default, it has 34,416,448 parameters; 34,518,948 with 100 classes.
    """

    def __init__(self, classes: int = 0, cardinality: int = 8, width: int = 64):
        super().__init__()
        self.conv_1_3x3 = nn.Conv2d(3, _STEM, 3, padding=1, bias=False)
        self.bn_1 = nn.BatchNorm2d(_STEM)
        channels = _STEM
        for stage in range(1, STAGES + 1):
            scale = 2 ** (stage - 1)
            blocks: OrderedDict[str, nn.Module] = OrderedDict()
            for block in range(BLOCKS):
                stride = 2 if stage > 1 and block == 0 else 1
                out, inner = _STEM * scale * WIDEN, cardinality * width * scale
                blocks[f"stage_{stage}_bottleneck_{block}"] = Bottleneck(channels, out, inner, cardinality, stride)
                channels = out
            self.add_module(f"stage_{stage}", nn.Sequential(blocks))
        self.classifier = nn.Linear(FEATURES, classes) if classes else nn.Identity()
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """The features (n, 1024), or the logits (n, classes)."""
        x = functional.relu(self.bn_1(self.conv_1_3x3(images)))
        for stage in range(1, STAGES + 1):
            x = self.get_submodule(f"stage_{stage}")(x)
        return self.classifier(x.mean((2, 3)))
