"""python -m tests.mutants [ID ...]: does what should catch a fault of the zoo catch it?

Each fault is applied to a copy of the repository's files, never to these, and the tests that its entry names are run
on the copy, on 2 processes. A fault that one of them does not fail on has survived, and ends the run with exit status
1. First the same tests must pass on a copy without a fault: otherwise that they fail would mean nothing. A run of all
that none survives writes the table of docs/privacy.md.
"""

import os
import queue
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from tests.mutants.mutants import PAGE, ROOT, Mutant, ZooError, load, page

PROCESSES = 2
LIMIT = 300  # seconds that a test may take with a fault in what it tests
_FAILED = 1  # pytest's exit status where tests ran and failed: others say that it could not run them
# What a slip of the pen in the zoo raises, which any test would catch: no fault of privacy is seen by it.
_SLIP = re.compile(
    r"^E +(NameError|ImportError|ModuleNotFoundError|AttributeError|UnboundLocalError)\b.*", re.MULTILINE
)


@dataclass(frozen=True)
class Outcome:
    """What came of running a mutant's tests: how long it took, and why it is not caught ("": it is)."""

    mutant: Mutant
    seconds: float
    survived: str


def copy_to(folder: Path) -> Path:
    """A copy of the files that git knows, as they are now.

    Raises:
        ZooError: git knows none.
    """
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True)
    if listed.returncode:
        raise ZooError(f"{ROOT} is no git checkout, whose files could be copied: {listed.stderr.strip()}")
    for name in filter(None, listed.stdout.split("\0")):
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name)
    return folder


def pytest_on(folder: Path, tests: Sequence[str], limit: float | None = None) -> tuple[int, str]:
    """Exit status and output of these tests of a copy.

    Raises:
        subprocess.TimeoutExpired: they took too long.
    """
    command = [sys.executable, "-m", "pytest", "-q", "--tb=short", "-p", "no:cacheprovider", "-p", "no:xdist", *tests]
    environment = {key: value for key, value in os.environ.items() if not key.startswith("PYTEST")}
    environment["PYTHONPATH"] = str(folder / "workflow")
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=limit)
    return done.returncode, done.stdout + done.stderr


def check_whole(folder: Path, tests: Sequence[str]) -> None:
    """
    Raises:
        ZooError: tests do not pass where there is no fault.
    """
    status, output = pytest_on(folder, tests)
    if status:
        raise ZooError(f"without any fault these tests do not pass, so that to fail means nothing:\n{output[-5000:]}")


def tried(mutant: Mutant, changed: str, folder: Path) -> Outcome:
    """Give a file of a copy the text with the fault, run what should catch it, and take it back."""
    path, started, survived = folder / mutant.path, time.monotonic(), ""
    try:
        path.write_text(changed, encoding="utf-8")
        for test in mutant.tests:
            status, output = pytest_on(folder, [test], LIMIT)
            if slip := _SLIP.search(output):
                survived = f"it breaks the program, which is no fault of privacy ({slip[0]})"
            elif status != _FAILED:
                survived = f"{test} passes" if not status else f"{test} cannot be run: {output[-500:]}"
    except subprocess.TimeoutExpired:
        survived = f"its tests do not end within {LIMIT} s"
    finally:
        shutil.copy2(ROOT / mutant.path, path)
    return Outcome(mutant, time.monotonic() - started, survived)


def run(mutants: Sequence[Mutant], whole: bool = True) -> list[Outcome]:
    """Try mutants.

    Args:
        whole: first see that their tests pass without them.

    Raises:
        ZooError: they do not, or a mutant cannot be applied.
    """
    changed = [mutant.applied(ROOT) for mutant in mutants]  # here: threads of Python 3.11 may not parse at once
    with tempfile.TemporaryDirectory() as scratch, ThreadPoolExecutor(PROCESSES) as pool:
        copies: queue.Queue[Path] = queue.Queue()
        folders = [copy_to(Path(scratch) / str(number)) for number in range(PROCESSES)]
        if whole:
            tests = sorted({test for mutant in mutants for test in mutant.tests})
            parts = [tests[number::PROCESSES] for number in range(PROCESSES)]
            list(pool.map(check_whole, *zip(*((f, p) for f, p in zip(folders, parts, strict=True) if p), strict=True)))
        for folder in folders:
            copies.put(folder)

        def try_one(mutant: Mutant, text: str) -> Outcome:
            folder = copies.get()
            try:
                outcome = tried(mutant, text, folder)
            finally:
                copies.put(folder)
            print(f"{'SURVIVED' if outcome.survived else 'caught':9}{outcome.seconds:6.1f} s  {mutant.id}", flush=True)
            return outcome

        return list(pool.map(try_one, mutants, changed))


def main(names: Sequence[str]) -> int:
    """Try the mutants of these ids, or all, and print what came of it."""
    try:
        mutants, started = load(), time.monotonic()
        if unknown := set(names) - {mutant.id for mutant in mutants}:
            raise ZooError(f"there is no mutant {min(unknown)!r}")
        outcomes = run([mutant for mutant in mutants if not names or mutant.id in names])
        survivors = [outcome for outcome in outcomes if outcome.survived]
        if not names and not survivors:
            path = ROOT / PAGE
            path.write_text(page(path.read_text(encoding="utf-8"), mutants), encoding="utf-8")
    except ZooError as error:
        print(f"make mutants: {error}", file=sys.stderr)
        return 2
    print()
    for outcome in outcomes:
        caught = outcome.survived or "; ".join(outcome.mutant.tests)
        print(f"{outcome.mutant.id} | {outcome.mutant.fault} | {caught} | {outcome.seconds:.0f} s")
    print(f"\n{len(outcomes)} mutants in {time.monotonic() - started:.0f} s, {len(survivors)} survived")
    return int(bool(survivors))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
