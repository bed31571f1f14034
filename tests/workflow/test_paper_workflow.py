"""What is made of a finished study on demand: `results/tables/all.pdf`, of the tables and figures that are there, and
Snakemake's own report."""

import shutil
import sys
from pathlib import Path

import pytest

from tests.workflow.conftest import TINY, StudyFolder

PDF = "results/tables/all.pdf"


class WithoutLatex(StudyFolder):
    @property
    def environment(self):
        return super().environment | {"PATH": f"{Path(sys.executable).parent}:{self.path / 'bin'}"}

    def link(self, *names):
        """What a PATH without LaTeX still has."""
        (self.path / "bin").mkdir()
        for name in names:
            (self.path / "bin" / name).symlink_to(shutil.which(name))


def test_a_machine_without_latex_says_so_before_anything_runs(study):
    shutil.rmtree(study.path / "results/figures")
    bare = WithoutLatex(study.path)
    bare.link("bash", "sh", "which")
    result = bare.snakemake(PDF)
    assert result.returncode == 1
    assert "dpstudy: nothing was run: pdflatex is not installed" in result.stdout + result.stderr
    assert not (study.path / "results/figures").exists() and not (study.path / "results/tables/all.tex").exists()


@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="pdflatex is not installed")
def test_it_is_made_of_what_is_there_and_only_again_where_that_changes(study):
    assert not (study.path / "results/tables/all.tex").exists(), "no part of `all`"
    result = study.snakemake(PDF)
    assert result.returncode == 0, result.stdout + result.stderr
    assert study.read("tables/all.pdf").startswith(b"%PDF")
    ran = [line for line in (result.stdout + result.stderr).splitlines() if line.startswith("localrule")]
    assert ran == ["localrule write_paper:", "localrule compile_paper:"]
    study.write_config(TINY | {"tables": {"tiny": TINY["tables"]["tiny"] | {"caption": "Another."}}})
    assert study.planned(PDF) == [("build_table", "results/tables/tiny.tex"), ("compile_paper", PDF)]


def test_snakemakes_report_holds_tables_figures_and_certificates_and_nothing_warns(study):
    """Its event loop runs while resources are asked for."""
    result = study.snakemake("--report", "own.html")
    said = result.stdout + result.stderr
    assert result.returncode == 0 and "Warning" not in said, said
    for added in ("tiny.csv", "tiny.tex", "total.json", "digits.json", "index.html"):
        assert f"Adding {added} (" in said, said
    assert (study.path / "own.html").stat().st_size > 1e6


def test_results_of_another_study_are_not_packed(study):
    """Which have a report of the same name, perhaps about private records."""
    study.write_config(TINY | {"study": "other", "epsilons": ["1"]})
    result = study.snakemake("--report", "own.html")
    assert result.returncode == 1 and not (study.path / "own.html").exists()
    assert (
        "dpstudy: nothing was packed: not all results are this study's as it stands (a run would make" in result.stderr
    )
