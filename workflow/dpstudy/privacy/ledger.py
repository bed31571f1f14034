"""The ledger: the noisy releases computed from private records, and their certified epsilon.

Epsilon is never typed: it is computed here, from the events.
"""

import math
from collections import Counter
from collections.abc import Mapping, Sequence

from dpstudy import __version__
from dpstudy.privacy.accounting import certify, finite
from dpstudy.privacy.budget import Budget
from dpstudy.privacy.events import TRUNCATED, Event, unamplified, unproved
from dpstudy.privacy.iteration import share_within
from dpstudy.privacy.ledger_events import to_ledger
from dpstudy.privacy.noise import NoiseSource
from dpstudy.privacy.secure_noise import LARGEST
from dpstudy.privacy.trade_off import trade_off

FEATURES_BROUGHT = "The features were brought: what they were made with is not known to this ledger."
SHARED_NOISE = (
    "One noise vector was added to every class and step (shared_noise, a control): differences between classes are "
    "released without noise, so there is no guarantee."
)
CLAIMED = (
    "The authors claim rho-zCDP, which does not hold: the noise of a point is scaled by a local sensitivity that is "
    "itself computed from the private records and bounds the change of a density, not of the point (where all records "
    "are the same they are published as they are), and the projection is trained on private records without noise."
)
_ROUNDING = 1e-9  # relative
SEEDED = (
    "Noise was drawn from a seeded generator: reproducible research, not for release. Sums may be rounded to float32: "
    "one of a million records can then move them by a tenth more than their sensitivity; under secure noise it cannot."
)


def build_ledger(
    events: Sequence[Event],
    budget: Budget,
    *,
    n: int,
    unit: str,
    noise: str,
    not_accounted: Sequence[str] = (),
    no_guarantee: str | None = None,
    bounds: Mapping | None = None,
) -> dict:
    """The ledger of one seed, the content of ledger.json.

    Args:
        events: every release of one seed; empty where nothing was noised.
        budget: target and delta.
        n: public number of units.
        unit: "record" or "subject".
        noise: "seeded" or "secure".
        not_accounted: what the events do not cover, a sentence each.
        no_guarantee: why there is none (shared noise, clipping without noise); None where the events are the
            whole story.
        bounds: what of a unit counts at most, where it is more than a record with a class: {"records" of a subject,
            "persons": the column that tells subjects apart, "positives" of a record's labels, "beyond": what becomes of
            a record with more}.
    """
    certificate = certify(events, budget.delta, complete=not unamplified(events)) if events else None
    epsilon = certificate.epsilon if certificate else math.inf
    open_questions = [*not_accounted, *_caveats(events, budget)]
    if no_guarantee:
        open_questions.insert(0, no_guarantee)
    elif unproved(events):
        open_questions.insert(0, CLAIMED)
    if noise == "seeded":
        open_questions.append(SEEDED)
    proved = certificate if not math.isinf(epsilon) and no_guarantee is None else None
    return {
        "version": __version__,
        "scope": "one seed",
        "adjacency": certificate.adjacency if certificate else "add-remove-one",
        "unit": unit,
        "n": n,
        "delta": budget.delta,
        "target_epsilon": budget.epsilon,
        "epsilon": epsilon if proved else None,
        "accountant": proved.accountant if proved else "none",
        "epsilon_by": (
            {name: finite(value) for name, value in proved.epsilon_by.items()}
            if proved
            else dict.fromkeys(("exact", "pld", "rdp", "zcdp"))
        ),
        "events": to_ledger(events),
        "noise": noise,
        "not_accounted": open_questions,
        "guarantee": "proved" if proved else "claimed" if unproved(events) and not no_guarantee else "none",
        **({"trade_off": trade_off(events, budget.delta, epsilon)} if proved else {}),
        **({"bounds": dict(bounds)} if bounds else {}),
    }


def _caveats(events: Sequence[Event], budget: Budget) -> list[str]:
    """What a reader must know of batches in a fixed order."""
    return [
        _iteration_caveat(events, event.secret_order, budget)
        if event.kind.uneven
        else f"The noise was calibrated for Poisson sampling at epsilon {budget.epsilon}, but batches were shuffled: "
        "what is certified is the epsilon of shuffled fixed batches, without amplification, under zero-out adjacency."
        for event in events
        if event.sampling == "shuffle"
    ]


def _iteration_caveat(events: Sequence[Event], secret: bool, budget: Budget) -> str:
    kept = "This holds only if no iterate but the last is ever released"
    if secret:
        return f"{kept}, nor the random order in which records were visited."
    share = math.floor(1000 * share_within(events, budget.target, budget.delta)) / 10
    return (
        f"Privacy amplification by iteration protects records unevenly: {share:g} % of them have epsilon at most "
        f"{budget.epsilon}; what is certified is the epsilon of the worst one, in the last batch, under zero-out "
        f"adjacency. {kept}."
    )


