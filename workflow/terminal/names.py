"""The names of jobs and the durations, as messages show them."""

import re

LOG = re.compile(r"results/logs/([^/]+)/(.+)\.log$")
CELL = re.compile(r"results/(cells|runs)/((?:[^/]+/){3}eps=[^/]+)/(.*)(run|metrics)\.json")
VARYING = ("epsilon", "seed", "shard", "share", "clip")  # wildcards that change little of how long a job takes


def job_name(rule: str, wildcards: dict[str, str], logs: list[str]) -> str:
    """A job's rule and its subject, such as data set, features, entry and epsilon of a cell, as in paths of results.

    >>> job_name("train_seed", {}, ["results/logs/train_seed/mnist/pixels/cnn/eps=1/seed=0.log"])
    'train_seed mnist/pixels/cnn/eps=1/seed=0'
    """
    named = filter(None, map(name_of_log, logs))
    return next(named, f"{rule} {'/'.join(wildcards.values())}".strip())


def name_of_log(log: str) -> str:
    """The name of the job that writes this log; empty where it is no log of a rule.

    >>> name_of_log("results/logs/build_report/report.log")
    'build_report report'
    """
    match = LOG.search(log)
    return f"{match[1]} {match[2]}" if match else ""


def kind_of(rule: str, wildcards: dict[str, str]) -> tuple[str, str]:
    """A job's rule, and those wildcards on which its run time depends: jobs of one kind take about equally long."""
    return rule, "/".join(value for name, value in wildcards.items() if name not in VARYING)


def cell_of(outputs: list[str]) -> tuple[str, bool]:
    """The cell that a job with these outputs trains, gathers or scores ("" for none), and whether the job completes it.

    >>> cell_of(["results/runs/mnist/pixels/cnn/eps=1/seed=0/run.json"])
    ('mnist/pixels/cnn/eps=1', False)
    """
    for output in outputs:
        if match := CELL.match(output):
            return match[2], match[4] == "metrics"
    return "", False


def duration(seconds: float) -> str:
    """Seconds as text: minutes and seconds, with hours where there are any.

    >>> duration(75.2), duration(3725)
    ('1:15', '1:02:05')
    """
    minutes, seconds = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{seconds:02}" if hours else f"{minutes}:{seconds:02}"


def about(seconds: float) -> str:
    """Seconds as text for a rough estimate.

    >>> about(40), about(260), about(9000)
    ('40 s', '4 min', '2 h 30 min')
    """
    if seconds < 100:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 100 else f"{minutes // 60} h {minutes % 60} min"
