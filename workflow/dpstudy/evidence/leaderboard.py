"""The place of recorded models on the public leaderboard (private-machinelearning.github.io), and our lines for it.

A model stands in a track where it learned from the whole training split with a proved guarantee for each record, from
no public data but what the track allows, and its delta is no larger than that of the line beside it.
"""

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

from dpstudy.config.cells import unfold
from dpstudy.core.files import atomic
from dpstudy.evidence.lines import damaged, read_lines
from dpstudy.evidence.measured import Measured
from dpstudy.features import parts_of
from dpstudy.plan.dedup import is_drawn
from dpstudy.plan.publics import publics_of
from dpstudy.plan.training import start_of
from dpstudy.provenance.code import WORKFLOW

LISTED = WORKFLOW / "published" / "leaderboard.csv"
PAGE = WORKFLOW.parent / "docs" / "leaderboard.md"
AS_OF = "June 2024"
IMAGENET = "imagenet-1k"
ACCOUNTANT = "dpstudy: exact Gaussian, privacy loss distributions (dp-accounting), Rényi; the least that is certified"
_COLUMNS = ("track", "paper", "date", "model", "epsilon", "delta", "metric", "value", "accountant")
# Track -> (how it is said, our name of its data set, records of the training split, public data that it allows).
_TRACKS: dict[str, tuple[str, str, int, set[str]]] = {
    "MNIST": ("MNIST, no public data", "mnist", 60_000, set()),
    "Fashion-MNIST": ("Fashion-MNIST, no public data", "fashion-mnist", 60_000, set()),
    "CIFAR10_no": ("CIFAR-10, no public data", "cifar10", 50_000, set()),
    "CIFAR10_IN1K": ("CIFAR-10, with ImageNet-1k", "cifar10", 50_000, {IMAGENET}),
}
_HEAD = f"""\
# On the public leaderboard

`make leaderboard` writes this page from `workflow/published/leaderboard.csv`, the lines of
private-machinelearning.github.io as of {AS_OF}, and from what was recorded; [leaderboard.yaml](leaderboard.yaml) has
our lines in its form. Accuracy in percent; ours is a mean over seeds, at a certified ε of at most the listed one and no
larger δ (one at a smaller ε, where nothing better was recorded). Images that a program drew from nothing are no public
data. An empty place: nothing was recorded yet.
"""


@dataclass(frozen=True)
class Listed:
    """A line of the leaderboard; `value` is in percent for top1."""

    track: str
    paper: str
    model: str
    epsilon: Decimal
    delta: float
    metric: str
    value: float


def listed(path: str | os.PathLike = LISTED) -> list[Listed]:
    """The leaderboard's lines as of AS_OF.

    Raises:
        StudyError: a line is damaged.
    """
    entries = []
    for number, line in read_lines(path, _COLUMNS):
        try:
            facts = Decimal(line["epsilon"]), float(line["delta"]), line["metric"], float(line["value"])
        except (ArithmeticError, ValueError) as error:
            raise damaged(path, number, error) from None
        entries.append(Listed(line["track"], line["paper"], line["model"], *facts))
    return entries


def public_data(studies: Iterable[dict]) -> dict[tuple[str, ...], frozenset[str]]:
    """(study, data set, features, entry, epsilon) -> the public data that the cell uses in any way.

    What a program drew from nothing is none.
    """
    sets_by_cell: dict[tuple[str, ...], frozenset[str]] = {}
    for study in studies:
        for cell in unfold(study):
            start = start_of(study, cell)
            sets = {name for name in publics_of(study, cell.features, start) if not is_drawn(study, name)}
            made = [*parts_of(study["features"][cell.features]), *([start] if isinstance(start, dict) else [])]
            origins = [part["trained_on"] for part in made if part.get("weights", "random") != "random"]
            sets |= {origin for origin in origins if isinstance(origin, str)}
            sets_by_cell[study["study"], cell.dataset, cell.features, cell.entry, cell.epsilon] = frozenset(sets)
    return sets_by_cell


def standing(measured: Iterable[Measured], seen: Mapping[tuple[str, ...], frozenset[str]]) -> dict[str, list[Measured]]:
    """Track -> the recorded models that qualify for it.

    Args:
        seen: as of `public_data`; what is of no shipped study stands nowhere.
    """
    by_track: dict[str, list[Measured]] = {}
    for row in measured:
        proved = row.guarantee == "proved" and row.unit == "record" and row.certified
        if not proved or row.metric != "top1" or row.key[:5] not in seen:
            continue
        for track, (_, dataset, size, allowed) in _TRACKS.items():
            if (row.dataset, row.n) == (dataset, size) and seen[row.key[:5]] <= allowed:
                by_track.setdefault(track, []).append(row)
    return by_track


def best_within(rows: Iterable[Measured], epsilon: Decimal, delta: float) -> Measured | None:
    """The most accurate model with a certified guarantee at least as strong as (epsilon, delta), or None."""
    within = [row for row in rows if Decimal(row.certified) <= epsilon and float(row.delta) <= delta]
    return max(within, key=lambda row: row.mean, default=None)


def write(measured: Sequence[Measured], studies: Sequence[dict], page: str | os.PathLike = PAGE) -> int:
    """Write the page, and beside it our lines in the leaderboard's format (YAML).

    Returns:
        how many of its epsilons we have a model at.

    Raises:
        StudyError: a file is damaged, or cannot be written.
    """
    import yaml

    ours, lines, ends = standing(measured, public_data(studies)), listed(), []
    text = [_HEAD]
    for track, (title, *_) in _TRACKS.items():
        text.append(f"\n## {title}\n\n| ε | listed | | ours | | difference |\n|---|---|---|---|---|---|\n")
        of_track = [line for line in lines if (line.track, line.metric) == (track, "top1")]
        for epsilon, delta in sorted({(line.epsilon, line.delta) for line in of_track}):
            best = max((line for line in of_track if line.epsilon == epsilon), key=lambda line: line.value)
            our_best = best_within(ours.get(track, []), epsilon, delta)
            text.append(_row(best, our_best))
            if our_best:
                ends.append((track, our_best))
    with atomic(page) as temporary:
        temporary.write_text("".join(text), encoding="utf-8")
    claims = [
        {
            "track": track,
            "model": f"{row.features}, {row.entry}",
            "epsilon": float(row.certified),
            "delta": float(row.delta),
            "private_accuracy": f"{row.mean:.2f}%",
            "dp_accountant": ACCOUNTANT,
        }
        for track, row in dict.fromkeys(ends)
    ]
    entry = {"name": "dpstudy", "url": "", "venue": "", "venue_date": "", "claims": claims}
    with atomic(Path(page).with_suffix(".yaml")) as temporary:
        temporary.write_text(yaml.safe_dump([entry], sort_keys=False, allow_unicode=True, width=120), encoding="utf-8")
    return len(ends)


def _row(best: Listed, own: Measured | None) -> str:
    listed_as = f"| {best.epsilon} | {best.value:.1f} | {best.model} "
    if own is None:
        return listed_as + "|  |  |  |\n"
    spread = f" ± {own.std:.1f}" if own.seeds > 1 else ""
    return listed_as + f"| {own.mean:.1f}{spread} | {own.features}, {own.entry} | {own.mean - best.value:+.1f} |\n"
