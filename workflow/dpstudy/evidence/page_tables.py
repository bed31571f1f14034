"""Tables of recorded results inside pages of docs/, laid out as a study's config specifies.

In a page stand `<!-- measured: STUDY TABLE -->`, the table, and `<!-- end -->`; `make evidence` renews what is between.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from dpstudy.core.errors import StudyError
from dpstudy.core.files import atomic
from dpstudy.evidence.measured import Measured
from dpstudy.tables.checks import parts_of
from dpstudy.tables.names import line_label
from dpstudy.tables.numbers import usual_decimals
from dpstudy.tables.published import Published, combine, lookup

_BLOCK = re.compile(r"(<!-- measured: (\S+) (\S+) -->\n).*?(<!-- end -->)", re.DOTALL)


def renew(folder: Path, studies: Mapping[str, dict], measured: Sequence[Measured]) -> list[str]:
    """Update the tables of recorded results in the pages of a folder.

    Args:
        studies: name -> checked config.

    Returns:
        the names of the pages that have some.

    Raises:
        StudyError: a page names a study or table that is not there.
    """
    known, pages = {row.key: row for row in measured}, []
    for page in sorted(folder.glob("*.md")):
        before = page.read_text(encoding="utf-8")
        after = renewed(before, page.name, studies, known)
        if _BLOCK.search(before):
            pages.append(page.name)
        if after != before:
            with atomic(page) as temporary:
                temporary.write_text(after, encoding="utf-8")
    return pages


def renewed(text: str, page: str, studies: Mapping[str, dict], known: Mapping[tuple[str, ...], Measured]) -> str:
    """The text of a page with its tables of recorded results updated.

    Args:
        page: its name, for messages.
        known: measured lines by their keys.

    Raises:
        StudyError: it names a study or table that is not there.
    """

    def block(match: re.Match[str]) -> str:
        head, study, name, end = match.groups()
        spec = studies.get(study, {"tables": {}})["tables"].get(name)
        if spec is None:
            raise StudyError(f"{page}: no study {study!r} in studies/ has a table {name!r}")
        return head + "".join(markdown(studies[study], spec, known)) + end

    return _BLOCK.sub(block, text)


def markdown(study: dict, spec: dict, known: Mapping[tuple[str, ...], Measured]) -> Iterator[str]:
    """The lines of a table: a row per method with a recorded number, a column per epsilon.

    A cell has mean ± standard deviation, the certified epsilon where it differs, and the printed number in brackets.
    Below a row stand the lower bounds on epsilon of attacks on its cells, if any were tried.

    Args:
        study: the checked config.
        spec: the table's.
    """
    metric, epsilons = spec["metric"], spec.get("epsilons", study["epsilons"])
    lines: list[tuple[str, dict[str, Measured], dict[str, Published | None]]] = []
    for dataset in spec.get("datasets", [spec["dataset"]] if "dataset" in spec else list(study["datasets"])):
        for parts in parts_of(spec, dataset):
            options = {key: value for part in parts for key, value in part.items()}
            place = (study["study"], dataset, options.get("features", ""), options.get("entry", ""))
            ours = {e: known[key] for e in epsilons if (key := (*place, e, metric)) in known}
            if not ours:
                continue
            filters = combine(spec, dataset, *parts)
            printed = {e: lookup({"metric": metric, **filters}, e) if filters else None for e in epsilons}
            lines.append((", ".join(_labels(parts, options)), ours, printed))
    shown = [e for e in epsilons if any(e in ours for _, ours, _ in lines)]
    digits = usual_decimals((row.std for _, ours, _ in lines for row in ours.values()), metric)
    yield f"| ε | {' | '.join('∞' if e == 'inf' else e for e in shown)} |\n"
    yield "|" + "---|" * (len(shown) + 1) + "\n"
    for label, ours, printed in lines:
        yield f"| {label} | {' | '.join(_cell(ours.get(e), printed[e], digits) for e in shown)} |\n"
        if any(row.attacked for row in ours.values()):
            yield f"| attacks show ε ≥ | {' | '.join(ours[e].attacked if e in ours else '' for e in shown)} |\n"
    for kind in dict.fromkeys(f"{row.kind}: {row.what}" for _, ours, _ in lines for row in ours.values() if row.what):
        yield f"\n({kind[0].upper()}{kind[1:]}.)\n"


def _labels(parts: Sequence[dict], told: dict) -> Iterator[str]:
    for part in parts:
        yield part["label"] if "label" in part else line_label(told)
    if "epochs" in told:
        yield f"{told['epochs']} epoch{'s' if told['epochs'] != 1 else ''}"


def _cell(row: Measured | None, printed: Published | None, digits: int) -> str:
    beside = f" ({printed.text or '≤ 20'})" if printed else ""
    if row is None:
        return beside.strip()
    text = f"{row.mean:.{digits}f}" + (f" ± {row.std:.{digits}f}" if row.seeds > 1 else "")
    if row.epsilon != "inf" and not row.certified:
        text += ", no proved ε"
    elif row.epsilon != "inf" and float(row.certified) != float(row.epsilon):
        text += f", ε = {row.certified}"
    return text + beside
