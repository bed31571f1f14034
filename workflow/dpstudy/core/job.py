"""Running a job: its log file, one-sentence errors, and its end when the workflow dies."""

import contextlib
import fcntl
import logging
import os
import resource
import shutil
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NoReturn

from dpstudy.core.errors import StudyError
from dpstudy.core.files import atomic, disk_trouble
from dpstudy.core.gpus import take
from dpstudy.core.progress import WORKFLOW

_POLL_SECONDS = 0.5
_NOTICE = logging.INFO + 5
logging.addLevelName(_NOTICE, "NOTICE")  # workflow/run.py shows such lines of a log when the job has ended
_STATE, _STARTED = 0, 19  # fields of /proc/PID/stat, counted after the command


def name_workflow() -> None:
    """Have the jobs that this process starts end when it ends; called by the Snakefile.

    Looking for Snakemake among a job's ancestors would not do: where it died before the job looked, there is none.
    """
    os.environ.update(ending_with_me())


def ending_with_me() -> dict[str, str]:
    """Environment variables for jobs that must end when this process does; empty on systems without /proc."""
    with contextlib.suppress(OSError):
        # process and start time: a number alone may be used again
        return {WORKFLOW: f"{os.getpid()} {_stat(os.getpid())[_STARTED]}"}
    return {}


def keep_to_owner(*folders: str) -> None:
    """Make the folders, and all files created from now on, readable by their owner alone; called by the Snakefile.

    This holds for files of this process, its jobs and Snakemake (logs and benchmarks too), and for the log in one of
    the folders that Snakemake has begun before it reads the Snakefile.

    Raises:
        StudyError: a folder belongs to somebody else.
    """
    os.umask(0o077)
    for folder in folders:
        try:
            os.chmod(folder, 0o700)
        except FileNotFoundError:
            pass
        except OSError as error:
            raise StudyError(
                f"{folder}: cannot be closed to others ({error.strerror}), and what this study makes is private; run "
                "it in a folder of your own"
            ) from None
        _write_elsewhere(Path(folder, "log"))


def _write_elsewhere(folder: Path) -> None:
    """What this process has open for writing in a folder, and others may have open for reading: it goes on in closed
    files of the same names, with what has been written so far. (Of a system without /proc it goes on as it is.)"""
    with contextlib.suppress(FileNotFoundError):
        for entry in list(Path("/proc/self/fd").iterdir()):
            number = int(entry.name)
            with contextlib.suppress(OSError):  # such as that of the list itself, closed by now
                path = entry.readlink()
                if path.parent != folder.resolve() or not os.fstat(number).st_mode & 0o077:
                    continue
                if fcntl.fcntl(number, fcntl.F_GETFL) & os.O_ACCMODE == os.O_RDONLY:
                    continue
                with atomic(path, private=True) as closed:
                    shutil.copyfile(path, closed)
                file = os.open(path, os.O_WRONLY | os.O_APPEND)
                os.dup2(file, number, inheritable=os.get_inheritable(number))
                os.close(file)


def check_writable(folder: str) -> None:
    """Check that a folder, if it exists, can be written to; called before anything runs.

    Raises:
        StudyError: the folder is there, and nothing can be written to it.
    """
    if os.path.isdir(folder) and not os.access(folder, os.W_OK):
        raise StudyError(
            f"{folder}: cannot be written to; it is read-only, or another user's. Make it writable, or work in a "
            "folder of your own"
        )


@contextlib.contextmanager
def job(log: str, append: bool = False, gpus: int = 0) -> Iterator[logging.Logger]:
    """Run a script's body as a job: log to the file `log`; a StudyError becomes one sentence and exit status 1.

    Anything unexpected goes to the log with its traceback. A job whose workflow was killed ends within a second,
    so that nothing writes beside its successor. With `append`, the log goes on where another process left it. `gpus`
    is how many the scheduler granted.
    """
    end_with_workflow()
    if os.environ.get("DPSTUDY_GPU") == "0":  # torch asks for itself
        os.environ["CUDA_VISIBLE_DEVICES"] = ""
    logging.raiseExceptions = False  # a log that cannot be written (full disk) is no reason for a traceback
    logger = logging.getLogger("dpstudy")
    started = time.monotonic()
    try:
        _open_log(log, append)
        take(gpus)
        yield logger
    except StudyError as error:
        _stop(logger, str(error))
    except MemoryError:
        _stop(logger, f"out of memory; give the rule more mem_mb or the machine fewer jobs (log: {log})", trace=True)
    except KeyboardInterrupt:
        raise SystemExit(130) from None
    except Exception as error:
        if trouble := disk_trouble(error):
            _stop(logger, f"{getattr(error, 'filename', None) or log}: {trouble}", trace=logger.hasHandlers())
        if not logger.hasHandlers():
            _stop(logger, f"{log}: cannot be opened ({type(error).__name__}: {error})", trace=True)
        _stop(logger, f"unexpected error ({type(error).__name__}: {error}); the traceback is in {log}", trace=True)
    logger.info("done in %.1f s, %.0f MB at most", time.monotonic() - started, _peak_mb())


def notice(sentence: str) -> None:
    """Log a message to the owner that does not stop the job; it also appears on the terminal."""
    logging.getLogger("dpstudy").log(_NOTICE, "%s", sentence.replace("\n", " "))


def _peak_mb() -> float:
    """The most resident memory that this process or one of its children had. Snakemake's benchmark file looks twice a
    minute in the long run, and misses what is over sooner."""
    unit = 1 if sys.platform == "darwin" else 1024
    used = [resource.getrusage(who).ru_maxrss * unit for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    with contextlib.suppress(OSError, ValueError), open("/proc/self/status", encoding="utf-8") as status:
        # ru_maxrss of a process that was started includes its parent's memory on Linux
        used[0] = next(1024 * int(line.split()[1]) for line in status if line.startswith("VmHWM:"))
    return max(used) / 1e6


def _open_log(log: str, append: bool) -> None:
    os.makedirs(os.path.dirname(log), exist_ok=True)
    if not append:
        open(log, "w", encoding="utf-8").close()  # and append from there, so that processes of one job share it
    logging.basicConfig(filename=log, level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    logging.captureWarnings(True)


def _stop(logger: logging.Logger, sentence: str, trace: bool = False) -> NoReturn:
    sentence = sentence.replace("\n", " ")  # one line: workflow/run.py repeats it from the log
    if trace or logger.hasHandlers():  # without a log that could be opened logging writes to the screen
        logger.error("%s", sentence, exc_info=trace)
    sys.stderr.write(f"dpstudy: {sentence}\n")  # at once: of two jobs that stop together none breaks the other's line
    raise SystemExit(1) from None


def end_with_workflow() -> None:
    """End this process as soon as the process that runs the workflow (or the job that this one helps) ends."""
    watched = os.environ.get(WORKFLOW, "").split()
    if not watched:
        return
    if not _alive(*watched):
        os._exit(1)

    def watch() -> None:
        while _alive(*watched):
            time.sleep(_POLL_SECONDS)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def _stat(pid: int | str) -> list[str]:
    with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
        return file.read().rpartition(")")[2].split()


def _alive(pid: str, started: str) -> bool:
    try:
        fields = _stat(pid)
    except OSError:
        return False
    return fields[_STATE] != "Z" and fields[_STARTED] == started
