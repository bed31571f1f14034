"""Privacy events: the noisy releases computed from private records."""

from collections.abc import Iterable
from dataclasses import dataclass, fields, replace

from dpstudy.privacy.mechanisms import MECHANISMS, Exponential, IteratedGaussian, LocalSensitivity, Mechanism

ITERATED, LOCAL, EXPONENTIAL = IteratedGaussian.name, LocalSensitivity.name, Exponential.name
TRUNCATED = "truncated-poisson"
SAMPLINGS = ("none", "poisson", TRUNCATED, "shuffle")
PARTS = ("train", "validation")
# What a ledger says of each event, in this order; the rest stands in its `params`, where there is some.
_STATED = ("name", "mechanism", "noise_multiplier", "sensitivity", "count", "sampling", "sampling_rate")


@dataclass(frozen=True)
class Event:
    """`count` releases of one mechanism, the unit of composition.

    Attributes:
        name: what is released; the noise source counts its draws under the same name.
        mechanism: the name of one of MECHANISMS: "gaussian"; "iterated-gaussian", `count` steps over fixed batches in
            the same order in each of `epochs`; "exponential", where a unit can only add to scores;
            "local-sensitivity-gaussian"; or one that was registered.
        noise_multiplier: noise standard deviation / L2 sensitivity (0: no noise, no guarantee); of a pure mechanism
            1/eps, which is the scale of its noise / its sensitivity (L1, or the most a unit adds to a score).
        sensitivity: L2 sensitivity of the released sum, in the units of the release; None where there is no global one
            (of "local-sensitivity-gaussian", and only there).
        count: how often it is released.
        sampling: "none" (full batch), "poisson" (each unit independently with `sampling_rate`), "truncated-poisson"
            (the same, and of a batch of more than `largest` units a uniformly random subset of `largest`), or "shuffle"
            (fixed batches of a shuffled pass: each unit takes part in `epochs` of the `count` releases).
        sampling_rate: public probability q of taking part in one release.
        epochs: for "shuffle" only, how many releases one unit takes part in.
        largest, units: for "truncated-poisson" only, the size that batches are cut to, and the public number of units.
        secret_order: of "iterated-gaussian": which batch a unit is in was drawn uniformly and is never released.
        part: "train" or "validation", where only that part of the private records is touched; each unit is in one, by a
            hash of its own.
        bands: each unit is in one of so many groups, which take turns, and noise is correlated over a turn
            (methods/banded.py): `count` turns, in each of which a unit takes part at most once; None: no groups.
        trials: the event belongs to a run that is made a secret number of times, geometric with this mean, of which the
            best run alone is released; None: it is released as it stands.
    """

    name: str
    mechanism: str
    noise_multiplier: float
    sensitivity: float | None
    count: int = 1
    sampling: str = "none"
    sampling_rate: float = 1.0
    epochs: int | None = None
    secret_order: bool = False
    largest: int | None = None
    units: int | None = None
    part: str | None = None
    trials: float | None = None
    bands: int | None = None

    def __post_init__(self):
        if self.mechanism not in MECHANISMS:
            raise ValueError(f"event {self.name!r}: unknown mechanism {self.mechanism!r}, one of {tuple(MECHANISMS)}")
        if self.sampling not in SAMPLINGS:
            raise ValueError(f"event {self.name!r}: unknown sampling {self.sampling!r}, one of {SAMPLINGS}")
        if not self.noise_multiplier >= 0:
            raise ValueError(f"event {self.name!r}: noise_multiplier must be >= 0, got {self.noise_multiplier}")
        if (self.sensitivity is not None) != self.kind.bounded:
            raise ValueError(f"event {self.name!r}: {LOCAL} has no global sensitivity, every other mechanism has one")
        if self.sensitivity is not None and not self.sensitivity > 0:
            raise ValueError(f"event {self.name!r}: sensitivity must be > 0, got {self.sensitivity}")
        if not (isinstance(self.count, int) and self.count >= 1):
            raise ValueError(f"event {self.name!r}: count must be an integer >= 1, got {self.count!r}")
        if not 0 < self.sampling_rate <= 1:
            raise ValueError(f"event {self.name!r}: sampling_rate must lie in (0, 1], got {self.sampling_rate}")
        if (self.sampling == "shuffle") != (self.epochs is not None):
            raise ValueError(f"event {self.name!r}: epochs goes with shuffle sampling, and only with it")
        if (self.sampling == TRUNCATED) != (self.largest is not None) or (self.largest is None) != (self.units is None):
            raise ValueError(f"event {self.name!r}: largest and units go with {TRUNCATED} sampling, and only with it")
        cut, units = self.largest, self.units
        if cut is not None and units is not None and cut < self.sampling_rate * units * (1 - 1e-9):
            raise ValueError(f"event {self.name!r}: batches are cut below their expected size, where no bound is known")
        if self.bands is not None and not (self.bands > 1 and self.sampling in ("none", "poisson")):
            raise ValueError(f"event {self.name!r}: bands must be more than one, of Poisson batches or whole groups")
        if self.part not in (None, *PARTS):
            raise ValueError(f"event {self.name!r}: unknown part {self.part!r}, one of {PARTS}")
        if self.trials is not None and not self.trials >= 1:
            raise ValueError(f"event {self.name!r}: the mean number of trials must be >= 1, got {self.trials}")
        if self.trials and self.sampling == "shuffle":
            raise ValueError(f"event {self.name!r}: no bound is known for the best of several such runs")
        if self.secret_order and not self.kind.uneven:
            raise ValueError(f"event {self.name!r}: a secret order is known to be worth something for iteration only")
        if fault := self.kind.fault(self):
            raise ValueError(f"event {self.name!r}: {fault}")

    def __str__(self) -> str:
        """For a log, without what is as it usually is.

        >>> print(Event("gradient", "gaussian", 1.06819928, 0.1, 4688, "poisson", 512 / 60000))
        4688 x gradient: gaussian, noise_multiplier 1.0682, sensitivity 0.1, sampling poisson, sampling_rate 0.00853333
        """
        words = []
        for setting in fields(self)[2:]:
            value = getattr(self, setting.name)
            if value != setting.default and setting.name != "count":
                words.append(f"{setting.name} {value:.6g}" if isinstance(value, float) else f"{setting.name} {value}")
        return f"{self.count} x {self.name}: {', '.join([self.mechanism, *words])}"

    @property
    def kind(self) -> Mechanism:
        """The event's mechanism, as an object."""
        return MECHANISMS[self.mechanism]

    @property
    def amplified(self) -> bool:
        """Whether the event relies on amplification by random sampling."""
        return self.sampling in ("poisson", TRUNCATED) and (self.sampling_rate < 1.0 or self.largest is not None)

    @property
    def participations(self) -> float:
        """The number of releases that the least protected unit takes part in: mu^2 x noise_multiplier^2."""
        return self.kind.participations(self)

    @property
    def deviation(self) -> float:
        """The noise standard deviation, in the units of the release.

        Raises:
            ValueError: the noise is scaled by what the records at hand could change.
        """
        if self.sensitivity is None:
            raise ValueError(f"event {self.name!r}: without a global sensitivity its noise has no one deviation")
        return self.noise_multiplier * self.sensitivity

    def scaled(self, factor: float) -> "Event":
        """The same event with its noise multiplied by `factor`."""
        return replace(self, noise_multiplier=self.noise_multiplier * factor)

    def to_json(self) -> dict:
        """The event as a mapping for ledger.json (`events`); trials are recorded around it."""
        content = {key: getattr(self, key) for key in _STATED}
        params: dict = {}
        if self.epochs is not None:
            params["epochs"] = self.epochs
        if self.largest is not None:
            params |= {"largest_batch": self.largest, "units": self.units}
        if self.bands is not None:
            params["bands"] = self.bands
        params |= self.kind.params(self)
        if self.part is not None:
            params["part"] = self.part
        if params:
            content["params"] = params
        return content

    @classmethod
    def from_json(cls, content: dict) -> "Event":
        """The inverse of `to_json`."""
        fields = {key: value for key, value in content.items() if key != "params"}
        params = content.get("params", {})
        beside = {key: params.get(key) for key in ("epochs", "units", "part", "bands")}
        beside |= {"secret_order": params.get("order") == "secret", "largest": params.get("largest_batch")}
        return cls(**fields, **beside)


def unamplified(events: Iterable[Event]) -> bool:
    """Whether no event relies on sampling, so that exact composition applies."""
    return not any(event.amplified for event in events)


def pure(events: Iterable[Event]) -> bool:
    """Whether any event is of a mechanism with pure epsilon-DP rather than Gaussian DP."""
    return any(event.kind.pure for event in events)


def unproved(events: Iterable[Event]) -> bool:
    """Whether any event has no bound at all, whatever its authors claim."""
    return not all(event.kind.bounded for event in events)


def known_to_renyi(events: Iterable[Event]) -> bool:
    """Whether Renyi DP bounds every event; it has no bound for truncated Poisson batches."""
    return all(event.sampling != TRUNCATED for event in events)
