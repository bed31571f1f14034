"""`make compare`: what changed between two runs of a study, cell by cell. Nothing is changed.

The exit status is that of diff: 0 where nothing differs, 1 where something does, 2 where the trees cannot be compared.
"""

from terminal import installed  # noqa: F401

# isort: split
import argparse
import signal
import sys

from dpstudy.comparison.compare import compare
from dpstudy.comparison.machine import as_json, write_changes
from dpstudy.comparison.text import as_text
from dpstudy.core.errors import StudyError


def main(arguments: list[str]) -> int:
    """Compare the two results folders that the arguments name, and print what differs."""
    parser = argparse.ArgumentParser(prog="compare.py", description="What changed between two runs of a study.")
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
        print(f"compare.py: {error}", file=sys.stderr)
        return 2
    sys.stdout.write(as_json(comparison) if options.json else as_text(comparison))
    return int(comparison.differs)


if __name__ == "__main__":
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # `compare.py A B | head` ends quietly
    sys.exit(main(sys.argv[1:]))
