"""The command line parser of `dpstudy`."""

import argparse
import logging
import os
import signal
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from dpstudy import __version__
from dpstudy.core import extras
from dpstudy.core.errors import StudyError

OF_THE_WORKFLOW = ("run", "status", "release")  # what follows `--` there is Snakemake's


class _Parser(argparse.ArgumentParser):
    """One whose mistakes are one line."""

    def error(self, message: str):
        self.exit(2, f"{self.prog}: {message}; `{self.prog} --help` says more\n")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; the exit status, 1 after an error message of one sentence."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    more: list[str] = []
    if words and words[0] in OF_THE_WORKFLOW and "--" in words:
        more = words[words.index("--") + 1 :]
        words = words[: words.index("--")]
    given = _parser().parse_args(words)
    if hasattr(signal, "SIGPIPE"):
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # `dpstudy inspect B | head` ends quietly
    try:
        with extras.named(f"dpstudy {given.command}"):
            return given.does(given, more)
    except StudyError as error:
        print(f"dpstudy: {error}", file=sys.stderr)
    except OSError as error:
        print(f"dpstudy: {error.filename or error}: {error.strerror}", file=sys.stderr)
    return 1


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="dpstudy", description="Differentially private image classification.")
    parser.add_argument("--version", action="version", version=f"dpstudy {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")

    def command(name: str, does: Callable, about: str, example: str = ""):
        epilog = f"example: dpstudy {name} {example}".rstrip()
        added = commands.add_parser(name, help=about, description=f"{about}.", epilog=epilog)
        added.set_defaults(does=does)
        return added

    asked = command("epsilon", _epsilon, "What DP-SGD or a Gaussian release costs, or which noise a budget asks for",
                    "--n 50000 --batch 4096 --steps 625 --noise 1.5 --delta 1e-5")  # fmt: skip
    asked.add_argument("--n", type=int, help="records, or persons; public")
    asked.add_argument(
        "--batch", type=float, metavar="B", help="expected size of a Poisson batch; all records if left out"
    )
    asked.add_argument("--steps", type=int, default=1, metavar="T", help="releases (1)")
    asked.add_argument("--delta", type=float, required=True, metavar="D", help="the chance that the guarantee fails")
    either = asked.add_mutually_exclusive_group(required=True)
    either.add_argument(
        "--noise", type=float, metavar="S", help="noise multiplier: standard deviation over sensitivity"
    )
    either.add_argument("--epsilon", metavar="E", help="the budget: the least noise that keeps it is found")

    asked = command("predict", _predict, "Scores of images by a released bundle, as CSV", "bundle *.png > scores.csv")
    asked.add_argument("bundle", metavar="BUNDLE")
    asked.add_argument("images", nargs="+", metavar="IMAGE")
    asked.add_argument("--max-pixels", type=int, metavar="N", help="of the largest image that is decoded")
    asked.add_argument("--prevalence", action="append", default=[], metavar="CLASS=SHARE",
                       help="where classes are not as common as in training; repeatable")  # fmt: skip
    asked.add_argument("--specificity", metavar="SHARE", help="also say which classes are there, such as by 0.9")

    asked = command("inspect", _inspect, "The guarantee of a bundle or a ledger, in words", "bundle")
    asked.add_argument("path", metavar="BUNDLE|ledger.json")

    asked = command("verify", _verify, "Do a bundle's files belong together, and does its ledger cost what it says",
                    "bundle")  # fmt: skip
    asked.add_argument("bundle", metavar="BUNDLE")

    asked = command("check-method", _check_method, "Is a method of yours as private as it says, and does it fit in?",
                    "my_package.class_means:class_means clipping_norm=1.0")  # fmt: skip
    asked.add_argument("name", metavar="NAME", help="a method, or package.module:name")
    asked.add_argument("values", nargs="*", metavar="KEY=VALUE", help="hyper-parameters, as a config has them")

    for name, about in (("run", "Run a study"), ("status", "Which cells of a study are done, stale or missing")):
        asked = command(name, _workflow, about, "studies/tramer2021-mnist.yaml --in ../mine")
        _add_study(asked)
    asked = command("release", _workflow, "Write what may be published of a cell",
                    "own/scatternet/default/eps=2 studies/own-data.yaml")  # fmt: skip
    asked.add_argument("cell", metavar="CELL", help="DATASET/FEATURES/ENTRY/eps=E")
    _add_study(asked)

    asked = command("plan", _plan, "What a study of your own images would spend, and what to expect of it",
                    "studies/mine.yaml --json plan.json")  # fmt: skip
    asked.add_argument("study", metavar="STUDY", help="a YAML file with data sets of your own")
    asked.add_argument("--json", metavar="FILE", help="write it to this file, too")
    asked.add_argument("--figure", metavar="FILE", help="draw the forecast: a PNG, PDF or SVG file")

    asked = command("rehearse", _rehearse, "Run a study on drawn images, as many of as many persons: spends nothing",
                    "studies/mine.yaml")  # fmt: skip
    asked.add_argument("study", metavar="STUDY", help="a YAML file with data sets of your own")
    asked.add_argument("--in", dest="folder", default="rehearsal", metavar="DIR", help="made, and removed (rehearsal)")
    asked.add_argument("--cores", default="all", metavar="N", help="all where left out")
    asked.add_argument("--keep", action="store_true", help="leave the folder")

    asked = command("wipe", _wipe, "List and remove all that was made of private records but what may be published",
                    "--in ../mine")  # fmt: skip
    asked.add_argument("--in", dest="folder", default=".", metavar="DIR", help="where results lie; here where left out")
    asked.add_argument("--yes", action="store_true", help="ask nothing")

    asked = command("record", _record, "Take a study's finished cells into the measured numbers of this repository",
                    "studies/tramer2021-mnist.yaml --in ../mine --kind full")  # fmt: skip
    asked.add_argument("study", nargs="?", default="config.yaml", metavar="STUDY", help="a YAML file (config.yaml)")
    asked.add_argument("--in", dest="folder", default=".", metavar="DIR", help="where its results lie")
    asked.add_argument("--kind", required=True, metavar="KIND", help="full; 'reduced: WHAT' or 'stand-in: FOR WHAT'")
    asked.add_argument("--machine", default="", metavar="TEXT", help="what it ran on; this processor where left out")

    asked = command("curves", _curves, "Measure anew what `dpstudy plan` forecasts from, on a study's public features",
                    "studies/forecast.yaml --in ../mine")  # fmt: skip
    asked.add_argument("study", metavar="STUDY", help="a YAML file (studies/forecast.yaml)")
    asked.add_argument("--in", dest="folder", default=".", metavar="DIR", help="where its results lie")

    command("evidence", _evidence, "Write docs/evidence.md: what became of each printed number")

    command("schemas", _schemas, "Write the schemas of methods, and their table in docs/methods.md, of their modules")
    command("leaderboard", _leaderboard, "Write docs/leaderboard.md: where recorded models stand on the public one")

    asked = command("compare", _compare, "What changed between two results folders, cell by cell",
                    "results ../other/results")  # fmt: skip
    asked.add_argument("a", metavar="A")
    asked.add_argument("b", metavar="B")
    asked.add_argument("--csv", metavar="FILE", help="write every change to this file, too")
    asked.add_argument("--json", action="store_true", help="print every change as JSON")
    return parser


