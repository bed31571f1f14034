"""Commands in the pages and at the head of the studies: programs, targets, files and options are there."""

import re
import shlex
from pathlib import Path

import pytest
from snakemake.cli import get_argument_parser

from benchmarks.__main__ import BENCHMARKS
from dpstudy.command.main import _parser as command_line
from dpstudy.config.cells import unfold
from dpstudy.config.including import read_config
from dpstudy.config.loading import load, read_study
from tests.workflow.conftest import make_folder

ROOT = Path(__file__).parents[3]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(ROOT.glob("docs/*.md"))]
FILES = [*PAGES, ROOT / "Snakefile", *sorted(ROOT.glob("studies/*.yaml"))]
OF_THE_READER = {"studies/mine.yaml", "studies/NAME.yaml"}  # files that a page has its reader write, and placeholders
ELSEWHERE = ("git", "cd", "pip", "python", "sbatch", "squeue", "tail")  # programs beside make and snakemake
MAKE_TARGETS = set(re.findall(r"^([\w./-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
SNAKEMAKE = get_argument_parser()


def commands():
    """(file, the arguments) of every snakemake command that names a study."""
    for path in FILES:
        text = path.read_text(encoding="utf-8").replace("\\\n", " ")
        for found in re.finditer(r"snakemake ([^`\n]*--configfile [^`\n]*)", text):
            yield path.name, re.split(r"\s#|\s{4,}\w+ ", found[1])[0].split()


def lines():
    """(page, words) of every command in a block of shell commands, without the variables before it."""
    for path in PAGES:
        for block in re.findall(r"^```sh\n(.*?)^```", path.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE):
            for line in block.replace("\\\n", " ").splitlines():
                for part in re.split(r"\s&&\s", re.split(r"\s{2,}#", line)[0]):
                    words = shlex.split(part.partition(" > ")[0])
                    while words and re.fullmatch(r"DPSTUDY_\w+=\S+", words[0]):
                        words.pop(0)
                    yield path.name, words


def spoken():
    """(page, words) of every command of ours in running text."""
    for path in PAGES:
        text = re.sub(r"^```.*?^```", "", path.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
        for found in re.findall(r"`((?:make|snakemake|python -m benchmarks)\b [^`{}]*)`", text):
            yield path.name, found.split()


def check_study(name, page):
    assert name in OF_THE_READER or (ROOT / name).is_file(), f"{page}: there is no {name}"


def check_make(words, page):
    study = next((word.removeprefix("STUDY=") for word in words if word.startswith("STUDY=")), "config.yaml")
    for word in words:
        if word.startswith("STUDY="):
            check_study(study, page)
        elif word.startswith("ONLY="):
            if word != "ONLY=NAME":
                config = read_config(ROOT / study)
                assert load(config | {"only": word.removeprefix("ONLY=").split(",")}), page
        elif word.startswith("TORCH="):
            assert word == "TORCH=cpu", page  # the one that setup.sh takes
        elif not word.startswith(("A=", "B=", "CELL=", "IN=", "KIND=")):  # folders and cells, of the reader
            assert word in MAKE_TARGETS or word == ".venv/study.stamp", f"{page}: make {word}"


def check_snakemake(words, page):
    """The arguments are Snakemake's, and each target one that the study can make."""
    given = SNAKEMAKE.parse_args(words)
    studies = [str(path) for path in given.configfile or ["config.yaml"]]
    for name in studies:
        check_study(name, page)
    assert given.workflow_profile is None or (ROOT / given.workflow_profile / "config.yaml").is_file(), page
    if not OF_THE_READER & set(studies) and not any("DATASET" in target for target in given.targets):
        config = read_study(ROOT / studies[0])
        makes = {f"results/tables/{name}.{end}" for name in config["tables"] for end in ("tex", "csv")}
        makes |= {f"results/figures/{name}.{end}" for name in config["figures"] for end in ("pdf", "png", "csv", "svg")}
        makes |= {f"results/release/{cell.path}" for cell in unfold(config)}
        assert set(given.targets) <= makes, f"{page}: {set(given.targets) - makes}"


def check_dpstudy(words, page):
    given = command_line().parse_args(words)
    if getattr(given, "study", None):
        check_study(given.study, page)
        config = read_config(ROOT / given.study)
        assert load(config | ({"only": given.only} if given.only else {})), page


def check_benchmark(words, page):
    text = (ROOT / "benchmarks" / "__main__.py").read_text(encoding="utf-8")
    for word in words:
        if word.startswith("--"):
            assert f'"{word}"' in text, f"{page}: {word}"
    assert words[0] in BENCHMARKS, f"{page}: {words[0]}"


@pytest.mark.parametrize(("file", "arguments"), list(commands()))
def test_a_target_is_not_read_as_a_second_study(file, arguments):
    """--configfile takes all that follows it, up to the next option."""
    parsed = SNAKEMAKE.parse_args(arguments)
    assert [path.suffix for path in parsed.configfile] == [".yaml"], file
    check_study(str(parsed.configfile[0]), file)


def test_every_command_of_a_shell_block_can_be_given():
    known = list(lines())
    assert len(known) > 25 and {"make", "snakemake", "sbatch"} <= {words[0] for _, words in known if words}
    for page, words in known:
        program = Path(words[0]).name if words else ""
        if program == "make":
            check_make(words[1:], page)
        elif program == "snakemake":
            check_snakemake(words[1:], page)
        elif program == "python" and words[1] == "workflow/run.py":
            assert (ROOT / words[1]).is_file()
            check_snakemake(words[2:], page)
        elif program == "dpstudy":
            check_dpstudy(words[1:], page)
        elif program == "sbatch":
            assert (ROOT / words[1]).is_file(), page
            check_snakemake(words[2:], page)
        else:
            assert not words or program in ELSEWHERE, f"{page}: {' '.join(words)}"


def test_every_command_in_running_text_can_be_given():
    found = list(spoken())
    assert {words[0] for _, words in found} == {"make", "snakemake", "python"}
    for page, words in found:
        if words[0] == "make":
            check_make(words[1:], page)
        elif words[0] == "snakemake":
            check_snakemake(words[1:], page)
        else:
            check_benchmark(words[3:], page)


def test_the_target_of_the_readme_is_planned_by_the_real_workflow(tmp_path):
    folder = make_folder(tmp_path / "study")
    folder.write_config(read_config(ROOT / "config.yaml"))
    assert "results/tables/digits.tex" in (ROOT / "README.md").read_text(encoding="utf-8")
    planned = folder.planned("results/tables/digits.tex")
    assert ("build_table", "results/tables/digits.tex") in planned
    rules = {rule for rule, _ in planned}
    assert {"pretrain_backbone", "train_stepped", "certify_cells"} < rules and "build_report" not in rules
