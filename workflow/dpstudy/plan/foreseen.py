"""Refusals of later jobs, made before the first one by the same code.

What is imported is imported only where a study asks for it: a plan starts without torch.
"""

from collections.abc import Sequence
from pathlib import Path

from dpstudy.cell.refusals import BROUGHT, NOT_FOR_RELEASE, refusals
from dpstudy.config.cells import Cell
from dpstudy.config.locations import data_root
from dpstudy.config.tuned import PAID, pays
from dpstudy.core.errors import Mistakes, StudyError
from dpstudy.data.shard_size import told_shape
from dpstudy.plan import releases
from dpstudy.plan.internals import Job
from dpstudy.plan.wildcards import cell_of


def foresee(study: dict, due: Sequence[Job]) -> None:
    """Refuse due trainings and releases that are certain to fail.

    Raises:
        StudyError: each of them, in a sentence.
    """
    trained = [cell_of(job.wildcards) for job in due if job.script.endswith("train_cell.py")]
    mistakes = Mistakes()
    for check in (check_starts, check_reach):
        with mistakes.kept():
            check(study, trained)
    for job in due:
        if job.rule == "write_bundle" and (cell := cell_of(job.wildcards)) in trained:
            with mistakes.kept():
                check_release(study, cell)
    mistakes.tell()


def check_starts(study: dict, trained: Sequence[Cell]) -> None:
    """Refuse user-supplied weights that do not fit the network that starts from them.

    Raises:
        StudyError: names the file, and the network that takes it, if one is near.
    """
    asked = {}
    for cell in trained:
        options = cell.options(study)
        if isinstance(start := options.get("start"), dict) and isinstance(start["weights"], str):
            shape, window = told_shape(study["datasets"][cell.dataset]), options.get("augmentation", {}).get("crop")
            path = Path(data_root(study), start["weights"])
            asked[path, options["network"], (*(window or shape[:2]), shape[2])] = start
    for (path, network, (height, width, channels)), start in asked.items():
        from dpstudy.features.weights import check_file
        from dpstudy.methods.network_start import check_start

        check_file(path, start.get("sha256"))
        check_start(path, network, (channels or 3, height or 224, width or 224), None not in (height, width, channels))


def check_reach(study: dict, trained: Sequence[Cell]) -> None:
    """Refuse a target epsilon that private normalisation with its fixed noise alone exceeds.

    Raises:
        StudyError: names the entry and its epsilon, and what the normalisation costs.
    """
    for cell in trained:
        options, dataset = cell.options(study), study["datasets"][cell.dataset]
        if cell.epsilon == "inf" or options["sanitise"] != "full" or not isinstance(options.get("normalisation"), dict):
            continue
        from dpstudy.methods.private_normalisation import Normalisation, events
        from dpstudy.methods.problem import Problem
        from dpstudy.privacy.accounting import certify
        from dpstudy.privacy.budget import Budget
        from dpstudy.privacy.printed import upper_bound

        records = dataset.get("per_subject", 1) if dataset["unit"] == "subject" else 1
        budget, averaged = Budget(cell.epsilon, float(dataset["delta"])), dataset.get("contributions") == "average"
        # the releases depend on the unit alone
        problem = Problem(2, (1,), 2, budget, unit_records=records, averaged=averaged)
        alone = certify(events(Normalisation(**options["normalisation"]), problem), budget.delta).epsilon
        if alone >= float(cell.epsilon):
            raise StudyError(
                f"methods.{cell.entry}.normalisation: the noise of the normalisation alone costs epsilon "
                f"{upper_bound(alone)} at delta {dataset['delta']}, which leaves nothing of {cell.epsilon} (cell "
                f"{cell.path}); raise its noise_multiplier, or leave this epsilon out for the entry"
            )


def check_release(study: dict, cell: Cell) -> None:
    """Refuse to train a cell for a release that is certain to be refused, by what the config says of it.

    Raises:
        StudyError: as the release would say it.
    """
    options, facts = cell.options(study), releases.facts(study, cell)
    certain = options["sanitise"] == "full" and cell.epsilon != "inf" and not options["shared_noise"]
    guarantee, delta = "proved" if certain else "none", float(study["datasets"][cell.dataset]["delta"])
    ledger = {"noise": study["noise"], "guarantee": guarantee, "delta": delta, "n": 1}
    searched = PAID if pays(options) else "validation" if "tuning" in options else options["tuned_on"]
    accept = study["release"]["accept"]
    against = refusals(ledger, searched, facts["unmatched"], accept, None, facts["chosen"], facts["planted"])
    if facts["features"]["extractor"] == "precomputed":
        against.append(BROUGHT)
    if against:
        raise StudyError(NOT_FOR_RELEASE.format(cell.path, "; ".join(against)))
