"""Noise sources for audited runs: one that records releases, one that replays them, and one without noise.

None of them is ever given records: canaries only.
"""

import numpy as np

from dpstudy.methods.private_normalisation import MEAN, SQUARE
from dpstudy.privacy.noise import NoiseSource

_WHO = ("batches", "groups", "order", MEAN, SQUARE)  # draws of who takes part in a release, or when


class EnoughError(Exception):
    """Stops a training once all releases that the attacker looks at are made."""


class Attacked(NoiseSource):
    """The noise source of an attacked run: what tells nothing of records can be drawn again by its replays.

    In mode "secure" noise and who takes part are the system's; a network's start and copies are of seeded streams: an
    attacker who replays the run with another start would look for gradients that nobody has.
    """

    def sampling(self, name):
        """The generator of what is drawn."""
        return super().sampling(name) if name in _WHO else self._stream("sampling", name)


class Watched(Attacked):
    """The noise source of the attacked run, which stops after release number `last` where that is given."""

    transcript: list[tuple[str, int, str, np.ndarray]]
    symmetric: set[str]  # releases of symmetric matrices

    def __init__(self, mode: str, shared: bool, last: int | None, *key: object):
        super().__init__(mode, "audit", *key, shared=shared)
        self.transcript, self.symmetric = [], set()
        self._last = last

    def released(self, name, query, std, step=0, tensor="", symmetric=False):
        """The noisy release, recorded.

        Raises:
            EnoughError: it was the last one.
        """
        noisy = super().released(name, query, std, step, tensor, symmetric)
        if symmetric:
            self.symmetric.add(name)
        if len(self.transcript) == self._last:
            raise EnoughError
        return noisy


class Replay(Attacked):
    """A noise source that returns the attacked run's releases and keeps the exact queries behind them.

    Every record takes part in every sample.
    """

    def __init__(self, run: NoiseSource):
        super().__init__(run.mode, *run.key)
        self.queries: list[np.ndarray] = []
        if run.transcript is None:
            raise ValueError("the run that is attacked kept no transcript")
        self._tape = run.transcript

    def released(self, name, query, std, step=0, tensor="", symmetric=False):
        """The attacked run's release at this point.

        Raises:
            RuntimeError: the method releases something else than it did.
            EnoughError: it was the last one.
        """
        expected, at, part, noisy = self._tape[len(self.queries)]
        if (expected, at, part) != (name, step, tensor):
            raise RuntimeError(f"the run released {expected!r} at step {at}, its repetition {name!r} at step {step}")
        self.queries.append(np.array(query))
        if len(self.queries) == len(self._tape):
            raise EnoughError
        return noisy.copy()

    def sampling(self, name):
        """A generator whose samples include every record; other draws are the run's own."""
        return Everybody(self._stream("sampling", name))


class Everybody:
    """A generator whose Poisson samples include every record; other draws are passed through."""

    def __init__(self, generator: np.random.Generator):
        self._generator = generator

    def random(self, size=None, dtype=np.float64):
        return np.zeros(size, dtype)

    def __getattr__(self, name):
        return getattr(self._generator, name)


class Silent(NoiseSource):
    """A noise source that adds no noise; for canaries only, never for records."""

    def released(self, name, query, std, step=0, tensor="", symmetric=False):
        """The exact query, without noise."""
        self.drawn[name] += 1
        return np.array(query)
