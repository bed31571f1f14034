"""`make compare`: what changed between two runs of a study, cell by cell. Nothing is changed.

The exit status is that of diff: 0 where nothing differs, 1 where something does, 2 where the trees cannot be compared.
"""

from terminal import installed  # noqa: F401

# isort: split
import signal
import sys

from dpstudy.comparison.command import main

if __name__ == "__main__":
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # `compare.py A B | head` ends quietly
    sys.exit(main(sys.argv[1:]))
