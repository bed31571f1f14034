"""The kinds of release, and what accountants must know of each: one small class a kind, one object a class.

A mechanism of your own is a subclass in a file of its own, made known by `register`. Two families have closed forms,
Gaussian DP and pure DP; anything else needs an accountant too (privacy/accountants.py).
"""

from typing import Any, ClassVar

Event = Any  # of privacy/events.py, which stands on this

MECHANISMS: dict[str, "Mechanism"] = {}


class Mechanism:
    """Gaussian noise on a sum, or what stands in an accountant for it.

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
        """What of an event makes no sense for this mechanism, or None."""
        return None

    def participations(self, event: Event) -> float:
        """mu^2 x noise_multiplier^2 of the unit that is protected least, where it is Gaussian DP."""
        return event.count if event.epochs is None else event.epochs

    def params(self, event: Event) -> dict:
        """What a ledger's `params` say of this mechanism alone."""
        return {}


def register(mechanism: type[Mechanism]) -> type[Mechanism]:
    """Make a mechanism known to events, accountants and ledgers; a class decorator.

    Raises:
        ValueError: another one has its name.
    """
    if mechanism.name in MECHANISMS:
        raise ValueError(f"a mechanism named {mechanism.name!r} is there already")
    MECHANISMS[mechanism.name] = mechanism()
    return mechanism


@register
class Gaussian(Mechanism):
    """A sum plus Gaussian noise."""

    name = "gaussian"


@register
class IteratedGaussian(Mechanism):
    """Noisy steps that contract, on fixed batches in one order, of which the last alone is released (iteration.py)."""

    name = "iterated-gaussian"
    uneven = True

    def fault(self, event: Event) -> str | None:
        """Its steps must be whole passes over fixed batches."""
        if event.epochs and not event.count % event.epochs:
            batches, rate = event.count // event.epochs, event.sampling_rate
            if (batches - 1) * rate < 1 <= batches * rate * (1 + 1e-9):
                return None
        return "iteration is over fixed batches (shuffle), all of them in each epoch"

    def participations(self, event: Event) -> float:
        """Later steps hide a unit's own: (epochs - 1)/m + 1 of them count, m the batches of an epoch, for the last."""
        epochs = event.epochs or 1
        return (epochs - 1) * epochs / event.count + 1

    def params(self, event: Event) -> dict:
        """Who knows the order."""
        return {"order": "secret" if event.secret_order else "public"}


@register
class LocalSensitivity(Mechanism):
    """Noise scaled by what the records at hand could change, which nothing bounds (anon_smoothing as published)."""

    name = "local-sensitivity-gaussian"
    bounded = False

    def fault(self, event: Event) -> str | None:
        """No bound is known."""
        return "no bound is known for the best of several such runs" if event.trials else None


class PureMechanism(Mechanism):
    """A mechanism whose releases are epsilon-DP, epsilon = 1 / noise multiplier, over all records or one part."""

    pure = True

    def fault(self, event: Event) -> str | None:
        """Amplification and repetition have bounds for Gaussian releases only."""
        return f"{self.name} is neither sampled nor repeated" if event.sampling != "none" or event.trials else None


@register
class Exponential(PureMechanism):
    """One of several candidates, with probability proportional to exp(epsilon x its score) (selection.py)."""

    name = "exponential"

    def fault(self, event: Event) -> str | None:
        """As of every pure mechanism, said of a choice."""
        return "a choice is neither sampled nor repeated" if super().fault(event) else None