def _add_study(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("study", nargs="?", metavar="STUDY", help="a YAML file; config.yaml where left out")
    parser.add_argument("--in", dest="folder", metavar="DIR", help="where results are made; here where left out")
    parser.add_argument(
        "--only", action="append", metavar="NAME", help="this table or figure and its cells; repeatable"
    )
    parser.add_argument("--target", action="append", metavar="FILE", help="make this file alone; repeatable")
    parser.add_argument("--cores", metavar="N", help="all where left out")
    parser.epilog = f"{parser.epilog}; after -- stand options of Snakemake's"


def _epsilon(given: argparse.Namespace, _more: list[str]) -> int:
    from dpstudy.command.costs import costs

    print("\n".join(costs(given.n, given.batch, given.steps, given.delta, given.noise, given.epsilon)))
    return 0


def _predict(given: argparse.Namespace, _more: list[str]) -> int:
    from dpstudy.release.predictor import main as predict

    most = [] if given.max_pixels is None else ["--max-pixels", str(given.max_pixels)]
    shares = [f"--prevalence={one}" for one in given.prevalence]
    share = [] if given.specificity is None else [f"--specificity={given.specificity}"]
    return predict(_bundle(given.bundle), [*most, *shares, *share, "--", *given.images])


def _inspect(given: argparse.Namespace, _more: list[str]) -> int:
    from dpstudy.command.inspection import inspected

    print("\n".join(inspected(given.path)))
    return 0


def _verify(given: argparse.Namespace, _more: list[str]) -> int:
    from dpstudy.release.verify import main as verify

    return verify(_bundle(given.bundle).resolve())


def _check_method(given: argparse.Namespace, _more: list[str]) -> int:
    from dpstudy.check_method import main as check

    return check([given.name, *given.values])


def _workflow(given: argparse.Namespace, more: list[str]) -> int:
    from dpstudy.command.workflow import run
    from dpstudy.plan import paths

    cell = getattr(given, "cell", None)
    if cell and given.study and Path(given.study).is_file():
        from dpstudy.command.own_study import check_paid_here

        check_paid_here(given.study, cell, given.folder or ".")
    targets = [*(given.target or []), *([f"{paths.RELEASES}/{cell}"] if cell else [])]
    cores = [] if given.command == "status" else ["--cores", given.cores or "all"]
    status = run(given.command, given.study, given.folder, given.only or [], targets, [*cores, *more])
    if cell and not status:
        print("  " + os.path.join(given.folder or "", targets[-1]))
    return status


def _rehearse(given: argparse.Namespace, _more: list[str]) -> int:
    from dpstudy.command.rehearsal import rehearse

    return rehearse(given.study, given.folder, given.cores, given.keep)


def _plan(given: argparse.Namespace, _more: list[str]) -> int:
    from dpstudy.command.planning import plan

    return plan(given.study, given.json, given.figure)


def _curves(given: argparse.Namespace, _more: list[str]) -> int:
    from dpstudy.config.loading import read_study
    from dpstudy.forecast.measure import write_curves

    logging.basicConfig(level=logging.INFO, format="%(message)s")  # half an hour: how far it is
    write_curves(read_study(given.study), given.folder)
    return 0


def _wipe(given: argparse.Namespace, _more: list[str]) -> int:
    from dpstudy.command.wiping import wipe

    return wipe(given.folder, given.yes)


def _record(given: argparse.Namespace, _more: list[str]) -> int:
    from dpstudy.command.workflow import clone
    from dpstudy.config.loading import read_study
    from dpstudy.evidence import measured, verdicts
    from dpstudy.evidence.record import record

    clone()
    kind, _, what = given.kind.partition(":")
    study, results, what = read_study(given.study), Path(given.folder, "results"), what.strip()
    rows = record(study, results, kind, what, given.machine)
    judged, whole = verdicts.of_results(study, results, kind, what, max(row.date for row in rows))
    measured.write(measured.merged(measured.read(), rows))
    verdicts.write(verdicts.merged(verdicts.read(), judged, study["study"], whole))
    print(f"{measured.MEASURED}: {len(rows)} lines recorded; {verdicts.VERDICTS.name}: {len(judged)}")
    return 0


def _evidence(_given: argparse.Namespace, _more: list[str]) -> int:
    from dpstudy.command.workflow import clone
    from dpstudy.evidence import measured, page, verdicts

    clone()
    counts = page.write(measured.read(), verdicts.read())
    print(f"{page.PAGE}: " + "; ".join(", ".join(f"{n} {name}" for name, n in of.most_common()) for of in counts))
    return 0


def _schemas(_given: argparse.Namespace, _more: list[str]) -> int:
    from dpstudy.command import schemas
    from dpstudy.command.workflow import clone

    here = Path("workflow", "dpstudy")
    if here.is_dir() and not here.samefile(clone() / here):
        raise StudyError(
            f"this is the library of {clone()}, which this environment belongs to, and you stand in another clone: "
            "PYTHONPATH=workflow python -m dpstudy schemas"
        )
    print(", ".join(schemas.write(clone())) or "nothing has changed")
    return 0


def _leaderboard(_given: argparse.Namespace, _more: list[str]) -> int:
    from dpstudy.command.workflow import clone
    from dpstudy.evidence import leaderboard, measured
    from dpstudy.evidence.record import shipped_studies

    clone()
    print(
        f"{leaderboard.PAGE}: {leaderboard.write(measured.read(), list(shipped_studies()))} lines with a model of ours"
    )
    return 0


def _compare(given: argparse.Namespace, _more: list[str]) -> int:
    from dpstudy.comparison.command import main as compare

    options = [*(["--csv", given.csv] if given.csv else []), *(["--json"] if given.json else [])]
    return compare([given.a, given.b, *options], "dpstudy compare")


def _bundle(name: str) -> Path:
    folder = Path(name)
    if not (folder / "bundle.json").is_file():
        raise StudyError(f"{name}: no bundle: it has no bundle.json; results/release has those that were made")
    return folder
