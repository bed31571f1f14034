"""`dpstudy rehearse`: the whole study on as many synthetic images and subjects, before budget is spent.

Everything lies in a folder of its own, the book of what secure noise spends among it: drawn images lose no privacy.
"""

import os
import re
import shutil
import signal
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import numpy as np
import yaml

from dpstudy.command.own_study import beside_the_book, read_own_study
from dpstudy.command.workflow import run
from dpstudy.config.cells import unfold
from dpstudy.config.including import read_config
from dpstudy.config.loading import read_study
from dpstudy.core.errors import StudyError
from dpstudy.core.files import read_json
from dpstudy.data.own import own_reader
from dpstudy.data.prepare import data_root, look_through
from dpstudy.data.stand_in import write_stand_in
from dpstudy.plan import paths
from dpstudy.plan.first_spending import DRAWN
from dpstudy.privacy.data_book import NAME
from dpstudy.privacy.printed import upper_bound

_TOLD = re.compile(r"^\S+ \S+ (WARNING|NOTICE) (.*)$", re.MULTILINE)
_MOST = 12  # messages
_TRIES, _WAIT_SECONDS = 20, 0.7


def rehearse(study: str, folder: str, cores: str, keep: bool) -> int:
    """Run a study on synthetic stand-ins of its private data, with one release, and report the cost; the exit status.

    Args:
        study: path of the config.
        folder: to be made, open to its owner alone; removed at the end.
        keep: leave it.

    Raises:
        StudyError: the config or a table has a mistake, nothing is to be stood in for, or the folder is not empty.
    """
    place = Path(folder).resolve()
    if place.is_dir() and not any(place.iterdir()):
        place.rmdir()
    if place.exists():
        raise StudyError(f"{folder}: is there already, and not empty; rehearse in another folder (IN=DIR, --in DIR)")
    import psutil  # before the handler that needs it: a signal amid its import would find half of it

    ended: list[int] = []
    children = psutil.Process().children
    signal.signal(signal.SIGTERM, lambda *_: _end(ended, children))  # its files are removed after a termination, too
    config, changed, known = _stood_in(study, place)
    try:
        print(f"dpstudy: rehearsing {study} on drawn images ({changed}); nothing is spent", flush=True)
        os.environ.pop("DPSTUDY_DATA", None)
        os.environ[DRAWN] = "1"
        started = time.monotonic()
        status = run("run", str(config), str(place), [], [], ["--cores", cores])
        if not status and not ended and (cell := _releasable(config)):
            status = run("release", str(config), str(place), [], [f"{paths.RELEASES}/{cell}"], ["--cores", cores])
        if ended:
            return 128 + signal.SIGTERM
        _tell(place, time.monotonic() - started)
        print("".join(f"  {sentence}\n" for sentence in known), end="")
        return status
    finally:
        ended.append(0)  # a signal from here on would leave half of the files
        if keep:
            print(f"  {folder} is left. Its scores are of drawn images, and say nothing; it is not for others.")
        else:
            _remove(place)
            print(f"  {folder} and what was made in it are gone again (`dpstudy rehearse --keep` leaves them).")


def _end(ended: list[int], children: Callable[[], list]) -> None:
    """End the run that is under way as whoever ends it would, and note that it is so; what is ending is left to it.

    Raises:
        SystemExit: no run is under way, and none shall begin.
    """
    if ended:
        return
    ended.append(signal.SIGTERM)
    if not (running := children()):
        raise SystemExit(128 + signal.SIGTERM)
    for process in running:
        process.terminate()


def _remove(place: Path) -> None:
    """Remove a folder in which jobs of a run that was ended may write for half a second more."""
    for _ in range(_TRIES):
        shutil.rmtree(place, ignore_errors=True)
        time.sleep(_WAIT_SECONDS)
        if not place.exists():
            return


