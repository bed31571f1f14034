"""Run Snakemake under a progress view: its events, and its and its jobs' output, are read from pipes."""

import codecs
import contextlib
import json
import os
import re
import selectors
import signal
import subprocess
import sys
import time

from dpstudy.core.progress import ANSWERED, ASKS
from terminal.plain import Lines
from terminal.study import Study

LOGGER = ["--logger", "dpstudy", "--quiet", "host"]  # a profile's --quiet would leave out the end of jobs
CHANNEL = "DPSTUDY_EVENTS"  # see snakemake_logger_plugin_dpstudy
SHOWN = "DPSTUDY_TERMINAL"  # see dpstudy.core.progress
NOTE = re.compile(r"  - (\S.*: \d+% \(.*)")
CHATTER = "Using workflow specific profile profiles/default "  # printed in every run
NOTE_SECONDS = 12.0  # how long a note stays; jobs write one every 5 seconds
TICK_SECONDS = 0.25


def follow(command: list[str], lock: int) -> tuple[int, Study]:
    """Run the command with a progress view; returns its exit status (from 128: a signal) and the study's last state."""
    study = Study(began=time.monotonic())
    terminal = sys.stderr.isatty() and os.environ.get("TERM", "dumb") not in ("dumb", "unknown")
    environment = os.environ | ({SHOWN: "yes"} if terminal else {})
    # The logger plugin lies beside this package.
    folders = [os.path.dirname(os.path.dirname(os.path.abspath(__file__))), environment.get("PYTHONPATH", "")]
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, folders))
    events, pipe = os.pipe()
    environment[CHANNEL] = str(pipe)
    # Only what would disturb the view is caught: another standard output than the terminal is left alone.
    stdout = subprocess.PIPE if terminal and sys.stdout.isatty() else None
    process = subprocess.Popen(command, pass_fds=[lock, pipe], env=environment, stdout=stdout, stderr=subprocess.PIPE)
    os.close(pipe)

    def interrupted(*_) -> None:  # Snakemake and its jobs got it too, and end by themselves
        study.stopping = True

    def terminated(*_) -> None:
        study.stopping = True
        process.terminate()

    if signal.getsignal(signal.SIGINT) != signal.SIG_IGN:
        signal.signal(signal.SIGINT, interrupted)
    signal.signal(signal.SIGTERM, terminated)
    try:
        with _view(study, terminal) as view:
            _Follower(study, view).read(process, events)
    except BaseException:  # such as a terminal that is gone: nobody would see the run any more
        process.terminate()
        raise
    status = process.wait()
    return (status if status >= 0 else 128 - status), study


def _view(study: Study, terminal: bool):
    if not terminal:
        return Lines(study)
    try:
        from terminal.view import View
    except ModuleNotFoundError as error:
        print(f"dpstudy: {error.name} is not installed (make .venv/study.stamp installs it): progress is told in lines")
        return Lines(study)
    return View(study)


class _Follower:
    """A reader of the pipes of a run, until it ends, which passes events and lines on to the view."""

    def __init__(self, study: Study, view):
        self.study, self.view = study, view
        self._held: list[str] = []  # errors of ending jobs, printed later unless a message with the job's name has them
        self._told: list[str] = []
        self._note, self._noted, self._drawn = "", 0.0, 0.0

    def read(self, process: subprocess.Popen, events: int) -> None:
        streams = {events: self._event, process.stderr.fileno(): self._line}
        if process.stdout:
            streams[process.stdout.fileno()] = self._line
        with selectors.DefaultSelector() as selector:
            for descriptor, handle in streams.items():
                os.set_blocking(descriptor, False)
                selector.register(descriptor, selectors.EVENT_READ, _lines_to(handle))
            while selector.get_map():
                ready = selector.select(TICK_SECONDS)
                for key, _ in ready:
                    content = os.read(key.fd, 1 << 16)
                    key.data(content)
                    if not content:
                        selector.unregister(key.fd)
                self._draw(time.monotonic())
                if not ready and process.poll() is not None:  # a job that lives a little longer may hold a pipe
                    break
        for line in self._held:
            if not any(line.removeprefix("dpstudy: ") in message for message in self._told):
                self.view.pass_on(line)

    def _draw(self, now: float) -> None:
        if now - self._drawn >= TICK_SECONDS:
            self._drawn = now
            self.view.refresh(now, self._note if now - self._noted < NOTE_SECONDS else "")

    def _event(self, line: str) -> None:
        with contextlib.suppress(json.JSONDecodeError):  # a line that Snakemake was killed in
            for message in self.study.hear(json.loads(line), time.monotonic()):
                self._told.append(message)
                self.view.say(message)

    def _line(self, line: str) -> None:
        if note := NOTE.match(line):
            self._note, self._noted = note[1], time.monotonic()
        elif line in (ASKS, ANSWERED):
            self.view.pause(line == ASKS)
        elif line.startswith(CHATTER):
            return
        elif line.startswith("dpstudy: "):
            self._held.append(line)
        else:
            self.view.pass_on(line)


def _lines_to(handle):
    """A function that takes chunks of bytes and calls `handle` with each complete line; an empty chunk is the end."""
    decoder, rest = codecs.getincrementaldecoder("utf-8")("replace"), ""

    def take(content: bytes) -> None:
        nonlocal rest
        *lines, rest = (rest + decoder.decode(content)).split("\n")
        for line in lines + ([rest] if rest and not content else []):
            handle(line)

    return take
