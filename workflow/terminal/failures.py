"""The final message of a study that stopped: each error once, with its jobs, their logs and the remedy."""

import re
import sys
from collections.abc import Iterable
from pathlib import Path

from terminal.names import name_of_log

# What Snakemake says of a WorkflowError that the rules raise while it reads them.
REFUSAL = re.compile(
    r"^WorkflowError(?: in file .*, line \d+)?:\n(?:dpstudy: )?(.+(?:\n(?!  File |Using ).+)*)", re.MULTILINE
)
NO_RULE = re.compile(r"^MissingRuleException:\nNo rule to produce (\S+)", re.MULTILINE)
NAMED = 3  # jobs with the same sentence that are named
WITHOUT_A_WORD = (
    "ended without a word in its log, as a job does that is killed, most often for want of memory; try fewer jobs at a "
    "time (make study CORES=1), on a cluster more mem_mb"
)


def sentences(log: str | Path) -> list[str]:
    """The error sentences in a job's log; none where there is no such log."""
    return [sentence for line in lines_of(log) if (sentence := line.partition(" ERROR ")[2])]


def notices(log: str | Path) -> list[str]:
    """The notices in the log of a job that succeeded (`dpstudy.core.job.notice`)."""
    return [sentence for line in lines_of(log) if (sentence := line.partition(" NOTICE ")[2])]


def lines_of(log: str | Path) -> list[str]:
    """The lines of a log; none where there is no such file."""
    try:
        return Path(log).read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return []


def refusal(text: str) -> str:
    """The workflow's refusal of a study before any job runs, a sentence or a line for each of several; "" if none.

    Args:
        text: what Snakemake printed.
    """
    match = REFUSAL.search(text)
    return "\n  ".join(" ".join(line.split()) for line in match[1].splitlines()) if match else ""


def not_made(text: str) -> str:
    """The requested file or folder that no rule makes; "" where `text` names none.

    Args:
        text: what Snakemake printed.
    """
    match = NO_RULE.search(text)
    return match[1] if match else ""


def explain(
    status: int, started: float, failed: Iterable[tuple[str, list[str], str]], trouble: str, refused: str = ""
) -> None:
    """Print why the study stopped.

    Args:
        status: of Snakemake; above 128 it stands for a signal.
        started: when, in seconds of the system's clock; logs from before are not read.
        failed: of each job that is known to have failed the name, the logs, and how it was ended, if that is known.
        trouble: what is wrong with the disk, if so.
        refused: why the workflow did not begin, if so.
    """
    if refused:
        return tell(f"dpstudy: {refused}")
    jobs_by_sentence: dict[str, dict[str, str]] = {}
    for log in sorted(Path("results/logs").rglob("*.log")):
        if log.stat().st_mtime >= started:
            for sentence in sentences(log):
                jobs_by_sentence.setdefault(sentence, {})[name_of_log(str(log))] = str(log)
    spoke = {log for jobs in jobs_by_sentence.values() for log in jobs.values()}
    for name, logs, ended in failed:
        if not spoke.intersection(logs):
            jobs_by_sentence.setdefault(ended or trouble or WITHOUT_A_WORD, {})[name] = ", ".join(logs)
    for sentence, jobs in jobs_by_sentence.items():
        tell(f"\ndpstudy: {sentence}")
        for name, log in list(jobs.items())[:NAMED]:
            tell(f"  job: {name}")
            tell(f"  log: {log}")
        if len(jobs) > NAMED:
            tell(f"  and {len(jobs) - NAMED:,} more jobs")
    if trouble and not jobs_by_sentence:  # Snakemake's own files could not be written
        tell(f"\ndpstudy: {trouble}")
    why = f" (signal {status - 128})" if status > 128 else ""
    remedy = " once what is named above is mended" if jobs_by_sentence else ""
    tell(f"\ndpstudy: the study stopped{why}; what is finished is kept, the same command continues{remedy}")


def tell(line: str) -> None:
    """Print a line to standard error."""
    print(line, file=sys.stderr)
