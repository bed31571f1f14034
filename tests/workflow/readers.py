"""Who could read what a whole run wrote: every file and folder that it made anywhere, and its mode."""

import contextlib
import os
import re
import threading
import time
from pathlib import Path

from tests.workflow.conftest import StudyFolder

OTHERS = 0o077
# What is open before the Snakefile has been read: folders of Snakemake's, with a process's number and which file of the
# library imports which.
BEFORE = re.compile(r"study/\.snakemake(/log|/dpstudy-run|/\.?dpstudy-imports\.json(\.[0-9a-f]{8}\.\d+\.tmp)?)?")


class Watched(StudyFolder):
    """A study whose run has `home` and `tmp` of its own beside the folder `study`, and a umask that closes nothing.

    Used as a context: what the run makes and takes away again is seen too, by looking all the time.

    Args:
        top: holds `study`, the workflow.
    """

    def __init__(self, top: Path):
        super().__init__(top / "study")
        self.top = top
        for name in ("home", "tmp"):
            (top / name).mkdir(exist_ok=True)
        self._before = set(top.rglob("*"))
        self._seen: dict[Path, int] = {}  # with the mode when it was first seen
        self._ended = threading.Event()

    @property
    def environment(self):
        own = {"HOME": str(self.top / "home"), "TMPDIR": str(self.top / "tmp")}
        return {name: value for name, value in super().environment.items() if not name.startswith("XDG_")} | own

    def __enter__(self):
        self._umask = os.umask(0)
        self._looking = threading.Thread(target=self._look)
        self._looking.start()
        return self

    def __exit__(self, *_):
        self._ended.set()
        self._looking.join()
        os.umask(self._umask)

    def _look(self):
        places = [self.top / "tmp", self.top / "home", self.path, self.path / ".snakemake"]
        while not self._ended.is_set():
            for place in places:
                with contextlib.suppress(OSError):
                    for entry in os.scandir(place):
                        with contextlib.suppress(OSError):
                            self._seen.setdefault(Path(entry.path), entry.stat(follow_symlinks=False).st_mode)
            time.sleep(0.002)

    def made(self) -> dict[str, int]:
        """Path below `top` -> mode, of all that the run has made; of what is gone again, in the first level of a place.
        Where a mode was first another one, what either allows."""
        modes = dict(self._seen)
        for path in self.top.rglob("*"):
            with contextlib.suppress(FileNotFoundError):
                modes[path] = modes.get(path, 0) | path.lstat().st_mode
        return {
            str(path.relative_to(self.top)): mode
            for path, mode in sorted(modes.items())
            if path not in self._before and not path.is_symlink()
        }

    def open_to_others(self) -> list[str]:
        """Of these what others could open at some time: it was not closed, nor was a folder around it. Left out are
        `BEFORE` and folders of Snakemake's cache, for workflows from elsewhere."""
        modes = self.made()
        closed = {path for path, mode in modes.items() if not mode & OTHERS}
        return [
            path
            for path, mode in modes.items()
            if mode & OTHERS and not any(str(parent) in closed for parent in Path(path).parents)
            if not BEFORE.fullmatch(path) and not (path.startswith("home/.cache") and (self.top / path).is_dir())
        ]
