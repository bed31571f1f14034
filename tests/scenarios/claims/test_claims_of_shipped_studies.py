"""The roles of the studies in studies/ name the cells that their claims compare: no part of a judgement lacks them."""

import pytest

from dpstudy.config.cells import unfold
from dpstudy.config.loading import read_study
from dpstudy.tables.claims import de2022_printed, tramer2021_printed
from dpstudy.tables.claims.gather import Evidence
from dpstudy.tables.claims.grid import Value
from dpstudy.tables.claims.judge import judges
from dpstudy.tables.claims.names import roles_of
from dpstudy.tables.claims.scores import Point, Run, Scores
from dpstudy.tables.published import HYPERPARAMETERS, RESULTS, published_rows
from tests.workflow.conftest import ROOT

LACKS = ": no cells to compare"  # of one part among others
STUDIES = sorted(path.stem for path in (ROOT / "studies").glob("de2022-*.yaml"))
STUDIES += ["tramer2021-mnist", "tramer2021-fashion", "tramer2021-cifar10"]  # the others are each of one claim or two
PRINTED = {"de2022": de2022_printed.PRINTED, "tramer2021": tramer2021_printed.PRINTED}
COMPUTED = {"iteration-noise", "more-steps-for-more-records", "noise-and-rate"}  # seconds, and no cells
ELSEWHERE = {  # parts that no cells of these studies are meant to decide
    "tramer2021-mnist": {"sizes-and-accuracy"},  # the smaller CNN is one of CIFAR-10
    "tramer2021-fashion": {"sizes-and-accuracy"},
    "tramer2021-cifar10": {"more-data"},  # half a million records more: tramer2021-data-extra
}


def as_run(dataset, role, cell, config, records) -> Run:
    """A cell as if it had been trained."""
    options = cell.options(config)
    value, epsilon = Value(50.0, 0.1), float(cell.epsilon)
    points = tuple(Point(10.0 * i, e, value) for i, e in enumerate((2.0, 8.0, epsilon)))
    settings = {"learning_rate_applied": options.get("learning_rate"), "steps": 100, "noise_multiplier": 1.0} | options
    metrics = {"classes": 10, "hyperparameters": settings, "tuned_on": options.get("tuned_on", "")}
    metrics |= {"parameters": 1000}
    return Run(
        dataset,
        role,
        cell.entry,
        epsilon,
        records.get(dataset, (100,))[0],
        value,
        metrics,
        {"epsilon": epsilon, "delta": 1e-5},
        points,
    )


@pytest.mark.parametrize("name", STUDIES)
def test_no_claim_lacks_a_part(name):
    config = read_study(ROOT / "studies" / f"{name}.yaml")
    paper = name.partition("-")[0]
    rows, settings = published_rows(RESULTS, paper), published_rows(HYPERPARAMETERS, paper)
    cells, says = unfold(config), PRINTED[paper]
    for table in config["tables"].values():
        if table.get("style") != "claims" or table.get("paper") != paper:
            continue
        runs = []
        for dataset, role, features, entry in roles_of(table):
            called = table.get("counterparts", {}).get(dataset, {}).get("dataset", dataset)
            found = [c for c in cells if (c.dataset, c.features, c.entry) == (dataset, features, entry)]
            assert found, (role, entry)
            runs += [as_run(called, role, cell, config, says.records) for cell in found]
        printed = says.scores(rows)
        values = {(run.dataset, run.role, run.epsilon): run.accuracy for run in runs}
        reduced = any(one["splits"].get("records", 50_000) < 50_000 for one in config["datasets"].values())
        sets = set() if reduced else {run.dataset for run in runs}
        values |= {key: value for key, value in printed.values.items() if key[1] in says.cited and key[0] in sets}
        evidence = Evidence(printed, Scores(values, runs), settings, rows)
        lacking = {
            claim: found.here
            for claim, judge in judges(paper).items()
            if claim not in COMPUTED and LACKS in (found := judge(evidence)).here
        }
        assert lacking.keys() == ELSEWHERE.get(name, set()), lacking