def _stood_in(study: str, place: Path) -> tuple[Path, str, list[str]]:
    """The config of the rehearsal, what it changes in words, and what is known of the owner's records."""
    loaded, names = read_own_study(study)
    config, root, drawn = read_config(study), data_root(loaded["data_root"]), {}
    known = [sentence for name in names for sentence in _known(loaded, name, root)]
    place.mkdir(mode=0o700, parents=True)
    try:
        (place / "data").mkdir()
        for name in names:
            folder = f"drawn-{name}"
            entry = write_stand_in(config["datasets"][name], root, place / "data" / folder, np.random.default_rng())
            drawn[name] = entry | {"location": folder}
        private = {Path(root, config["datasets"][name]["location"]).resolve() for name in names}
        _link(root, place / "data", private | {place, root.resolve()})
    except BaseException:
        shutil.rmtree(place, ignore_errors=True)
        raise
    config["datasets"] |= drawn
    config["data_root"] = str(place / "data")
    # named, since one that is searched for may be the true one, where the rehearsal lies below the data
    config["release"] = config.get("release", {}) | {"book": str(place / "data" / NAME)}
    path = place / "study.yaml"
    path.write_text(yaml.safe_dump(config, sort_keys=False), encoding="utf-8")
    return path, ", ".join(names), known


def _link(folder: Path, target: Path, left_out: set[Path]) -> None:
    """Link what lies in a folder, public data and networks, into another, but for some folders and the budget log."""
    for other in folder.iterdir():
        real = other.resolve()
        if real in left_out or other.name in (NAME, f".{NAME}.lock"):  # through a link, the lock would be the log's
            continue
        if any(real in one.parents for one in left_out):
            (target / other.name).mkdir()
            _link(other, target / other.name, left_out | {real})  # else links in a circle would be followed for ever
        else:
            (target / other.name).symlink_to(real)


def _known(study: dict, name: str, root: Path) -> Iterator[str]:
    """What is odd about a data set, and what was spent of it.

    Raises:
        StudyError: it has a mistake that a run would refuse.
    """
    entry = study["datasets"][name]
    yield from (f"datasets.{name}: {sentence}" for sentence in look_through(name, entry, root, entry["delta"]))
    yield from beside_the_book(study, name)


def _releasable(config: Path) -> str | None:
    """A cell with a finite epsilon of a data set that was stood in for, where noise is secure."""
    study = read_study(config)
    if study["noise"] != "secure":
        return None
    cells = (cell for cell in unfold(study) if cell.epsilon != "inf")
    return next((cell.path for cell in cells if own_reader(study["datasets"][cell.dataset])), None)


def _tell(place: Path, seconds: float) -> None:
    """Print how long each rule's jobs took, what memory, and what they said."""
    jobs: Mapping[str, list[tuple[float, float]]] = defaultdict(list)
    measured = place / paths.BENCHMARKS
    for path in measured.rglob("*.tsv"):
        rule = path.relative_to(measured).parts[0]
        line = path.read_text().splitlines()[-1].split("\t")
        jobs[rule].append((float(line[0]), float(line[2]) if line[2] not in ("-", "NA") else 0.0))
    megabytes = sum(path.stat().st_size for path in (place / paths.RESULTS).rglob("*") if path.is_file()) / 1e6
    print(f"\nrehearsed in {seconds / 60:.1f} minutes; results {megabytes:.0f} MB")
    print(f"{'rule':22}{'jobs':>6}{'seconds':>10}{'longest':>10}{'MB at most':>12}")
    for rule, each in sorted(jobs.items(), key=lambda item: -sum(took for took, _ in item[1])):
        took, held = zip(*each, strict=True)
        print(f"{rule:22}{len(each):6}{sum(took):10.0f}{max(took):10.0f}{max(held):12.0f}")
    if (total := place / paths.TOTAL).is_file():
        for name, spent in read_json(total)["datasets"].items():
            if spent["epsilon"] is not None:
                epsilon, delta = upper_bound(spent["epsilon"]), upper_bound(spent["delta"])
                print(f"  of {name} the study spends epsilon {epsilon} at delta {delta}, all models together")
    messages: dict[str, None] = {}
    for path in sorted((place / paths.LOGS).rglob("*.log")):
        messages |= dict.fromkeys(text for _, text in _TOLD.findall(path.read_text(encoding="utf-8", errors="replace")))
    for text in list(messages)[:_MOST]:
        print(f"  said: {text}")
    if len(messages) > _MOST:
        print(f"  and {len(messages) - _MOST} messages more, in {paths.LOGS} (--keep)")
