"""The correlation of two images after aligning them by mirroring, shift, scale and rotation.

First coarsely: the middle of the private picture, at five sizes and mirrored, is laid on every place within six
pixels of the public one, at half resolution. Then finely: from the best two of these, size, aspect, angle and shift
are improved by damped Gauss-Newton steps. What counts is the correlation over the part that both show, which
brightness and contrast do not change; since copies may have been blurred or sharpened, the best over a few degrees of
blur is taken.
"""

import math

import torch
from torch.nn.functional import affine_grid, conv2d, grid_sample, interpolate, pad, unfold

_SIZES = (0.8, 0.9, 1.0, 1.11, 1.25)
_REACH = 3  # pixels at half resolution
_LIMITS = (0.35, 0.07, 0.22, 0.5, 0.5)  # log size, log aspect, radians, and shifts in half sides
_STEPS, _FINE_STEPS = 5, 5  # of Gauss and Newton, at half resolution and at full
_SLACK = 0.1  # by which a correlation at half resolution may be below what the full one will show
_BLURS = (0.0, 0.5, 0.8)  # by which one of the two may be smoother than the other
_FINEST = 0.7
_LEAST_SHARED = 0.6  # of the private picture that the public one must show
_STARTS = 2


def prepare_public(pictures: torch.Tensor) -> torch.Tensor:
    """The windows (n, places, pixels) of public images (n, C, S, S), one per shift."""
    small = _halved(pictures.mean(1, keepdim=True), 1.0)
    return _unit(unfold(small, small.shape[-1] - 2 * _REACH).transpose(1, 2))


def prepare_private(pictures: torch.Tensor) -> torch.Tensor:
    """The templates (n, forms, pixels) of private images (n, C, S, S), one per size and mirroring."""
    templates = []
    for mirror, size in _forms():
        theta = torch.tensor([[mirror * size, 0, 0], [0, size, 0]]).expand(len(pictures), 2, 3)
        grid = affine_grid(theta, list(pictures.shape), align_corners=False)
        moved = grid_sample(pictures, grid, padding_mode="border", align_corners=False)
        small = _halved(moved.mean(1, keepdim=True), 1.0)
        templates.append(_unit(small[..., _REACH:-_REACH, _REACH:-_REACH].reshape(len(pictures), -1)))
    return torch.stack(templates, 1)


