"""The memory that a network's micro-batch takes, by the network's name: for a scheduler, which builds no network."""

from dpstudy.models.names import WIDE_RESNET

LIMIT_BYTES = 3 << 29  # of a micro-batch on a CPU
LARGEST_IMAGES = 128  # of a micro-batch on a CPU, copies counted
_SMALL_MB = {
    "tanh-28": 65,
    "tanh-32": 760,
    "scatter-28": 70,
    "scatter-32": 345,
}  # of as many images; variants take less
_LENET_MB = 0.08  # of as many images, for each of their pixels
_FEW = 8  # records of a large network that the bound is enough for
_PIXELS = 32 * 32  # of the images that the numbers below are for
_WEIGHTS, _OUTPUTS = 0.092, 0.29  # millions, of a Wide ResNet's block of width 1 in all three groups: W^2 and W times


def micro_batch_mb(architecture: str, copies: int = 1, pixels: int = _PIXELS, records: int | None = None) -> int:
    """Approximate megabytes of a micro-batch on a CPU, without the network; an upper bound for unknown networks.

    Args:
        architecture: a network's name.
        copies: K of each record.
        pixels: height x width of an image.
        records: of a micro-batch, where an entry sets it; or None: as many as the engine takes. Of a network whose name
            says nothing of its size the bound is then for eight.
    """
    bound = LIMIT_BYTES / 1e6
    most = max(1, LARGEST_IMAGES // copies)
    wide = WIDE_RESNET.fullmatch(architecture)
    if not wide:
        small = _SMALL_MB | {"lenet": _LENET_MB * pixels}
        known = small.get("-".join(architecture.split("-")[:2]))
        if known is None:
            return round(bound * max(1, (records or 1) / _FEW))
        return round(known * copies * (records or most) / LARGEST_IMAGES)
    blocks, width = (int(wide[1]) - 4) // 6, int(wide[2])
    passed = 2 * _OUTPUTS * blocks * width * copies * pixels / _PIXELS
    formed = 1.5 * (_WEIGHTS * blocks * width**2 + passed / 2)
    each = 4 * (passed + formed)
    return round(each * records if records else max(each, min(bound, each * most)))
