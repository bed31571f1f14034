"""Faults that a library of differential privacy must catch, each a small change of its source: what zoo/*.yaml say.

A file of the zoo has those that break one part of a proof. An entry:

    id: root-of-labels-dropped             what the fault is called
    fault: what is wrong, in one sentence
    file: methods/least_squares.py         below workflow/dpstudy
    old, new: the text that is replaced, which must stand in the file exactly once, and what it is replaced by: a part
        of a line, or where one of the two has several lines whole ones, however far all of them are indented
    caught_by: one test, or several of which each must fail: pytest's names, below tests/
    quick: true                            among those that every run of the tests applies (absent: not)
"""

import ast
import itertools
import re
import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parents[2]
PAGE = "docs/privacy.md"
BEGIN, END = "<!-- mutants: `make mutants` writes what follows -->", "<!-- mutants: end -->"
KINDS = "sensitivity units sampling noise around-the-noise selection composition accounting data plan".split()


class ZooError(Exception):
    """An entry that says something impossible, or does not fit the library any more."""


@dataclass(frozen=True)
class Mutant:
    """One fault."""

    id: str
    fault: str
    file: str
    old: str
    new: str
    caught_by: str | list[str]
    kind: str
    quick: bool = False

    @property
    def path(self) -> Path:
        """Of the file, in a repository."""
        return Path("workflow/dpstudy") / self.file

    @property
    def tests(self) -> list[str]:
        """The names of the tests that must fail."""
        names = [self.caught_by] if isinstance(self.caught_by, str) else self.caught_by
        return [f"tests/{name}" for name in names]

    def applied(self, root: Path) -> str:
        """The file's text with the fault in it.

        Raises:
            ZooError: the text that is replaced is not there, or not once; or what comes of it is no Python.
        """
        path = root / self.path
        text = path.read_text(encoding="utf-8") if path.is_file() else ""
        pattern, new = self._replacement()
        if (times := len(pattern.findall(text))) != 1:
            raise ZooError(
                f"mutant {self.id}: its text stands {times} times in {self.path}, must be once; the library was "
                f"rearranged: give `old` and `new` of tests/mutants/zoo the lines that are now as {self.old[:60]!r} was"
            )
        changed = pattern.sub(new, text)
        try:
            same = ast.dump(ast.parse(changed)) == ast.dump(ast.parse(text))
        except SyntaxError as error:
            raise ZooError(f"mutant {self.id}: {self.path} is no Python with it: {error}") from None
        if same:
            raise ZooError(f"mutant {self.id}: changes nothing that {self.path} does")
        return changed

    def _replacement(self) -> tuple[re.Pattern[str], Callable[[re.Match[str]], str]]:
        """What finds the old text, and what makes the new one of it."""
        if "\n" not in self.old + self.new:
            return re.compile(re.escape(self.old)), lambda _: self.new
        lines = "\n".join(f"(?P=margin){re.escape(line)}" if line else "" for line in self.old.split("\n"))
        whole = re.compile(f"^{lines.replace('(?P=margin)', '(?P<margin> *)', 1)}$", re.MULTILINE)
        return whole, lambda found: textwrap.indent(self.new, found["margin"])


def load() -> list[Mutant]:
    """All of them.

    Raises:
        ZooError: an entry lacks a key, has one that there is not, or the id of another.
    """
    found: list[Mutant] = []
    for path in sorted((Path(__file__).parent / "zoo").glob("*.yaml"), key=lambda path: KINDS.index(path.stem)):
        for entry in yaml.safe_load(path.read_text(encoding="utf-8")):
            try:
                found.append(Mutant(**entry, kind=path.stem))
            except TypeError as error:
                raise ZooError(f"{path.name}: {entry.get('id', entry)}: {error}") from None
    for place, mutant in enumerate(found):
        if mutant.id in {other.id for other in found[:place]}:
            raise ZooError(f"mutant {mutant.id}: there are two of this id")
    return found


def page(text: str, mutants: Sequence[Mutant]) -> str:
    """The page with the counts of mutants between its markers.

    Raises:
        ZooError: it has no place for one.
    """
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not end:
        raise ZooError(f"{PAGE}: the lines {BEGIN} and {END} are gone, between which the mutants are counted")
    kinds = [(kind, len(list(own))) for kind, own in itertools.groupby(mutants, lambda mutant: mutant.kind)]
    counts = ", ".join(f"{kind.replace('-', ' ')} {count}" for kind, count in kinds)
    told = f"{len(mutants)} faults (tests/mutants/zoo has each, with the tests that catch it): {counts}."
    return f"{before}{begin}\n\n{told}\n\n{end}{after}"
