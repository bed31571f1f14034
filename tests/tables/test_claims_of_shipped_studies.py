"""The roles of the studies in studies/ name the cells that their claims compare: no part of a judgement lacks them."""

import pytest
import yaml

from dpstudy.study.cells import unfold
from dpstudy.study.config import load
from dpstudy.tables.claims import de2022
from dpstudy.tables.claims.de2022_printed import CITED, RECORDS, printed_scores
from dpstudy.tables.claims.grid import Value
from dpstudy.tables.claims.names import roles_of
from dpstudy.tables.claims.role_evidence import Evidence
from dpstudy.tables.claims.scores import Point, Run, Scores
from dpstudy.tables.published import HYPERPARAMETERS, RESULTS, published_rows
from tests.workflow.conftest import ROOT

LACKS = ": no cells to compare"  # of one part among others
STUDIES = sorted(path.stem for path in (ROOT / "studies").glob("de2022-*.yaml"))


def as_run(dataset, role, cell, config) -> Run:
    """A cell as if it had been trained."""
    options = cell.options(config)
    value, epsilon = Value(50.0, 0.1), float(cell.epsilon)
    points = tuple(Point(10.0 * i, e, value) for i, e in enumerate((2.0, 8.0, epsilon)))
    settings = {"learning_rate_applied": options.get("learning_rate"), "steps": 100, "noise_multiplier": 1.0} | options
    metrics = {"classes": 10, "hyperparameters": settings, "tuned_on": options.get("tuned_on", "")}
    return Run(
        dataset,
        role,
        cell.entry,
        epsilon,
        RECORDS.get(dataset, (100,))[0],
        value,
        metrics,
        {"epsilon": epsilon},
        points,
    )


@pytest.mark.parametrize("name", STUDIES)
def test_no_claim_lacks_a_part(name):
    config = load(yaml.safe_load((ROOT / "studies" / f"{name}.yaml").read_text(encoding="utf-8")))
    rows, settings = published_rows(RESULTS, "de2022"), published_rows(HYPERPARAMETERS, "de2022")
    cells = unfold(config)
    for table in config["tables"].values():
        if table.get("style") != "claims" or table.get("paper") != "de2022":
            continue
        runs = []
        for dataset, role, features, entry in roles_of(table):
            called = table.get("counterparts", {}).get(dataset, {}).get("dataset", dataset)
            found = [c for c in cells if (c.dataset, c.features, c.entry) == (dataset, features, entry)]
            assert found, (role, entry)
            runs += [as_run(called, role, cell, config) for cell in found]
        printed = printed_scores(rows)
        values = {(run.dataset, run.role, run.epsilon): run.accuracy for run in runs}
        values |= {key: value for key, value in printed.values.items() if key[1] in CITED}
        evidence = Evidence(printed, Scores(values, runs), settings, rows)
        lacking = [
            f"{claim}: {found.here}"
            for claim, judge in de2022.CLAIMS.items()
            if LACKS in (found := judge(evidence)).here
        ]
        assert not lacking
