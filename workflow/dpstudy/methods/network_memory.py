"""What a micro-batch of a network takes in memory, from its name alone: for a scheduler, which builds no network."""

from dpstudy.models.names import WIDE_RESNET

LIMIT_BYTES = 3 << 29  # of a micro-batch on a CPU
LARGEST_IMAGES = 128  # of a micro-batch on a CPU, copies counted
_SMALL_MB = {
    "tanh-28": 55,
    "tanh-32": 660,
    "scatter-28": 60,
    "scatter-32": 300,
}  # of as many images; variants take less
_LENET_MB = 0.08  # of as many images, for each of their pixels
_PIXELS = 32 * 32  # of the images that the numbers below are for
_WEIGHTS, _OUTPUTS = 0.092, 0.29  # millions, of a Wide ResNet's block of width 1 in all three groups: W^2 and W times


def micro_batch_mb(architecture: str, copies: int = 1, pixels: int = _PIXELS) -> int:
    """Megabytes that a micro-batch takes on a CPU beside the network, about; the bound where the network is unknown.

    Args:
        architecture: a network's name.
        copies: K of each record.
        pixels: height x width of an image.
    """
    bound = LIMIT_BYTES / 1e6
    if architecture == "lenet":
        return round(min(bound, _LENET_MB * pixels))
    wide = WIDE_RESNET.fullmatch(architecture)
    if not wide:
        base = "-".join(architecture.split("-")[:2])
        return round(_SMALL_MB.get(base, bound))
    blocks, width = (int(wide[1]) - 4) // 6, int(wide[2])
    passed = 2 * _OUTPUTS * blocks * width * copies * pixels / _PIXELS
    formed = 1.5 * (_WEIGHTS * blocks * width**2 + passed / 2)
    return round(min(bound, 4 * (passed + formed) * max(1, LARGEST_IMAGES // copies)))
