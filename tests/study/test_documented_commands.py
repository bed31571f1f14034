"""Commands in the pages and at the head of the studies, as Snakemake reads them."""

import re
from pathlib import Path

import pytest
from snakemake.cli import get_argument_parser

ROOT = Path(__file__).parents[2]
FILES = [ROOT / "README.md", ROOT / "Snakefile", *sorted(ROOT.glob("docs/*.md")), *sorted(ROOT.glob("studies/*.yaml"))]


def commands():
    """(file, the arguments) of every snakemake command that names a study."""
    for path in FILES:
        text = path.read_text(encoding="utf-8").replace("\\\n", " ")
        for found in re.finditer(r"snakemake ([^`\n]*--configfile [^`\n]*)", text):
            yield path.name, re.split(r"\s#|\s{4,}\w+ ", found[1])[0].split()


@pytest.mark.parametrize(("file", "arguments"), list(commands()))
def test_a_target_is_not_read_as_a_second_study(file, arguments):
    """--configfile takes all that follows it, up to the next option."""
    parsed = get_argument_parser().parse_args(arguments)
    assert [path.suffix for path in parsed.configfile] == [".yaml"], file
