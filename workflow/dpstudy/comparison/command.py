"""The command that compares two results folders, for `workflow/compare.py` and `dpstudy compare`."""

import argparse
import sys
from collections.abc import Sequence

from dpstudy.comparison.compare import compare
from dpstudy.comparison.machine import as_json, write_changes
from dpstudy.comparison.text import as_text
from dpstudy.core.errors import StudyError


def main(arguments: Sequence[str], program: str = "compare.py") -> int:
    """Compare the two results folders in the arguments and print the differences; the exit status, as of `diff`."""
    parser = argparse.ArgumentParser(prog=program, description="What changed between two runs of a study.")
    parser.add_argument("a", metavar="A", help="the results folder of a study")
    parser.add_argument("b", metavar="B", help="that of another run, here or copied from another machine")
    parser.add_argument("--csv", metavar="FILE", help="write every change to this file, too")
    parser.add_argument("--json", action="store_true", help="print every change as JSON instead of text")
    options = parser.parse_args(arguments)
    try:
        comparison = compare(options.a, options.b)
        if options.csv:
            write_changes(comparison, options.csv)
    except StudyError as error:
        print(f"{program}: {error}", file=sys.stderr)
        return 2
    sys.stdout.write(as_json(comparison) if options.json else as_text(comparison))
    return int(comparison.differs)
