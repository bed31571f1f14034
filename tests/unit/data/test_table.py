"""Tables as spreadsheets and pandas write them: read right, or one sentence that names the remedy."""

import gzip
import io
import zipfile

import numpy as np
import pandas as pd
import pytest

from dpstudy.core.errors import StudyError
from dpstudy.data.table import read_text_table

PLAIN = "path,label,age\na.png,ill,57\nb.png,well,40\n"
FRAME = pd.DataFrame({"path": ["a.png", "b.png"], "label": ["ill", "well"], "age": [57, 40]})

READ = {
    "plain": PLAIN,
    "byte order mark": "\ufeff" + PLAIN,
    "two byte order marks": "\ufeff\ufeff" + PLAIN,
    "Windows newlines": PLAIN.replace("\n", "\r\n"),
    "old newlines": PLAIN.replace("\n", "\r"),
    "no last newline": PLAIN.rstrip("\n"),
    "empty lines": PLAIN.replace("\n", "\n\n") + "\n \n,,\n , ,\n",
    "spaces": PLAIN.replace(",", " , "),
    "quotes": 'path,"label",age\n"a.png",ill,"57"\nb.png,"well",40\n',
    "quotes after spaces": 'path, "label", age\na.png, "ill", 57\nb.png, "well", 40\n',
    "columns without a name": "path,label,age,,\na.png,ill,57,,\nb.png,well,40,,\n",
    "an index": FRAME.to_csv(),
    "floats": "path,label,age\na.png,ill,57.0\nb.png,well,40.0\n",
}


@pytest.mark.parametrize("case", READ)
def test_tables_of_spreadsheets_and_pandas_are_read(tmp_path, case):
    (tmp_path / "table.csv").write_bytes(READ[case].encode())
    table = read_text_table(tmp_path / "table.csv")
    assert set(table.columns) == {"path", "label", "age"} and table.rows == 2
    assert table.column("path").tolist() == ["a.png", "b.png"] and table.column(" path").tolist() == ["a.png", "b.png"]
    assert table.class_indices("label", ["well", "ill"]).tolist() == [1, 0]
    assert table.class_indices("age", ["40", "57"]).tolist() == [1, 0]


def zipped():
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("xl/workbook.xml", "")
    return file.getvalue()


