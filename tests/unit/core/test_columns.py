"""Columns made without `pa.array` are what it makes."""

import subprocess
import sys

import numpy as np
import pyarrow as pa
import pytest

from dpstudy.core.columns import numbers, rows_of_numbers, strings


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        (numbers([1, 2, 3], np.int64), pa.array([1, 2, 3], pa.int64())),
        (numbers([None, 0.5] * 9, np.float64), pa.array([None, 0.5] * 9, pa.float64())),
        (numbers([], np.float64), pa.array([], pa.float64())),
        (numbers(np.arange(12).reshape(3, 4)[:, 1], np.int32), pa.array([1, 5, 9], pa.int32())),
        (numbers(np.ones(3, np.float16), np.float16), pa.array(np.ones(3, np.float16))),
        (strings(["a", "", "βγ", "d" * 300]), pa.array(["a", "", "βγ", "d" * 300])),
        (strings(np.array(["x", None, "yz"], object)), pa.array(["x", None, "yz"])),
        (strings([]), pa.array([], pa.string())),
        (
            rows_of_numbers(np.eye(3, dtype=np.int64), np.int8),
            pa.array([[1, 0, 0], [0, 1, 0], [0, 0, 1]], pa.list_(pa.int8())),
        ),
        (rows_of_numbers(np.zeros((0, 3), np.int8), np.int8), pa.array([], pa.list_(pa.int8()))),
    ],
)
def test_they_are_what_arrow_makes_of_the_values(made, expected):
    made.validate(full=True)
    assert made.type == expected.type and made.equals(expected)


def test_a_number_that_does_not_fit_is_refused():
    with pytest.raises(OverflowError, match="300 does not fit into int8"):
        numbers(np.array([1, 300]), np.int8)


def test_pandas_is_left_alone(tmp_path):
    code = f"""
import sys
import numpy as np, pyarrow as pa
from dpstudy.core.columns import numbers, rows_of_numbers, strings
from dpstudy.core.files import read_table, write_table
table = pa.table({{"a": numbers([1], np.int8), "b": strings(["x"]), "c": rows_of_numbers(np.ones((1, 2)), np.int8)}})
write_table({str(tmp_path / "t.parquet")!r}, table)
read_table({str(tmp_path / "t.parquet")!r})
sys.exit("pandas" in sys.modules)
"""
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
