"""Figures of noise: what is drawn is what calibration gives, near what tramer2021 says of its Figures 6 and 9."""

import csv
import math

import pytest

from dpstudy.core.errors import StudyError
from dpstudy.privacy.events import Event
from dpstudy.privacy.published import tramer2021
from dpstudy.tables.build import build_figure
from dpstudy.tables.results import Results

FIGURE_6 = {"delta": "1e-5", "epochs": 60, "records": 50000}


def series(algorithm, epsilons, batch_sizes, accounting="tramer2021", **more):
    own = {"algorithm": algorithm, "accounting": accounting, "epsilons": epsilons, "batch_sizes": batch_sizes}
    return own | more


def build(folder, name, x, noise, *lines):
    paths = [folder / f"{name}.{kind}" for kind in ("pdf", "png", "csv", "svg")]
    spec = {"style": "noise", "x": x, "noise": noise | {"series": list(lines)}, "title": "Noise"}
    build_figure("f", spec, Results({}, []), *paths)
    with open(paths[2], newline="") as file:
        return [path.read_bytes() for path in paths], list(csv.DictReader(file))


def test_published_noise_grows_with_the_root_of_the_sampling_rate(tmp_path):
    """Claim D.1 with the constants that the published claims list for Figure 6."""
    line = series("dp-sgd", ["3"], [512, 4096], label="RDP")
    _, rows = build(tmp_path, "six", "sampling_rate", FIGURE_6, line)
    ratios = [float(row["noise_multiplier"]) / math.sqrt(float(row["sampling_rate"])) for row in rows]
    assert ratios == pytest.approx([15.1, 13.6], abs=0.05)
    constant = math.sqrt(ratios[0] * ratios[1])
    for row in rows:
        assert float(row["fitted"]) == pytest.approx(constant * math.sqrt(float(row["sampling_rate"])))
        assert row["series"] == "RDP" and row["accounting"] == "tramer2021" and row["delta"] == "1e-5"
        level, rate = (float(row[key]) for key in ("noise_multiplier", "sampling_rate"))
        spent = tramer2021([Event("g", "gaussian", level, 1.0, round(60 / rate), "poisson", rate)], 1e-5)
        assert 2.999 < spent <= 3


def test_points_that_no_noise_reaches_stay_empty_and_bytes_repeat(tmp_path):
    noise = {"delta": "1e-5", "epochs": 10, "records": 50000}
    lines = [
        series("dp-sgd", ["0.1", "3"], [512]),
        series("iteration", ["0.1", "3"], [512], "certified", label="PAI"),
    ]
    once, rows = build(tmp_path, "nine", "epsilon", noise, *lines)
    assert [bool(row["noise_multiplier"]) for row in rows] == [False, True, True, True]
    assert {row["fitted"] for row in rows} == {""}
    assert [row["series"] for row in rows] == ["dp-sgd, tramer2021"] * 2 + ["PAI"] * 2
    assert build(tmp_path, "again", "epsilon", noise, *lines)[0] == once
    with pytest.raises(StudyError, match="figure f: no amount of noise"):
        build(tmp_path, "none", "epsilon", noise, series("dp-sgd", ["0.1"], [512]))
