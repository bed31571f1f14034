"""An independent accountant: lower and upper bounds on the epsilon of Gaussian releases, also with Poisson sampling.

It needs the standard library and NumPy alone, shares no code with the accountants of training, and is copied into
bundles as it is.

Removing or adding a unit has the privacy loss L = ln(P/Q); with y = exp(-L), drawn from P,

    delta(epsilon) = E[max(0, 1 - exp(epsilon) y_1 y_2 ... y_T)],

which falls with each y and is convex in it. So the y of a release may be replaced by another one of the same mean:
spread out more, delta rises; drawn together, delta falls (Jensen's inequality). On a lattice o + i h of losses:

- above: what lies between two lattice points goes to both (Doroshenko et al. 2022, "connect the dots");
- below: of three neighbouring intervals the lower and the upper half are first drawn together, into c- and c+, and
  those two into the two inner lattice points, if these lie between c- and c+, and the mean between these. Where they do
  not (the density changes faster than the lattice), each goes down to the next lattice point, which lowers delta too.

Both preserve the mean of y, so that the bracket narrows with h^2 whatever T is; rounded losses whose mean is preserved
(Gopi, Lee and Wutschitz 2021) need h sqrt(T) small, and a probability with which that fails.
A loss beyond the upper end of the lattice counts as infinite above; below, one beyond either end as minus infinity.

Composition is by FFT, after tilting: probabilities times exp(t L), such that losses near epsilon are the likely ones.
Rounding (64 units of 2^-53 a release: privacy/loss_distributions.py) and what wraps around the end of the lattice
(Chernoff's bound) then are errors relative to exp(K(t) - t epsilon), Chernoff's bound on delta itself: they are added
above and subtracted below. So deltas down to 1e-100 can be asked; below, the tails of a single release underflow.
"""

import math
from collections.abc import Sequence

import numpy as np

SMALLEST_DELTA = 1e-100
TOLERANCE = 3e-4  # of epsilon: how narrow a bracket is made, if the size of the lattice allows it
_ROUNDING = 64 * 2.0**-53
_LEAST, _MOST = 1 << 13, 1 << 21  # points of the lattice
_BEYOND = 10.0  # above epsilon, where a loss counts as infinite: exp(-10) of its probability is the price
_NEGLIGIBLE = math.log(1e8)
_NODES = 2401  # of integrals that only guess
_TILTS = np.geomspace(1e-2, 1e8, 241)


def bracket(
    releases: Sequence[tuple[float, float, int]], delta: float, tolerance: float = TOLERANCE
) -> tuple[float, float]:
    """(low, high) bounds on the epsilon of adaptively composed releases, add/remove adjacency.

    Args:
        releases: (noise multiplier > 0, sampling rate in (0, 1], count) of each.
        delta: in [SMALLEST_DELTA, 1).
        tolerance: how narrow it shall be, relative; it is wider where the lattice would have too many points.

    Raises:
        ValueError: a number is out of range.
    """
    if not SMALLEST_DELTA <= delta < 1:
        raise ValueError(f"delta {delta!r}: must be in [{SMALLEST_DELTA}, 1)")
    counts: dict[tuple[float, float], int] = {}
    square = 0.0
    for noise, rate, count in releases:
        if not (0 < noise < math.inf and 0 < rate <= 1 and count >= 1):
            raise ValueError(f"{count!r} releases of noise multiplier {noise!r} at sampling rate {rate!r}: no bound")
        if rate == 1:  # they compose to one
            square += count / noise**2
        else:
            counts[noise, rate] = counts.get((noise, rate), 0) + count
    if square:
        counts[1 / math.sqrt(square), 1.0] = 1
    ends = [_Direction(counts, sign, delta).bracket(tolerance) for sign in (1, -1)]
    return max(low for low, _ in ends), max(high for _, high in ends)


