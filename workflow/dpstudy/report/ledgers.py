"""A study's ledgers in words."""

import itertools
import math
from collections.abc import Mapping

from dpstudy.core.files import read_json
from dpstudy.evaluation.summary import cell_name
from dpstudy.tables.words import audit_in_words, certificate_in_words, ledger_in_words


def describe_ledgers(
    axes: Mapping[str, list[str]], paths: Mapping, audits: Mapping, certified: Mapping, metrics: Mapping
) -> list[dict]:
    """The ledgers in words with hyper-parameters, grouped by (data set, features, entry), in config order.

    Args:
        axes: the study's names.
        paths: cell -> path of its ledger.json.
        audits: cell -> path of its audit.json, of those that are attacked.
        certified: cell -> what accountants that had no part in it say of its ledger.
        metrics: cell -> path of its metrics.json; of cells that are not there no hyper-parameters are told.
    """
    groups = []
    for dataset, features, entry in itertools.product(axes["datasets"], axes["features"], axes["entries"]):
        named = [(e, cell_name(dataset, features, entry, e)) for e in axes["epsilons"]]
        cells = [
            _ledger(e, read_json(paths[name]), audits.get(name), certified.get(name))
            | {"settings": settings_in_words(metrics.get(name))}
            for e, name in named
            if name in paths
        ]
        if cells:
            groups.append({"dataset": dataset, "features": features, "entry": entry, "cells": cells})
    return groups


def _ledger(epsilon: str, ledger: dict, audit: str | None, certificate: Mapping | None) -> dict:
    return {
        "epsilon": "∞" if epsilon == "inf" else epsilon,
        **ledger_in_words(ledger),
        "audit": audit_in_words(read_json(audit), ledger["guarantee"]) if audit else [],
        "secure": ledger["noise"] == "secure",
        "anew": certificate_in_words(certificate) if certificate else "",
    }


def settings_in_words(metrics: str | None) -> str:
    """The hyper-parameters of a cell as written in a config; "" where its metrics are not read."""
    import yaml

    settings = read_json(metrics).get("hyperparameters", {}) if metrics else {}
    return yaml.safe_dump(settings, default_flow_style=True, width=math.inf).strip()[1:-1]
