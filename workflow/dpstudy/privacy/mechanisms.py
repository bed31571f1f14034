"""The mechanisms, and their properties that accountants need: one class each, used as one object.

A mechanism of your own is a subclass in a file of its own, made known by `register`. Two families have closed forms,
Gaussian DP and pure DP; anything else needs an accountant too (privacy/accountants.py).
"""

from typing import Any, ClassVar

Event = Any  # the class in privacy/events.py, which imports this module

MECHANISMS: dict[str, "Mechanism"] = {}


class Mechanism:
    """The base of mechanisms: Gaussian noise on a sum, or whatever else accountants treat in its place.

    Attributes:
        name: as ledgers have it.
        bounded: one record moves the release by no more than a number that is known beforehand (its sensitivity).
        pure: a release is epsilon-DP with epsilon = 1 / noise multiplier, and not Gaussian DP.
        uneven: how much is lost depends on the place of a unit among the batches.
    """

    name: ClassVar[str]
    bounded: ClassVar[bool] = True
    pure: ClassVar[bool] = False
    uneven: ClassVar[bool] = False

    def fault(self, event: Event) -> str | None:
        """The reason why an event is invalid for this mechanism, or None."""
        return None

    def participations(self, event: Event) -> float:
        """The number of releases that the least protected unit takes part in: mu^2 x noise_multiplier^2."""
        return event.count if event.epochs is None else event.epochs

    def params(self, event: Event) -> dict:
        """Fields of the ledger's `params` that are specific to this mechanism."""
        return {}


def register(mechanism: type[Mechanism]) -> type[Mechanism]:
    """A class decorator that registers a mechanism for events, accountants and ledgers.

    Raises:
        ValueError: another one has its name.
    """
    if mechanism.name in MECHANISMS:
        raise ValueError(f"a mechanism named {mechanism.name!r} is there already")
    MECHANISMS[mechanism.name] = mechanism()
    return mechanism


@register
class Gaussian(Mechanism):
    """The Gaussian mechanism: a sum plus Gaussian noise."""

    name = "gaussian"


@register
class IteratedGaussian(Mechanism):
    """Noisy contractive steps on fixed batches in a fixed order, releasing the last iterate only (iteration.py)."""

    name = "iterated-gaussian"
    uneven = True

    def fault(self, event: Event) -> str | None:
        """The reason if steps are not whole passes over fixed batches, or None."""
        if event.epochs and not event.count % event.epochs:
            batches, rate = event.count // event.epochs, event.sampling_rate
            if (batches - 1) * rate < 1 <= batches * rate * (1 + 1e-9):
                return None
        return "iteration is over fixed batches (shuffle), all of them in each epoch"

    def participations(self, event: Event) -> float:
        """(epochs - 1)/m + 1 for the last batch, with m batches per epoch: later steps hide earlier ones."""
        epochs = event.epochs or 1
        return (epochs - 1) * epochs / event.count + 1

    def params(self, event: Event) -> dict:
        """Whether the batch order is secret or public."""
        return {"order": "secret" if event.secret_order else "public"}


@register
class LocalSensitivity(Mechanism):
    """Noise scaled to local sensitivity, which has no proved bound (anon_smoothing as published)."""

    name = "local-sensitivity-gaussian"
    bounded = False

    def fault(self, event: Event) -> str | None:
        """The reason if such runs are repeated and selected from, or None."""
        return "no bound is known for the best of several such runs" if event.trials else None


class PureMechanism(Mechanism):
    """A mechanism with pure DP, epsilon = 1 / noise multiplier, on all records or on one part."""

    pure = True

    def fault(self, event: Event) -> str | None:
        """The reason if the event is sampled or repeated, which only Gaussian releases may be, or None."""
        return f"{self.name} is neither sampled nor repeated" if event.sampling != "none" or event.trials else None


@register
class Exponential(PureMechanism):
    """The exponential mechanism: a candidate with probability proportional to exp(epsilon x score) (selection.py)."""

    name = "exponential"

    def fault(self, event: Event) -> str | None:
        """The reason if a choice is sampled or repeated, or None."""
        return "a choice is neither sampled nor repeated" if super().fault(event) else None
