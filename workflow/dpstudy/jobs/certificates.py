"""The job that verifies the ledgers of a data set's cells with independent accountants and replays.

It writes results/privacy/certificates/{dataset}.json.
"""

import logging
from collections.abc import Mapping, Sequence

from dpstudy.cell.errata import errata
from dpstudy.cell.inputs import units
from dpstudy.core.errors import StudyError
from dpstudy.core.files import read_json, write_json
from dpstudy.jobs.restated import restated_faults
from dpstudy.privacy.certificate import recertify
from dpstudy.schema.reading import check

_log = logging.getLogger("dpstudy")


def certified(cells: Sequence[dict], replays: Mapping[str, dict]) -> dict[str, dict]:
    """Cell -> the results of `recertify` and of the replay of its entry.

    Args:
        cells: {"name", "ledger" (path), "run" (path), "unnamed" (as of `errata`), "stated": what the config says of it
            (as of `restated_faults`, but for "manifests" (paths) of what it learns from in the place of n)} of each.
        replays: "features/entry" -> what its replay gave.

    Raises:
        StudyError: a ledger does not stand. No table, and no bundle, is built then: a wrong privacy claim is worse than
            none.
    """
    by_cell = {}
    for cell in cells:
        run, ledger = read_json(cell["run"]), read_json(cell["ledger"])
        found = by_cell[cell["name"]] = recertify(ledger, [seed["releases"] for seed in run["seeds"]])
        if stated := cell.get("stated"):
            unit, manifests = stated["dataset"]["unit"], [read_json(path) for path in stated["manifests"]]
            known = stated | {"n": units(manifests, unit) if manifests else None}
            found["faults"] += restated_faults(ledger, run, known)
        found["sums"] = _sums(ledger, run.get("method"))
        found["replay"] = _replay(ledger, replays.get(_entry(cell)))
        if sentences := errata(ledger, run.get("hyperparameters", {}).get("network"), cell.get("unnamed", False)):
            found["errata"], said = sentences, "; ".join(sentences)
            _log.warning("cell %s: an earlier version wrote its ledger (docs/errata.md): %s", cell["name"], said)
    wrong = {name: one["faults"] for name, one in by_cell.items() if one["faults"]}
    for name, faults in wrong.items():
        more = f" ({len(wrong) - 1} further cells fall too)" if len(wrong) > 1 else ""
        raise StudyError(
            f"cell {name}: its ledger does not stand, so that nothing is tabled: {'; '.join(faults)}. Delete "
            f"results/cells/{name} and run the study again; if it falls again, the fault is in its method{more}"
        )
    return by_cell


def _sums(ledger: Mapping, method: str | None) -> str:
    """Whether rounding of its private sums is part of what a ledger accounts for: see the schema."""
    if ledger["noise"] != "secure" or "version" not in ledger:
        return "rounded"
    return "within a margin" if method == "network_dpsgd" else "exact"


def proved_entries(cells: Sequence[dict]) -> set[str]:
    """The "features/entry" of cells whose ledgers prove a guarantee, which are the ones to replay."""
    return {_entry(cell) for cell in cells if read_json(cell["ledger"])["guarantee"] == "proved"}


def _entry(cell: Mapping) -> str:
    return "/".join(cell["name"].split("/")[1:3])


def _replay(ledger: Mapping, made: Mapping | None) -> dict:
    if ledger["guarantee"] != "proved" or made is None:
        return {"exempt": f"its guarantee is: {ledger['guarantee']}"}
    return dict(made)


def write_certificates(cells: Sequence[dict], path: str, replays: Mapping[str, dict]) -> None:
    """Write the certificates of one data set's cells.

    Args:
        replays: as of `certified`.
        path: of the JSON to write.

    Raises:
        StudyError: as of `certified`.
    """
    content = {"cells": certified(cells, replays)}
    check(content, "certificate", path)
    write_json(path, content)
