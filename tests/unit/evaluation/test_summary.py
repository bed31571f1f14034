import csv
import json
from pathlib import Path

import pyarrow as pa
import pytest

from dpstudy.core.errors import StudyError
from dpstudy.core.files import sha256, write_json, write_table
from dpstudy.evaluation.summary import COLUMNS, check_made_by, read_summary, summarise, values_by_cell, write_summary


@pytest.fixture
def cells(tmp_path):
    """Two cells with two seeds each."""
    made_by = {"config": "c1", "library": "l1", "versions": {"numpy": "2"}}
    result = []
    for epsilon, low in (("1", 90.1), ("0.5", 80.0)):
        seeds = [
            {
                "seed": seed,
                "split": "test",
                "top1": low + seed / 3,
                "groups": {"sex=F": {"top1": 70.0 + seed}},
                "seconds": 1.5,
            }
            for seed in (0, 7)
        ]
        cell = {"dataset": "digits", "features": "cnn", "entry": "ls", "epsilon": epsilon}
        path = tmp_path / f"metrics-{epsilon}.json"
        write_json(path, cell | {"method": "least_squares", "seeds": seeds, "made_by": made_by})
        result.append(cell | {"metrics": path, "expected": {"config": "c1", "library": "l1"}})
    return result


def test_one_line_per_seed_metric_and_group_in_the_order_of_the_cells(cells):
    table = summarise(cells)
    assert table.column_names == COLUMNS
    assert table.column_names == [
        *("dataset", "features", "entry", "method", "epsilon", "seed", "split", "metric", "group", "value")
    ]
    rows = [(r["epsilon"], r["seed"], r["metric"], r["group"], r["value"]) for r in table.to_pylist()]
    assert rows == [
        ("1", 0, "top1", "", 90.1),
        ("1", 0, "top1", "sex=F", 70.0),
        ("1", 7, "top1", "", 90.1 + 7 / 3),
        ("1", 7, "top1", "sex=F", 77.0),
        ("0.5", 0, "top1", "", 80.0),
        ("0.5", 0, "top1", "sex=F", 70.0),
        ("0.5", 7, "top1", "", 80.0 + 7 / 3),
        ("0.5", 7, "top1", "sex=F", 77.0),
    ]


def test_the_summary_reads_back_to_the_same_bits(cells, tmp_path):
    write_summary(cells, tmp_path / "summary.csv", tmp_path / "summary.parquet")
    expected = summarise(cells).to_pylist()
    with open(tmp_path / "summary.csv", newline="") as file:
        rows = [row | {"seed": int(row["seed"]), "value": float(row["value"])} for row in csv.DictReader(file)]
    assert rows == expected
    assert read_summary(tmp_path / "summary.parquet") == expected
    content = (tmp_path / "summary.csv").read_bytes()
    assert b"\r" not in content and content.startswith(b"dataset,features,entry,method,epsilon,seed,")
    write_summary(cells, tmp_path / "again.csv", tmp_path / "again.parquet")
    assert (tmp_path / "again.csv").read_bytes() == content
    assert (tmp_path / "again.parquet").read_bytes() == (tmp_path / "summary.parquet").read_bytes()


def test_a_cell_of_other_data_is_refused(cells, tmp_path):
    manifest = tmp_path / "manifest.json"
    manifest.write_text("{}")
    metrics = json.loads(Path(cells[1]["metrics"]).read_text())
    metrics["made_by"]["data"] = {"train": sha256(manifest)[:16]}
    Path(cells[1]["metrics"]).write_text(json.dumps(metrics))
    cells[1]["expected"] = cells[1]["expected"] | {"data": {"train": str(manifest)}}
    summarise(cells)
    cells[1]["expected"]["data"] = {"train": str(tmp_path / "other.json")}
    (tmp_path / "other.json").write_text("[]")
    with pytest.raises(StudyError, match=r"digits/cnn/ls/eps=0.5: stale, its data \(train\) is not the present one"):
        summarise(cells)
    cells[1]["expected"]["data"] = {"kept-0": str(manifest)}  # what the cell never read
    with pytest.raises(StudyError, match=r"stale, its data \(kept-0\)"):
        summarise(cells)


@pytest.mark.parametrize("key", ["config", "library"])
def test_a_stale_cell_is_refused(cells, key, tmp_path):
    cells[1]["expected"] = cells[1]["expected"] | {key: "other"}
    with pytest.raises(StudyError, match=f"digits/cnn/ls/eps=0.5: stale, its {key} .*run snakemake again"):
        write_summary(cells, tmp_path / "summary.csv", tmp_path / "summary.parquet")
    assert not (tmp_path / "summary.csv").exists()
    with pytest.raises(StudyError, match="stale"):
        check_made_by({"dataset": "digits"}, {"config": "c1"})


def test_metrics_of_another_cell_and_repeated_cells_are_refused(cells):
    with pytest.raises(StudyError, match="its epsilon is '1', not '0.5'"):
        summarise([cells[1] | {"metrics": cells[0]["metrics"]}])
    with pytest.raises(StudyError, match="listed twice"):
        summarise([cells[0], cells[0]])


def test_a_damaged_summary_is_named(tmp_path):
    write_table(tmp_path / "summary.parquet", pa.table({"a": [1], "b": [2]}))
    with pytest.raises(StudyError, match="its columns are"):
        read_summary(tmp_path / "summary.parquet")
    write_table(tmp_path / "summary.parquet", pa.table({column: ["x"] for column in COLUMNS}))
    with pytest.raises(StudyError, match="damaged"):
        read_summary(tmp_path / "summary.parquet")
    with pytest.raises(StudyError, match="no such file"):
        read_summary(tmp_path / "none.parquet")


def test_values_by_cell(cells):
    rows = summarise(cells).to_pylist()
    assert values_by_cell(rows, "top1")["digits/cnn/ls/eps=1"] == [90.1, 90.1 + 7 / 3]
    with pytest.raises(StudyError, match="metric 'auc': no cell has it .*there are top1"):
        values_by_cell(rows, "auc")