class _Direction:
    """Removing (sign 1) or adding (-1) a unit: how far losses reach, how they are tilted, and what comes of that."""

    def __init__(self, counts: dict[tuple[float, float], int], sign: int, delta: float):
        self.delta, self.counts = delta, counts
        tail = 1e-5 * delta / sum(counts.values())
        self.kinds = [_Release(noise, rate, sign, tail) for noise, rate in counts]
        self.times = np.array(list(counts.values()), dtype=float)
        # ln delta <= K(t) - t epsilon + the largest ln(1 - exp(-l)) - t l, for each t
        self.bounds = self._cumulants(_TILTS) + _TILTS * np.log(_TILTS) - (1 + _TILTS) * np.log1p(_TILTS)
        self._look_at(max(0.0, float(((self.bounds - math.log(delta)) / _TILTS).min())))

    def _look_at(self, guess: float) -> None:
        """Tilt losses towards an epsilon, and find the window that they are composed in."""
        self.guess, self.tilt = guess, (t := float(_TILTS[np.argmin(self.bounds - _TILTS * guess)]))
        untilted = self._cumulants(np.array([t]))[0] - t * guess  # ln of Chernoff's bound on delta
        margin = _NEGLIGIBLE + max(0.0, float(untilted) - math.log(self.delta))
        for kind in self.kinds:
            kind.cut(-(margin + math.log(self.times.sum())) / t, guess + _BEYOND)
        step = np.geomspace(0.3, 300, 60) / self._spread(t)
        here = self._cumulants(np.array([t]))
        high, low = ((self._cumulants(t + way * step) - here + margin) / step for way in (1, -1))
        self.high, self.step_up = float(high.min()), float(step[high.argmin()])
        self.low, self.step_down = float(-low.min()), float(step[low.argmin()])
        self.low = min(self.low, guess - 8 / t)

    def _cumulants(self, tilts: np.ndarray) -> np.ndarray:
        return sum(n * kind.cumulants(tilts) for n, kind in zip(self.times, self.kinds, strict=True))

    def _spread(self, tilt: float) -> float:
        return math.sqrt(sum(n * kind.variance(tilt) for n, kind in zip(self.times, self.kinds, strict=True)))

    def bracket(self, tolerance: float) -> tuple[float, float]:
        low, high, size = 0.0, math.inf, _LEAST
        while size <= _MOST and (math.isinf(high) or high - low > tolerance * high):
            if high < self.guess - 1 / self.tilt:
                self._look_at(high)
            h = (self.high - self.low) / size
            if max(kind.ends[1] - kind.ends[0] for kind in self.kinds) > _MOST * h:
                break
            lattices = [kind.lattices(h) for kind in self.kinds]
            high = min(high, self._solved([above for above, _ in lattices], h, size, 1))
            low = max(low, self._solved([below for _, below in lattices], h, size, -1))
            size *= 4 if size < 1 << 17 else 2
        return low, high

    def _solved(self, lattices: list, h: float, size: int, side: int) -> float:
        """The epsilon at which delta, with the errors added (side 1) or subtracted (-1), falls to what is asked."""
        t, base, chernoff, wraps, beyond = self.tilt, 0.0, 0.0, np.zeros(2), 0.0
        spectrum = np.ones(size // 2 + 1, dtype=complex)
        for count, (first, masses, infinite) in zip(self.counts.values(), lattices, strict=True):
            losses = first + h * np.arange(len(masses))
            constant, tilted = _normalised(masses, t * losses)
            centre = round(float(tilted @ np.arange(len(masses))))
            for k, step in enumerate((self.step_up, -self.step_down)):
                wraps[k] += count * _normalised(tilted, step * losses)[0]
            base, chernoff = base + count * (first + h * centre), chernoff + count * constant
            beyond += count * infinite
            folded = np.bincount((np.arange(len(tilted)) - centre) % size, weights=tilted, minlength=size)
            spectrum *= np.fft.rfft(folded) ** count
        start = math.ceil((self.low - base) / h)
        losses = base + h * (start + np.arange(size))
        wraps -= np.array([self.step_up, -self.step_down]) * losses[[-1, 0]]
        error = _ROUNDING * (sum(self.counts.values()) + len(lattices)) + float(np.exp(np.minimum(wraps, 0)).sum())
        composed = np.roll(np.fft.irfft(spectrum, size), -start)
        near = losses - self.guess > -min(30 / t, 600)
        losses, over = losses[near], losses[near] - self.guess
        first_sum = composed[near] * np.exp(-t * over)
        sums = np.cumsum(np.stack([first_sum, first_sum * np.exp(-over)])[:, ::-1], axis=1)[:, ::-1]
        asked = self.delta - (beyond if side > 0 else 0.0)
        if asked <= 0:
            return math.inf
        asked = math.exp(min(700.0, math.log(asked) - chernoff + t * self.guess))

        def delta_at(over, first_sum, second_sum):  # in units of exp(K - t guess)
            return first_sum - np.exp(over) * second_sum + side * error * np.exp(-t * over)

        more = np.flatnonzero(delta_at(over, *sums) > asked)
        if not len(more):
            return max(0.0, float(losses[0])) if side > 0 else 0.0
        last = int(more[-1])
        if last + 1 == len(losses):
            return math.inf if side > 0 else max(0.0, float(losses[last]))
        left, right = float(over[last]), float(over[last + 1])
        for _ in range(50):
            middle = (left + right) / 2
            left, right = (middle, right) if delta_at(middle, *sums[:, last + 1]) > asked else (left, middle)
        return max(0.0, self.guess + (right if side > 0 else left))


def _normalised(masses: np.ndarray, exponents: np.ndarray) -> tuple[float, np.ndarray]:
    """ln of the sum of masses x exp(exponents), and what each is of it."""
    top = float(exponents[masses > 0].max())
    scaled = masses * np.exp(np.minimum(exponents - top, 0))
    total = float(scaled.sum())
    return top + math.log(total), scaled / total


class _Release:
    """A Gaussian release of noise s on a Poisson sample of rate q: x ~ N(0, s^2) without the unit, and with it
    (1 - q) N(0, s^2) + q N(1, s^2); ln of the density ratio rises with x."""

    def __init__(self, noise: float, rate: float, sign: int, tail: float):
        self.noise, self.rate, self.sign = noise, rate, sign
        reach = noise * _quantile(tail)
        x = np.linspace(-reach, reach + 1, _NODES)
        self.logs = -(x**2) / (2 * noise**2) + (self._ratio(x) if sign > 0 else 0)
        self.logs -= math.log(np.exp(self.logs).sum())
        self.inside = self.nodes = sign * self._ratio(x)
        self.reach = float(self.nodes.min()), float(self.nodes.max())
        self.middle = float(sign * self._ratio(np.array([rate if sign > 0 else 0.0]))[0])

    def cut(self, least: float, most: float) -> None:
        """Losses outside are beyond the ends."""
        self.ends = min(max(self.reach[0], least), 0.0), max(min(self.reach[1], most), 0.0)
        self.inside = np.clip(self.nodes, *self.ends)

    def cumulants(self, tilts: np.ndarray) -> np.ndarray:
        """ln E[exp(tilt L)], about."""
        exponents = self.logs + tilts[:, None] * self.inside
        top = exponents.max(axis=1)
        return top + np.log(np.exp(exponents - top[:, None]).sum(axis=1))

    def variance(self, tilt: float) -> float:
        """Of the tilted loss, about."""
        weights = _normalised(np.exp(self.logs), tilt * self.inside)[1]
        return float(weights @ (self.inside - weights @ self.inside) ** 2)

    def _ratio(self, x: np.ndarray) -> np.ndarray:
        exponent = (2 * x - 1) / (2 * self.noise**2)
        large = exponent > 30
        small = np.log1p(self.rate * np.expm1(np.where(large, 0, exponent))) if self.rate < 1 else exponent
        return np.where(large & (self.rate < 1), exponent + math.log(self.rate), small)

    def _place(self, loss: np.ndarray) -> np.ndarray:
        """The x of a loss; infinite where there is none so small or large."""
        ratio = self.sign * loss
        if self.rate == 1:
            return 0.5 + self.noise**2 * ratio
        with np.errstate(divide="ignore", invalid="ignore"):
            part = np.expm1(np.minimum(ratio, 700)) / self.rate
            exponent = np.where(part > -1, np.log1p(part), -math.inf)
        return 0.5 + self.noise**2 * exponent

    def _masses(self, loss: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(points + 1,) probabilities of N(0, s^2) and N(1, s^2) below, between and above ascending losses."""
        x = self._place(loss)
        masses = []
        for mean in (0.0, 1.0):
            z = (x - mean) / self.noise
            tails = np.array([math.erfc(abs(v)) for v in (z * math.sqrt(0.5)).tolist()]) / 2
            if self.sign < 0:
                z = -z
            left = z <= 0
            lower = np.where(left, tails, -tails)  # Phi, or Phi - 1: neither loses digits
            between = np.diff(lower)
            between[left[:-1] & ~left[1:]] += 1
            ends = (tails[0] if left[0] else 1 - tails[0]), (1 - tails[-1] if left[-1] else tails[-1])
            masses.append(np.concatenate([ends[:1], np.maximum(between, 0), ends[1:]]))
        return masses[0], masses[1]

    def _together(self, without: np.ndarray, with_: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The probability under P of each set, and the loss of all of it as one outcome."""
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            ratio = np.log1p(self.rate * (with_ / without - 1)) if self.rate < 1 else np.log(with_ / without)
        return (1 - self.rate) * without + self.rate * with_ if self.sign > 0 else without, self.sign * ratio

    def lattices(self, h: float) -> tuple[tuple[float, np.ndarray, float], tuple[float, np.ndarray, float]]:
        """Above and below: the first loss, probabilities on a lattice from there, and that of infinite loss."""
        origin = self.middle
        for _ in range(3):  # what is narrower than the lattice lies on a point of it
            edges = self._masses(np.array([origin - h, origin + h / 2]))
            centre = float(self._together(*edges)[1][1])
            origin = centre - 1e-6 * h if math.isfinite(centre) else origin
        start = 3 * math.floor(((self.ends[0] - origin) / h + 1) / 3) - 1
        triples = max(1, math.ceil((self.ends[1] - origin - start * h) / (3 * h)))
        first = origin + start * h
        without, with_ = self._masses(first + h / 2 * np.arange(6 * triples + 1))
        (below, over), _ = self._together(without[[0, -1]], with_[[0, -1]])
        without, with_ = without[1:-1], with_[1:-1]

        def drawn(size: int) -> tuple[np.ndarray, np.ndarray]:
            return self._together(without.reshape(-1, size).sum(1), with_.reshape(-1, size).sum(1))

        def shares(drawn: tuple[np.ndarray, np.ndarray], left: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            """Of two lattice points, the left one of which is given."""
            mass, loss = drawn
            part = np.expm1(-np.clip(np.nan_to_num(loss - left), 0, h)) / math.expm1(-h)
            return mass * (1 - part), mass * part

        points = 3 * triples + 1
        left = first + h * np.arange(points - 1)
        near, far = shares(drawn(2), left)
        upper = np.zeros(points)
        upper[:-1] += near
        upper[1:] += far
        upper[0] += below

        mass, loss = (values.reshape(-1, 2) for values in drawn(3))
        left = first + h * (3 * np.arange(triples) + 1)
        together = drawn(6)
        apart = (loss[:, 0] <= left) & (left <= together[1]) & (together[1] <= left + h) & (left + h <= loss[:, 1])
        lower = np.zeros((triples, 3))
        near, far = shares(together, left)
        lower[:, 1], lower[:, 2] = np.where(apart, near, 0), np.where(apart, far, 0)
        down = np.nan_to_num((loss - left[:, None]) / h, nan=-1, posinf=2, neginf=-1)
        for k, most in ((0, 0), (1, 1)):
            place = np.clip(np.floor(down[:, k]), most - 1, most).astype(int) + 1
            np.add.at(lower, (np.arange(triples), place), np.where(apart, 0, mass[:, k]))
        return (first, upper, float(over)), (first, lower.ravel(), 0.0)


def _quantile(tail: float) -> float:
    low, high = 0.0, 37.0
    while high - low > 1e-3:
        middle = (low + high) / 2
        low, high = (middle, high) if math.erfc(middle * math.sqrt(0.5)) / 2 > tail else (low, middle)
    return high
