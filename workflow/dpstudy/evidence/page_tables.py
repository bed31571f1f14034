"""Tables of recorded results inside pages of docs/, laid out as a study's config specifies.

In a page stand `<!-- measured: STUDY TABLE -->`, the table, and `<!-- end -->`; `make evidence` renews what is between.
Several tables, `STUDY TABLE, STUDY TABLE`, become columns of one. `at EPSILON EPSILON` after the last keeps only these.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from dpstudy.core.errors import StudyError
from dpstudy.core.files import atomic
from dpstudy.evidence.markdown import table
from dpstudy.evidence.measured import Measured
from dpstudy.tables.checks import parts_of
from dpstudy.tables.names import line_label
from dpstudy.tables.numbers import usual_decimals
from dpstudy.tables.published import Published, combine, lookup

_BLOCK = re.compile(r"(<!-- measured: ([^>]+?)(?: at ([^>]+?))? -->\n).*?(<!-- end -->)", re.DOTALL)


@dataclass(frozen=True)
class _Line:
    """A line of a study's table.

    Attributes:
        dataset: by the paper's name, where it prints a number.
        label: of the method.
        ours, printed: by epsilon.
    """

    dataset: str
    label: str
    ours: Mapping[str, Measured]
    printed: Mapping[str, Published | None]


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
        head, names, kept, end = match.groups()
        tables = []
        for place in names.split(","):
            study, _, name = place.strip().partition(" ")
            spec = studies.get(study, {"tables": {}})["tables"].get(name)
            if spec is None:
                raise StudyError(f"{page}: no study {study!r} in studies/ has a table {name!r}")
            tables.append((studies[study], spec))
        return head + "".join(markdown(tables, known, kept.split() if kept else ())) + end

    return _BLOCK.sub(block, text)


def markdown(
    tables: Sequence[tuple[dict, dict]], known: Mapping[tuple[str, ...], Measured], epsilons: Sequence[str] = ()
) -> Iterator[str]:
    """A table of recorded numbers, and what is to be said of them.

    A cell has mean ± standard deviation, the certified epsilon where it differs, and the printed number in brackets.
    Of one table there is a row per method with a recorded number, a column per epsilon; below a row stand the lower
    bounds on epsilon of attacks on its cells, if any were tried. Of several there is a column for each, rows with the
    same label are one, and a cell has the numbers at all epsilons, without standard deviations if they are several.

    Args:
        tables: of each the study's checked config and the table's.
        known: measured lines by their keys.
        epsilons: those to keep; all where there are none.
    """
    columns = [list(_lines(study, spec, known, epsilons)) for study, spec in tables]
    every = [line for lines in columns for line in lines]
    shown = [e for e in dict.fromkeys(e for line in every for e in line.printed) if any(e in ln.ours for ln in every)]
    symbols = ["∞" if e == "inf" else e for e in shown]
    digits = [usual_decimals(_spreads(lines), spec["metric"]) for lines, (_, spec) in zip(columns, tables, strict=True)]
    if len(columns) == 1:
        yield table(("ε", *symbols), _by_epsilon(columns[0], shown, digits[0]))
    else:
        names = [lines[0].dataset if lines else "" for lines in columns]
        yield table((f"ε = {', '.join(symbols)}", *names), _side_by_side(columns, shown, digits))
    rows = [row for line in every for row in line.ours.values()]
    for kind in dict.fromkeys(f"{row.kind}: {row.what}" for row in rows if row.what):
        yield f"\n({kind[0].upper()}{kind[1:]}.)\n"


def _lines(
    study: dict, spec: dict, known: Mapping[tuple[str, ...], Measured], epsilons: Sequence[str]
) -> Iterator[_Line]:
    metric = spec["metric"]
    for dataset in spec.get("datasets", [spec["dataset"]] if "dataset" in spec else list(study["datasets"])):
        for parts in parts_of(spec, dataset):
            options = {key: value for part in parts for key, value in part.items()}
            place = (study["study"], dataset, options.get("features", ""), options.get("entry", ""))
            kept = [e for e in spec.get("epsilons", study["epsilons"]) if not epsilons or e in epsilons]
            ours = {e: known[key] for e in kept if (key := (*place, e, metric)) in known}
            if ours:
                filters = combine(spec, dataset, *parts)
                printed = {e: lookup({"metric": metric, **filters}, e) if filters else None for e in kept}
                yield _Line((filters or {}).get("dataset", dataset), ", ".join(_labels(parts, options)), ours, printed)


def _by_epsilon(lines: Sequence[_Line], epsilons: Sequence[str], digits: int) -> Iterator[tuple[str, ...]]:
    for line in lines:
        yield line.label, *(_cell(line, e, digits) for e in epsilons)
        if any(row.attacked for row in line.ours.values()):
            yield "attacks show ε ≥", *(line.ours[e].attacked if e in line.ours else "" for e in epsilons)


def _side_by_side(
    columns: Sequence[Sequence[_Line]], epsilons: Sequence[str], digits: Sequence[int]
) -> Iterator[tuple[str, ...]]:
    by_label = [{line.label: line for line in lines} for lines in columns]
    if any(len(named) < len(lines) for named, lines in zip(by_label, columns, strict=True)):
        raise StudyError("a table that stands beside others in a page has two lines with the same label")
    for label in dict.fromkeys(line.label for lines in columns for line in lines):
        cells = []
        for lines, places in zip(by_label, digits, strict=True):
            line = lines.get(label)
            texts = [_cell(line, e, places, spread=len(epsilons) == 1) for e in epsilons] if line else []
            cells.append(", ".join(text or "–" for text in texts))
        yield label, *cells


def _spreads(lines: Sequence[_Line]) -> Iterator[float]:
    return (row.std for line in lines for row in line.ours.values())


def _labels(parts: Sequence[dict], told: dict) -> Iterator[str]:
    for part in parts:
        yield part["label"] if "label" in part else line_label(told)
    if "epochs" in told:
        yield f"{told['epochs']} epoch{'s' if told['epochs'] != 1 else ''}"


def _cell(line: _Line, epsilon: str, digits: int, spread: bool = True) -> str:
    row, printed = line.ours.get(epsilon), line.printed.get(epsilon)
    beside = f" ({printed.text or '≤ 20'})" if printed else ""
    if row is None:
        return beside.strip()
    text = f"{row.mean:.{digits}f}" + (f" ± {row.std:.{digits}f}" if spread and row.seeds > 1 else "")
    if row.epsilon != "inf" and not row.certified:
        text += ", no proved ε"
    elif row.epsilon != "inf" and float(row.certified) != float(row.epsilon):
        text += f", ε = {row.certified}"
    return text + beside