def coarse(public: torch.Tensor, private: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """The best correlations (n, 2) of pairs of windows and templates, and where they are (n, 2): form * places + place.

    Windows are (n, places, pixels), templates (n, forms, pixels).
    """
    correlations, places = (private @ public.transpose(1, 2)).max(2)
    best, forms = correlations.topk(_STARTS, 1)
    return best, forms * public.shape[1] + places.gather(1, forms)


def fine(public: torch.Tensor, private: torch.Tensor, starts: torch.Tensor, least: float = -1.0) -> torch.Tensor:
    """(n,) correlations of pairs of images (n, C, S, S) after fine alignment from the starts that `coarse` found.

    Args:
        least: pairs that do not come near such a correlation at half resolution get -1: they are not followed further.
    """
    side = private.shape[-1]
    small_public, small_private = _halved(public, 1.5), _halved(private, 1.5)  # so that long steps find their way
    tried = [_improve(small_public, small_private, *_pose(start, side), _STEPS) for start in starts.T]
    poses, scores = zip(*tried, strict=True)
    best = torch.stack(scores).argmax(0)
    rows = torch.arange(len(public))
    pose, score = torch.stack(poses)[best, rows], torch.stack(scores)[best, rows]
    mirrored = starts[rows, best] // (2 * _REACH + 1) ** 2 >= len(_SIZES)
    kept = (score >= least - _SLACK).nonzero()[:, 0]
    correlations = torch.full((len(public),), -1.0)
    if not len(kept):
        return correlations
    public, private, pose, mirrored = public[kept], private[kept], pose[kept], mirrored[kept]
    pose, _ = _improve(_blurred(public, _FINEST), _blurred(private, _FINEST), pose, mirrored, _FINE_STEPS)
    correlations[kept] = _best_over_blurs(public, private, pose, mirrored)
    return correlations


def _forms() -> list[tuple[float, float]]:
    return [(mirror, size) for mirror in (1.0, -1.0) for size in _SIZES]


def _pose(start: torch.Tensor, side: int) -> tuple[torch.Tensor, torch.Tensor]:
    """(n, 5) parameters, and whether mirrored, that carry places of the private picture to those of the public one."""
    across = 2 * _REACH + 1
    form, place = start // across**2, start % across**2
    pose = torch.zeros(len(start), 5)
    pose[:, 0] = -torch.log(torch.tensor(_SIZES * 2))[form]
    pose[:, 3] = 2 * (place % across - _REACH) / (side // 2)
    pose[:, 4] = 2 * (place // across - _REACH) / (side // 2)
    return pose, form >= len(_SIZES)


def _theta(pose: torch.Tensor, mirrored: torch.Tensor) -> torch.Tensor:
    wide, high = torch.exp(pose[:, 0] + pose[:, 1]), torch.exp(pose[:, 0] - pose[:, 1])
    cos, sin, sign = torch.cos(pose[:, 2]), torch.sin(pose[:, 2]), 1 - 2 * mirrored.float()
    rows = [sign * wide * cos, -sign * high * sin, pose[:, 3], wide * sin, high * cos, pose[:, 4]]
    return torch.stack(rows, 1).view(-1, 2, 3)


class _View:
    """The public pictures under a pose, beside the private ones, over what both show."""

    def __init__(self, planes: torch.Tensor, private: torch.Tensor, pose: torch.Tensor, mirrored: torch.Tensor):
        n, channels, side, _ = private.shape
        grid = affine_grid(_theta(pose, mirrored), [n, 1, side, side], align_corners=False)
        self.mask = (grid.abs() <= 1).all(-1).float()[:, None]
        self.count = self.mask.sum((2, 3), keepdim=True).clamp_min(1)
        seen = grid_sample(planes, grid, padding_mode="border", align_corners=False)
        self.slopes = seen[:, channels:]
        self.public, self.private = self.centred(seen[:, :channels]), self.centred(private)
        power = (self.public**2).sum((1, 2, 3))
        product = (self.public * self.private).sum((1, 2, 3))
        self.gain = product / power.clamp_min(1e-8)
        score = product / (power * (self.private**2).sum((1, 2, 3))).clamp_min(1e-8).sqrt()
        self.score = torch.where(self.mask.mean((1, 2, 3)) < _LEAST_SHARED, -torch.ones_like(score), score)

    def centred(self, planes: torch.Tensor) -> torch.Tensor:
        """Less their means over what both show; 0 elsewhere."""
        return (planes - (planes * self.mask).sum((2, 3), keepdim=True) / self.count) * self.mask


def _improve(
    public: torch.Tensor, private: torch.Tensor, pose: torch.Tensor, mirrored: torch.Tensor, steps: int
) -> tuple[torch.Tensor, torch.Tensor]:
    """Poses and correlations after damped Gauss-Newton steps on the squared difference; each pair keeps a step only if
    its correlation rises."""
    planes = torch.cat([public, *_slopes(public)], 1)
    limits = torch.tensor(_LIMITS)
    damping = torch.full((len(pose),), 1e-2)
    view = _View(planes, private, pose, mirrored)
    for _ in range(steps):
        gain = view.gain.clamp_min(0.2)
        jacobian = torch.stack([*_derivatives(view, pose, mirrored, gain), view.public.flatten(1)], 1)
        rest = (view.private - gain.view(-1, 1, 1, 1) * view.public).flatten(1)
        curvature = jacobian @ jacobian.transpose(1, 2)
        ridge = torch.diag_embed(curvature.diagonal(dim1=1, dim2=2) * damping[:, None] + 1e-6)
        step = torch.linalg.solve(curvature + ridge, jacobian @ rest[..., None])[:, :5, 0].clamp(-0.15, 0.15)
        tried = torch.maximum(torch.minimum(pose + step, limits), -limits)
        looked = _View(planes, private, tried, mirrored)
        better = looked.score > view.score
        pose = torch.where(better[:, None], tried, pose)
        damping = torch.where(better, 0.3 * damping, 10 * damping).clamp(1e-4, 1e4)
        for name, value in vars(looked).items():
            kept = getattr(view, name)
            setattr(view, name, torch.where(better.view(-1, *[1] * (value.ndim - 1)), value, kept))
    return pose, view.score


def _derivatives(view: _View, pose: torch.Tensor, mirrored: torch.Tensor, gain: torch.Tensor) -> list[torch.Tensor]:
    """(n, pixels) of the public picture by each of the five parameters."""
    side = view.mask.shape[-1]
    middle = (torch.arange(side) * 2 + 1) / side - 1
    x = torch.exp(pose[:, 0] + pose[:, 1]).view(-1, 1, 1) * middle
    y = torch.exp(pose[:, 0] - pose[:, 1]).view(-1, 1, 1) * middle[:, None]
    cos, sin = torch.cos(pose[:, 2]).view(-1, 1, 1), torch.sin(pose[:, 2]).view(-1, 1, 1)
    sign = (1 - 2 * mirrored.float()).view(-1, 1, 1)
    one, none = torch.ones_like(x + y), torch.zeros_like(x + y)
    moves = [
        (sign * (cos * x - sin * y), sin * x + cos * y),
        (sign * (cos * x + sin * y), sin * x - cos * y),
        (sign * (-sin * x - cos * y), cos * x - sin * y),
        (one, none),
        (none, one),
    ]
    across, down = view.slopes.chunk(2, 1)
    changes = [across * right[:, None] + down * under[:, None] for right, under in moves]
    return [gain[:, None] * view.centred(change).flatten(1) for change in changes]


def _best_over_blurs(
    public: torch.Tensor, private: torch.Tensor, pose: torch.Tensor, mirrored: torch.Tensor
) -> torch.Tensor:
    scores = []
    for extra in _BLURS:
        softer = math.hypot(_FINEST, extra)
        for first, second in {(softer, _FINEST), (_FINEST, softer)}:
            scores.append(_View(_blurred(public, first), _blurred(private, second), pose, mirrored).score)
    return torch.stack(scores).max(0).values


def _slopes(planes: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Derivatives across and down, by half sides; 0 at the border."""
    across = torch.roll(planes, -1, 3) - torch.roll(planes, 1, 3)
    down = torch.roll(planes, -1, 2) - torch.roll(planes, 1, 2)
    across[..., 0] = across[..., -1] = 0
    down[:, :, 0] = down[:, :, -1] = 0
    return across * (planes.shape[3] / 4), down * (planes.shape[2] / 4)


def _blurred(planes: torch.Tensor, sigma: float) -> torch.Tensor:
    reach = max(1, round(3 * sigma))
    weights = torch.exp(-(torch.arange(-reach, reach + 1.0) ** 2) / (2 * sigma**2))
    weights = weights / weights.sum()
    channels = planes.shape[1]
    planes = pad(planes, (reach,) * 4, mode="replicate")
    planes = conv2d(planes, weights.view(1, 1, 1, -1).expand(channels, -1, -1, -1), groups=channels)
    return conv2d(planes, weights.view(1, 1, -1, 1).expand(channels, -1, -1, -1), groups=channels)


def _halved(planes: torch.Tensor, sigma: float) -> torch.Tensor:
    """(n, C, S // 2, S // 2): smoothed, at half resolution."""
    side = planes.shape[-1] // 2
    return interpolate(_blurred(planes, sigma), (side, side), mode="bilinear", align_corners=False)


def _unit(vectors: torch.Tensor) -> torch.Tensor:
    vectors = vectors - vectors.mean(-1, keepdim=True)
    return vectors / vectors.norm(dim=-1, keepdim=True).clamp_min(1e-6)
