"""All tables and figures in one document: it compiles to the same bytes, and what fails is one sentence."""

import os
import shutil
import subprocess

import pytest

from dpstudy.core.errors import StudyError
from dpstudy.tables import pdflatex
from dpstudy.tables.build import build_table
from dpstudy.tables.paper import write_paper
from dpstudy.tables.results import Results

LATEX = pytest.mark.skipif(shutil.which("pdflatex") is None, reason="pdflatex is not installed")
AXES = {"datasets": ["mnist"], "features": ["pixels"], "entries": ["ls"], "epsilons": ["1"]}
QUESTION = "Is 5% of a_b & {c} ≤ ε #1? β ≈ 2 → é"
FIGURES = {
    "by-epsilon": {"title": "MNIST & more"},
    "plain_one": {},
    "nearest": {"style": "neighbours", "dataset": "mnist", "features": "pixels"},
}


def write(folder, tables=(), figures=None, **more):
    path = folder / "tables" / "all.tex"
    path.parent.mkdir(exist_ok=True)
    axes = AXES | {"private_tests": more.pop("private_tests", [])}
    results = more.pop("results", Results(axes, []))
    write_paper(
        "tiny_study",
        more.pop("question", QUESTION),
        results,
        tables,
        figures or {},
        more.pop("cells", {}),
        path,
        **more,
    )
    return path.read_text()


def compile_it(folder):
    pdflatex.compile_pdf(folder / "tables/all.tex", folder / "tables/all.pdf")
    return (folder / "tables/all.pdf").read_bytes()


def text_of(pdf):
    done = subprocess.run(["pdftotext", "-layout", pdf, "-"], capture_output=True, text=True, check=True)
    return " ".join(done.stdout.split())


def test_tables_and_figures_stand_in_the_order_of_the_config(tmp_path):
    text = write(tmp_path, ["z", "a_1"], FIGURES)
    places = [r"\Large\bfseries tiny\_study", r"5\% of a\_b \& \{c\} $\leq$ $\varepsilon$ \#1", r"\input{z.tex}"]
    places += [r"\input{a_1.tex}", "{../figures/by-epsilon.pdf}", r"\caption{MNIST \& more: top-1", "plain_one.pdf"]
    assert [text.index(place) for place in places] == sorted(text.index(place) for place in places)
    assert r"\caption{Top-1 accuracy (\%) against" in text, "a caption without title begins as a sentence does"
    assert text == write(tmp_path, ["z", "a_1"], FIGURES)


def test_below_a_figure_stand_the_facts_of_what_it_draws(study):
    cells = {"accuracy": ["mnist/pixels/ls/eps=1.2", "mnist/pixels/ls/eps=inf"], "search": ["mnist/pixels/ls/eps=2"]}
    figures = {"accuracy": {}, "search": {"style": "search"}, "other": {}}
    text = write(study.folder, figures=figures, cells=cells, results=study.results)
    told = r"mnist: n = 60,000 records to learn from; $\varepsilon$ at $\delta$ = 1e-5 is about adding or removing one"
    assert text.count(told) == 1, "a search has no scores on the test split, and the last draws nothing"
    assert text.index(told) < text.index("(accountant: pld); 3 seeds.}") < text.index("fig:accuracy")


def test_what_is_not_for_publication_is_left_out_or_said(tmp_path):
    text = write(tmp_path, figures=FIGURES)
    assert "nearest.pdf}" not in text and "The figure nearest is left out" in text
    assert "Keep this document" not in text
    text = write(tmp_path, private_tests=["wards", "scans"])
    assert r"\textbf{The test split of wards and scans holds private records" in text


@LATEX
def test_it_compiles_to_the_same_bytes_without_a_trace_of_the_machine(study, tmp_path, monkeypatch):
    spec = {"caption": "100% & more", "dataset": "mnist"}
    wide = spec | {"rows": [{"features": "pixels", "entry": "ls", "label": "much too wide " * 12}]}
    tall = spec | {"rows": [{"features": "pixels", "entry": "ls", "label": f"row-{n}"} for n in range(90)]}
    for name, one in (("wide", wide), ("tall", tall)):
        (study.folder / "tables").mkdir(exist_ok=True)
        build_table(name, one, study.results, study.folder / f"tables/{name}.tex", study.folder / f"tables/{name}.csv")
    (study.folder / "figures").mkdir()
    for name in FIGURES:
        _figure(study.folder / f"figures/{name}.pdf")
    write(study.folder, ["wide", "tall"], FIGURES)
    first = compile_it(study.folder)
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    os.utime(study.folder / "figures/by-epsilon.pdf", (0, 0))
    assert compile_it(study.folder) == first
    assert os.fsencode(study.folder) not in first and b"PTEX" not in first
    assert sorted(path.suffix for path in (study.folder / "tables").glob("all.*")) == [".pdf", ".tex"]
    if shutil.which("pdftotext"):
        text = text_of(study.folder / "tables/all.pdf")
        assert "row-0 " in text and "row-89 " in text, "a table taller than the page is not cut"
        assert text.index("Table 1") < text.index("Table 2") < text.index("Figure 1") < text.index("Figure 2")


def _figure(path):
    from matplotlib.figure import Figure

    Figure(figsize=(6.3, 3)).savefig(path)


@LATEX
def test_a_study_without_tables_and_figures_compiles(tmp_path):
    write(tmp_path, question="")
    assert compile_it(tmp_path).startswith(b"%PDF")


@LATEX
@pytest.mark.parametrize(
    ("table", "message"),
    [
        ("a\n\\nonsense b", r"tables/bad.tex, line 2: LaTeX stopped: Undefined control sequence \\nonsense; mend"),
        ("a & b", r"tables/bad.tex, line 1: LaTeX stopped: Misplaced alignment tab character &; mend"),
        (r"\begin{tabular}{l}", r"tables/all.tex, line \d+: LaTeX stopped: \\begin{lrbox} on input line 1 ended by"),
        ("ש", "tables/bad.tex, line 1: LaTeX stopped: Unicode character ש .U.05E9. not set up for use with LaTeX"),
        (r"\input{gone.tex}", "tables/bad.tex, line 1: LaTeX stopped: File `gone.tex' not found"),
    ],
)
def test_the_first_error_is_one_sentence(tmp_path, table, message):
    write(tmp_path, ["bad"])
    (tmp_path / "tables/bad.tex").write_text(table + "\n")
    with pytest.raises(StudyError, match=message) as error:
        compile_it(tmp_path)
    assert "\n" not in str(error.value) and not (tmp_path / "tables/all.pdf").exists()


@LATEX
def test_a_missing_package_is_named(tmp_path):
    text = write(tmp_path).replace("{booktabs}", "{no-such-package}")
    (tmp_path / "tables/all.tex").write_text(text)
    with pytest.raises(StudyError, match="no package 'no-such-package'; install it .Debian: texlive-latex-recommended"):
        compile_it(tmp_path)


def test_a_missing_latex_is_named(tmp_path, monkeypatch):
    write(tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(StudyError, match="pdflatex is not installed.*texlive-latex-recommended"):
        compile_it(tmp_path)
