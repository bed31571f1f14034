from dpstudy.core.files import read_json, write_json
from dpstudy.report.groups import describe_groups


def grouped(study, **values):
    """Give every cell groups: name -> how far above the whole."""
    for path in study.metrics.values():
        content = read_json(path)
        for row in content["seeds"]:
            row["groups"] = {name: {"n": 50, "top1": row["top1"] + above} for name, above in values.items()}
        write_json(path, content)
    return study


def test_the_gap_of_each_cell_and_who_is_worst(study):
    (table,) = describe_groups(grouped(study, **{"sex=F": 1.0, "sex=M": -2.0, "sex=other": 0.5}).results)
    assert (table["dataset"], table["column"], table["metric"]) == ("mnist", "sex", "top-1 accuracy (%)")
    assert table["epsilons"] == ["0.5", "1.2", "2", "∞"] and len(table["rows"]) == 4
    first = table["rows"][0]
    assert first["label"] == "ls, pixels" and first["cells"][0] is None, "a missing cell"
    assert first["cells"][1]["value"] == "3.0 ± 0.0" and float(first["cells"][1]["order"]) == 3.0
    assert first["cells"][1]["told"] == "worst: M 89.1, best: F 92.1"


def test_a_column_of_one_group_has_no_gap_and_no_groups_no_table(study):
    assert describe_groups(study.results) == []
    assert describe_groups(grouped(study, **{"view=PA": 0.0}).results) == []


def test_each_column_has_a_table(study):
    found = describe_groups(
        grouped(study, **{"age_band=<40": 1, "age_band=>40": 2, "label=a": 0, "label=b": 1}).results
    )
    assert [table["column"] for table in found] == ["age band", "label"]
