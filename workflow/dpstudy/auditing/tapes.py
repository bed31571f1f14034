"""Noise sources of runs that are attacked: one that notes what it releases, a tape of it, and one without noise.

None of them is ever given records: canaries only.
"""

import numpy as np

from dpstudy.privacy.noise import NoiseSource


class EnoughError(Exception):
    """All releases that the attacker looks at were made."""


class Watched(NoiseSource):
    """The noise of a run that is attacked, which ends with its release number `last`, if that is given."""

    transcript: list[tuple[str, int, str, np.ndarray]]
    symmetric: set[str]  # releases of symmetric matrices

    def __init__(self, mode: str, shared: bool, last: int | None, *key: object):
        super().__init__(mode, "audit", *key, shared=shared)
        self.transcript, self.symmetric = [], set()
        self._last = last

    def released(self, name, query, std, step=0, tensor="", symmetric=False):
        """As of every run.

        Raises:
            EnoughError: it was the last one.
        """
        noisy = super().released(name, query, std, step, tensor, symmetric)
        if symmetric:
            self.symmetric.add(name)
        if len(self.transcript) == self._last:
            raise EnoughError
        return noisy


class Replay(NoiseSource):
    """A tape: every release is that of the run that is attacked, and what would have been noised is kept.

    Every record takes part in every sample.
    """

    def __init__(self, run: NoiseSource):
        super().__init__(run.mode, *run.key)
        self.queries: list[np.ndarray] = []
        if run.transcript is None:
            raise ValueError("the run that is attacked kept no transcript")
        self._tape = run.transcript

    def released(self, name, query, std, step=0, tensor="", symmetric=False):
        """What was released in the run.

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
        """A generator whose samples have everybody; for what is no sample, the run's own."""
        return Everybody(super().sampling(name))


class Everybody:
    """A generator whose samples have everybody; all else is as it gives it."""

    def __init__(self, generator: np.random.Generator):
        self._generator = generator

    def random(self, size=None, dtype=np.float64):
        return np.zeros(size, dtype)

    def __getattr__(self, name):
        return getattr(self._generator, name)


class Silent(NoiseSource):
    """Releases without noise: of canaries, never of records."""

    def released(self, name, query, std, step=0, tensor="", symmetric=False):
        """The query itself."""
        self.drawn[name] += 1
        return np.array(query)
