"""The frame of a job: a log file, one sentence for a user's mistake, and no life after its parent's death."""

import contextlib
import logging
import os
import sys
import threading
import time
from collections.abc import Iterator

from dpstudy.errors import StudyError

_POLL_SECONDS = 0.5


@contextlib.contextmanager
def job(log: str) -> Iterator[logging.Logger]:
    """Run a script's body: log to the file `log`, turn a StudyError into one sentence and exit status 1.

    Anything unexpected goes to the log with its traceback. A job whose workflow was killed ends within a second,
    so that nothing writes beside its successor.
    """
    os.makedirs(os.path.dirname(log), exist_ok=True)
    logging.basicConfig(filename=log, filemode="w", level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    logging.captureWarnings(True)
    logger = logging.getLogger("dpstudy")
    _end_with_workflow()
    started = time.monotonic()
    try:
        yield logger
    except StudyError as error:
        logger.error("%s", error)
        print(f"dpstudy: {error}", file=sys.stderr)
        raise SystemExit(1) from None
    except MemoryError:
        logger.exception("out of memory")
        print(f"dpstudy: out of memory; give the rule more mem_mb or the machine fewer jobs (log: {log})", file=sys.stderr)
        raise SystemExit(1) from None
    except Exception as error:
        logger.exception("unexpected error")
        print(f"dpstudy: unexpected error ({type(error).__name__}: {error}); the traceback is in {log}", file=sys.stderr)
        raise SystemExit(1) from None
    logger.info("done in %.1f s", time.monotonic() - started)


def _end_with_workflow() -> None:
    """Watch the process that runs the workflow, and end when it does."""
    watched = _workflow_process()
    if watched is None:
        return

    def watch() -> None:
        while _alive(*watched):
            time.sleep(_POLL_SECONDS)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def _workflow_process() -> tuple[int, str] | None:
    """(pid, start time) of the nearest ancestor that runs snakemake; None where there is no /proc, or no such process."""
    pid = os.getppid()
    while pid > 1:
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as file:
                command = file.read().split(b"\0")
            fields = _stat(pid)
        except (OSError, IndexError):
            return None
        if any(os.path.basename(part) == b"snakemake" for part in command[:4]):
            return pid, fields[19]
        pid = int(fields[1])
    return None


def _stat(pid: int) -> list[str]:
    with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
        return file.read().rpartition(")")[2].split()


def _alive(pid: int, started: str) -> bool:
    try:
        fields = _stat(pid)
    except OSError:
        return False
    return fields[0] != "Z" and fields[19] == started
