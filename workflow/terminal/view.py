"""The progress of a study in a terminal: a few lines that are redrawn, below the lines that stay."""

from rich.console import Console, Group
from rich.constrain import Constrain
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from terminal.names import duration
from terminal.plain import counts, rest
from terminal.study import Study

WIDEST = 80  # columns: a frame that fills a wide terminal falls apart when it is made narrower
NARROW = 60  # without bars
ROWS = 5  # jobs that are named
ECHO = "^C__"  # room for what the terminal itself writes behind the last line: wrapped, it would shift the next frame


class View:
    """The progress view; `refresh` draws it, and leaving the context removes it."""

    def __init__(self, study: Study):
        self.study = study
        self._note, self._now = "", study.began
        self._console = Console(stderr=True, highlight=False, markup=False, emoji=False)
        self._live = Live(
            console=self._console,
            get_renderable=self.frame,
            auto_refresh=False,
            transient=True,
            redirect_stdout=False,
            redirect_stderr=False,
        )

    def __enter__(self) -> "View":
        self._live.start()
        return self

    def __exit__(self, *_) -> None:
        self._live.stop()

    def say(self, line: str) -> None:
        """Print a line that stays, above the view."""
        self._console.print(Text(line), soft_wrap=True)

    def pass_on(self, line: str) -> None:
        """Print output of Snakemake or a job above the view."""
        self.say(line)

    def pause(self, paused: bool) -> None:
        """Hide the view while a job asks a question, or show it again."""
        self._live.stop() if paused else self._live.start()

    def refresh(self, now: float, note: str = "") -> None:
        """Draw the view, unless it is paused; `note` is a running job's own progress."""
        self._now, self._note = now, note
        if self._live.is_started:
            self._live.refresh()

    def frame(self) -> Group:
        """The lines of the view, cut to the terminal's width."""
        study, width = self.study, min(self._console.width - len(ECHO), WIDEST)
        head = [f"study {study.name}" if study.name else "study", f"{duration(self._now - study.began)} elapsed"]
        if not study.jobs:
            head.append("looking at what is to be done")
        if study.stopping:
            head.append("stopping")
        lines = [Text(", ".join(head + rest(study, self._now)))]
        if study.jobs:
            lines.append(Constrain(self._bars(bars=width >= NARROW), width))
        jobs = sorted(study.running.values(), key=lambda job: job.started)
        for job in jobs[:ROWS]:
            lines.append(Text(f"{duration(self._now - job.started):>8}  {tail(job.name, width - 10)}"))
        if len(jobs) > ROWS:
            lines.append(Text(f"{'':10}and {len(jobs) - ROWS:,} more"))
        if self._note:
            lines.append(Text(f"{'':10}{self._note}", style="dim"))
        for line in lines:
            if isinstance(line, Text):
                line.truncate(width, overflow="crop")
        return Group(*lines)

    def _bars(self, bars: bool) -> Table:
        study = self.study
        rows = [("jobs", study.jobs_done, study.jobs, counts(study, len(study.running), len(study.failed)))]
        if study.cells:
            failed = counts(study, study.cells_running(), study.cells_failed())
            rows.insert(0, ("cells", study.cells_done, study.cells, failed))
        table = Table.grid(padding=(0, 2, 0, 0))
        for name, done, total, more in rows:
            bar = [ProgressBar(total=total, completed=done, width=20)] if bars else []
            table.add_row(name, *bar, Text(", ".join([f"{done} of {total}", *more]), no_wrap=True, overflow="crop"))
        return table


def tail(text: str, width: int) -> str:
    """The text, or the end of it that fits the width, since names of jobs differ at their ends."""
    return text if len(text) <= width else "..." + text[len(text) - max(0, width - 3) :]
