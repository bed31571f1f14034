import numpy as np

from dpstudy.evaluation.groups import gap, members

SEX = np.array(["F"] * 12 + ["M"] * 9 + [""] * 4, dtype=object)
AGE = np.array(["40-59"] * 14 + ["60-79"] * 6 + ["<40"] * 3 + [">80"] * 2, dtype=object)


def counts(found):
    return {name: int(mask.sum()) for name, mask in found.items()}


def test_groups_below_the_least_size_are_merged_or_withheld():
    columns = {"sex": SEX, "age": AGE}
    assert counts(members(columns, 1)) == {
        "sex=F": 12, "sex=M": 9, "sex=unknown": 4, "age=40-59": 14, "age=60-79": 6, "age=<40": 3, "age=>80": 2,
    }  # fmt: skip
    assert counts(members(columns, 5)) == {"sex=F": 12, "sex=M": 9, "age=40-59": 14, "age=60-79": 6, "age=others": 5}
    assert counts(members(columns, 5, "withhold")) == {"sex=F": 12, "sex=M": 9, "age=40-59": 14, "age=60-79": 6}
    assert members(columns, 26) == {}
    others = members(columns, 5)["age=others"]
    assert set(AGE[others]) == {"<40", ">80"}


def test_the_gap_is_between_the_best_and_the_worst():
    assert gap({"a": 0.9, "b": 0.6, "c": 0.7}) == (0.30000000000000004, "a", "b")
    assert gap({"a": 0.9}) is None
