"""Noise sources that replay a run's releases and choices while the method trains on other records.

What a method makes of its releases is post-processing, and private with them, if nothing else of the records enters it.
So a run is recorded, and made again on other records, where each release and each choice is that of the first run: all
that it gives must be the same, byte for byte. No record that anybody owns is used.
"""

from dataclasses import dataclass, field

import numpy as np

from dpstudy.core.errors import StudyError
from dpstudy.privacy.noise import NoiseSource

TRIALS = 4  # of tuning by repeats, whose number is secret and might be one


class LeakError(StudyError):
    """A method's output depends on private records other than through its releases."""


@dataclass
class Tape:
    """The releases, noise and choices of a run, keyed by noise source, kind and name."""

    kept: dict[tuple, tuple] = field(default_factory=dict)
    played: set[tuple] = field(default_factory=set)

    def record(self, key: tuple, value: tuple) -> None:
        """Store one release, draw or choice."""
        self.kept[key] = value

    def play(self, key: tuple) -> tuple:
        """The stored release, draw or choice.

        Raises:
            LeakError: it made no such thing.
        """
        if key not in self.kept:
            raise LeakError(
                f"{_said(key)} is made, which was not with other records: what is released must not depend on them"
            )
        self.played.add(key)
        return self.kept[key]

    def check_played(self) -> None:
        """Check that the later run asked for everything on the tape.

        Raises:
            LeakError: something of it was not made again.
        """
        for key in self.kept.keys() - self.played:
            raise LeakError(
                f"{_said(key)} is not made, which was with other records: what is released must not depend on them"
            )


class Recording(NoiseSource):
    """The noise source of the recorded run; sampling is drawn from the key even in mode "secure"."""

    def __init__(self, tape: Tape, mode: str, *key: object):
        super().__init__(mode, *key)
        self._tape = tape

    def released(self, name, query, std, step=0, tensor="", symmetric=False):
        noisy = super().released(name, query, std, step, tensor, symmetric)
        asked = float(std), np.shape(query), query.dtype.str, symmetric
        self._tape.record((self.key, "release", name, step, tensor), (asked, noisy.copy()))
        return noisy

    def gaussian(self, name, shape, std, step=0, tensor="", dtype=np.float32):
        noise = super().gaussian(name, shape, std, step, tensor, dtype)
        asked = float(std), tuple(shape), np.dtype(dtype).str
        self._tape.record((self.key, "noise", name, step, tensor), (asked, noise.copy()))
        return noise

    def chosen(self, name, scores, epsilon):
        index = super().chosen(name, scores, epsilon)
        self._tape.record((self.key, "choice", name, 0, ""), ((float(epsilon), len(scores)), index))
        return index

    def part(self, *key):
        return type(self)(self._tape, self.mode, *self.key, *key)

    def sampling(self, name):
        self.untouched = False
        return _SeveralTrials(self._stream("sampling", name))


class Playing(Recording):
    """The noise source of a replay, which answers from the tape and counts what is asked for.

    Raises:
        LeakError: other releases, noise or choices are asked for than in the first run, or of other deviation or shape.
    """

    def released(self, name, query, std, step=0, tensor="", symmetric=False):
        asked, noisy = self._tape.play(key := (self.key, "release", name, step, tensor))
        NoiseSource.released(self, name, np.zeros_like(query), std, step, tensor, symmetric)
        _check(key, asked, (float(std), np.shape(query), query.dtype.str, symmetric))
        return noisy.copy()

    def gaussian(self, name, shape, std, step=0, tensor="", dtype=np.float32):
        asked, noise = self._tape.play(key := (self.key, "noise", name, step, tensor))
        NoiseSource.gaussian(self, name, shape, std, step, tensor, dtype)
        _check(key, asked, (float(std), tuple(shape), np.dtype(dtype).str))
        return noise.copy()

    def chosen(self, name, scores, epsilon):
        asked, index = self._tape.play(key := (self.key, "choice", name, 0, ""))
        NoiseSource.chosen(self, name, np.zeros(len(scores)), epsilon)
        _check(key, asked, (float(epsilon), len(scores)))
        return index


def _check(key: tuple, before: tuple, now: tuple) -> None:
    if before != now:
        raise LeakError(
            f"{_said(key)} has {now[1:]} and noise {now[0]:.6g}, where it had {before[1:]} and {before[0]:.6g} with "
            "other records: neither may depend on them"
        )


def _said(key: tuple) -> str:
    _, kind, name, step, tensor = key
    return f"the {kind} {name!r}" + (f" at step {step}" if step else "") + (f" of {tensor!r}" if tensor else "")


class _SeveralTrials:
    """A generator whose number of trials is not one."""

    def __init__(self, generator: np.random.Generator):
        self._generator = generator

    def geometric(self, p, size=None):
        return TRIALS

    def __getattr__(self, name):
        return getattr(self._generator, name)