def check_releases(events: Sequence[Event], drawn: Mapping[str, int]) -> None:
    """Check that the noise source drew exactly the releases in the ledger.

    Raises:
        RuntimeError: a release without an event, or as many draws as the events do not say. The run's output
            must then not be written.
    """
    declared: Counter[str] = Counter()
    for event in events:
        declared[event.name] += event.count
    if declared != Counter(drawn):
        raise RuntimeError(f"the ledger declares the releases {dict(declared)}, the noise source drew {dict(drawn)}")


def check_noise(events: Sequence[Event], deviations: Mapping[str, Mapping[float, int]]) -> None:
    """Check that each release had at least the ledger's noise standard deviation.

    Where several events share a name, the releases with the smallest noise are held against the smallest of them.

    Args:
        deviations: as of `NoiseSource.deviations`.

    Raises:
        RuntimeError: a release had less.
    """
    for name in {event.name for event in events if event.sensitivity is not None}:  # LOCAL scales its noise afterwards
        accounted: Counter[float] = Counter()
        for event in events:
            if event.name == name:
                accounted[event.deviation] += event.count
        made = Counter(deviations[name])
        for least, std in zip(sorted(accounted.elements()), sorted(made.elements()), strict=True):
            if std < least * (1 - _ROUNDING):
                raise RuntimeError(
                    f"the ledger accounts for noise of standard deviation {least:.6g} in the release {name!r}, the "
                    f"noise source was asked for {std:.6g}"
                )


def check_spent(spent: Sequence[Event], drawn: Mapping[str, int], step: int) -> None:
    """Check that what a method says it has spent by a step covers what was drawn, so that curves state no less.

    Raises:
        RuntimeError: more was drawn; or something is said to be spent, and nothing was drawn that a model could be
            made of.
    """
    claimed: Counter[str] = Counter()
    for event in spent:
        claimed[event.name] += event.count
    if claimed and not drawn:
        raise RuntimeError(
            f"`spent` says that step {step} has made the releases {dict(claimed)}, and nothing was released: a model "
            "that is scored for a curve must be made of releases"
        )
    if any(times > claimed[name] for name, times in drawn.items()):
        raise RuntimeError(
            f"`spent` says that step {step} has made the releases {dict(claimed)}, the noise source drew {dict(drawn)}"
        )


def check_run(events: Sequence[Event], source: NoiseSource, n: int | None = None) -> None:
    """Check a run against its ledger: releases drawn, their noise, and the number of units in each sample.

    Args:
        n: public number of units, where units are drawn from those that the ledger protects.

    Raises:
        RuntimeError: as `check_releases` and `check_noise`; the noise of a sum was not drawn by `released`; more or
            fewer units took part in a Poisson-sampled release than chance allows at the rate that is accounted, or were
            drawn from more than n; or secure noise was too coarse for a release, or the sum rounded to float32.
    """
    check_releases(events, source.drawn)
    check_noise(events, source.deviations())
    bare = {name for name, *_ in source.bare}
    for event in events:
        if event.sensitivity is not None and event.name in bare:  # LOCAL noise goes with points, not with a sum
            raise RuntimeError(
                f"release {event.name!r}: its noise was drawn apart, so that nobody can tell what it was added to; "
                "give the sum to NoiseSource.released"
            )
        if source.mode == "secure" and event.name in source.rounded:
            raise RuntimeError(
                f"release {event.name!r}: its sum is float32, and rounded by more than one of many records adds to it; "
                "under secure noise sums are float64, of contributions on a grid (methods/exact.py)"
            )
        numbers = sum(source.sizes.get(event.name, {}).values())
        if source.mode == "secure" and event.noise_multiplier * math.sqrt(numbers) > LARGEST:
            raise RuntimeError(
                f"release {event.name!r} has {numbers} numbers at noise multiplier {event.noise_multiplier:.4g}: the "
                "rounding of its sum to the grid of secure noise is more than is allowed for"
            )
        if event.sampling not in ("poisson", TRUNCATED) or event.sampling_rate == 1:
            continue
        if event.name not in source.took_part:
            if source.resumed:
                continue  # this release was made before the run was interrupted
            raise RuntimeError(f"nobody counted who took part in the sampled release {event.name!r} (source.took)")
        most = sum(other.count for other in events if other.name == event.name) * (n or math.inf)
        if source.took_part[event.name][1] > most:
            raise RuntimeError(
                f"those who take part in the release {event.name!r} were drawn from more than the {n} units that the "
                "ledger protects: where persons have several records, draw persons (methods/units.py)"
            )
        if _improbable(*source.took_part[event.name], event.sampling_rate):
            raise RuntimeError(
                f"the ledger declares that a unit takes part in the release {event.name!r} with probability "
                f"{event.sampling_rate}; how many took part in this run is not what chance allows"
            )


def _improbable(taken: int, units: int, rate: float) -> bool:
    """Whether Bernstein's inequality gives a binomial count as far from its mean a chance below one in 10^12."""
    variance, far = units * rate * (1 - rate), abs(taken - units * rate)
    return far**2 / (2 * (variance + far / 3)) > math.log(2e12)