REFUSED = {
    "Excel": ("table.xlsx", zipped(), "it is a workbook (Excel, OpenDocument) or a zip archive; save the sheet as CSV"),
    "old Excel": ("table.xls", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "Excel workbook; save the sheet as CSV (in Excel"),
    "a web page": ("table.xls", b"<html><table>", "it is an HTML or XML page, whatever it is called; save the sheet"),
    "gzip": ("table.csv.gz", gzip.compress(PLAIN.encode()), "it is compressed; unpack it, and name the file that"),
    "UTF-16": ("table.txt", PLAIN.encode("utf-16"), "it is UTF-16 text; save the sheet as CSV (in Excel: 'CSV UTF-8')"),
    "UTF-16 without a mark": ("table.csv", PLAIN.encode("utf-16-le"), "no text of UTF-8, but UTF-16 or another format"),
    "Latin-1": ("table.csv", PLAIN.replace("ill", "é").encode("latin-1"), "not UTF-8 text (byte 21); save it as UTF-8"),
    "feather": ("table.csv", b"ARROW1\0\0", "it is a feather file; write the table with to_parquet"),
    "parquet": ("table.pq", b"PAR1\0\0", "it is a parquet file; give it a name that ends in .parquet"),
    "JSON": ("table.csv", b'[{"path": "a.png"}]', "it is JSON; write the table with to_csv or to_parquet"),
    "no parquet": ("table.parquet", PLAIN.encode(), "damaged parquet file (Parquet magic bytes not found in footer"),
    "a comment": ("table.csv", f"# by me\n{PLAIN}".encode(), "for 1 columns; is '# by me' a title? The first line"),
    "sep=,": ("table.csv", b"sep=,\r\n" + PLAIN.encode(), "its first line is Excel's 'sep=,'; delete that line"),
    "sep=;": (
        "table.csv",
        b"sep=;\n" + PLAIN.replace(",", ";").encode(),
        "Excel's 'sep=;'; delete that line, and save the table with commas between the values",
    ),
    "tabs": ("table.tsv", PLAIN.replace(",", "\t").encode(), "no comma but '\\t'; save it with commas between the"),
    "semicolons": ("table.csv", b"path;age\na.png;57,5\n", "no comma but ';'; save it with commas between the val"),
    "decimal commas": ("table.csv", PLAIN.replace("57", "57,5").encode(), "line 2 has 4 values for 3 columns; put v"),
    "one name twice": ("table.csv", b"path, path,x\na,b,c\n", "its header names the column 'path' twice"),
    "only empty lines": ("table.csv", b"path,label\n,\n", "no rows"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_other_formats_are_refused_with_the_remedy(tmp_path, case):
    name, content, words = REFUSED[case]
    (tmp_path / name).write_bytes(content)
    with pytest.raises(StudyError) as caught:
        read_text_table(tmp_path / name)
    assert str(caught.value).startswith(f"{tmp_path / name}: ") and words in str(caught.value)


def test_parquet_of_pandas_with_missing_numbers_and_odd_headings(tmp_path):
    frame = pd.DataFrame({" path": [b"a.png", b"b.png"], "label": [1.0, None], "who": pd.Categorical(["P4", "17"])})
    frame.to_parquet(tmp_path / "table.PARQUET")
    table = read_text_table(tmp_path / "table.PARQUET")
    assert table.column("path").tolist() == ["a.png", "b.png"] and table.subjects("who").tolist() == ["P4", "17"]
    with pytest.raises(StudyError, match="row 1: no value in the column 'label'"):
        table.class_indices("label", ["0", "1"])


def findings(tmp_path, *fields, separator="|", others=("No Finding",)):
    (tmp_path / "table.csv").write_text("id,found\n" + "".join(f'{row},"{text}"\n' for row, text in enumerate(fields)))
    table = read_text_table(tmp_path / "table.csv")
    return table.findings("found", ["Edema", "Ödem rechts"], separator, others)


def test_a_column_may_list_findings(tmp_path):
    fields = ("Edema", "No Finding", "O\u0308dem rechts | Edema", "", "Edema|Edema|", "Ödem rechts")
    found = findings(tmp_path, *fields)
    assert found.dtype == np.int8
    assert found.tolist() == [[1, 0], [0, 0], [1, 1], [0, 0], [1, 0], [0, 1]]
    assert findings(tmp_path, "Edema; No Finding", separator=";").tolist() == [[1, 0]]


def test_an_unknown_finding_is_named(tmp_path):
    words = (
        r"row 1 \(line 3\): unknown class 'Edemma' in the column 'found' \(the first of 2 rows\) \(did you mean 'Edema'"
    )
    with pytest.raises(StudyError, match=words):
        findings(tmp_path, "Edema", "Edema|Edemma", "X")
    with pytest.raises(
        StudyError, match="unknown class 'No Finding' .*; if it is no finding, name it in `no_label`; the"
    ):
        findings(tmp_path, "No Finding", others=())
    (tmp_path / "table.csv").write_text("id,found\n0,Edema|Mass\n")
    with pytest.raises(
        StudyError, match=r"unknown class 'Edema\|Mass' .*; if a field may .* give `separator: '\|'`; the"
    ):
        read_text_table(tmp_path / "table.csv").class_indices("found", ["Edema", "Mass"])


def test_a_damaged_table_of_ones_own_is_not_to_be_deleted(tmp_path):
    (tmp_path / "table.parquet").write_bytes(b"PAR1 damaged")
    with pytest.raises(StudyError, match=r"damaged parquet file .*; write it anew \(of pandas: to_parquet\)$"):
        read_text_table(tmp_path / "table.parquet")
    (tmp_path / "table.parquet").unlink()
    FRAME.to_parquet(tmp_path / "table.parquet", partition_cols=["label"])
    with pytest.raises(StudyError, match="it is a folder; a table is one file, so write it without partitions"):
        read_text_table(tmp_path / "table.parquet")
