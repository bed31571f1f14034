"""`make house`: the plan of the library in numbers, and whether they are what they shall be.

Layers and circles are import-linter's (pyproject.toml). Code is counted without blank lines, comments and docstrings.
"""

import ast
import io
import re
import subprocess
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
WORKFLOW = ROOT / "workflow"
LIBRARY = WORKFLOW / "dpstudy"
RULE_LINES, GLUE_LINES = 1100, 150  # at most, of all .smk files
THEN = 27_411  # lines of the library's code on 26 November 2026, counted alike
PAGE_WORDS = 22_000  # at most, of README.md and docs/*.md together
# Where a path that starts with `results/` may stand: the list of all, and two that lower layers own.
PATHS = {"plan/paths.py", "privacy/spending.py", "plan/internals.py"}
_SKIPPED = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}
_RULE = re.compile(r"( *)(?:use )?rule \w+")


def code_lines(text: str) -> int:
    """Lines of Python that are neither blank nor comment nor docstring.

    >>> code_lines('"About."\\n\\nx = 1  # why\\n# a comment\\ny = (2,\\n     3)\\n')
    3
    """
    documented = {
        line for node in _docstrings(ast.parse(text)) for line in range(node.lineno, (node.end_lineno or 0) + 1)
    }
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    used = {line for token in tokens if token.type not in _SKIPPED for line in range(token.start[0], token.end[0] + 1)}
    return len(used - documented)


def _docstrings(tree: ast.Module) -> Iterator[ast.Expr]:
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list) and body and isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
            first = body[0]
            if (
                isinstance(first, ast.Expr)
                and isinstance(first.value, ast.Constant)
                and isinstance(first.value.value, str)
            ):
                yield first


def packages() -> dict[str, int]:
    """Lines of code of each package of the library."""
    found: dict[str, int] = {}
    for path in sorted(LIBRARY.rglob("*.py")):
        package = path.relative_to(LIBRARY).parts[0].removesuffix(".py")
        found[package] = found.get(package, 0) + code_lines(path.read_text(encoding="utf-8"))
    return found


def rule_lines() -> dict[str, int]:
    """Lines of each .smk file."""
    return {path.name: len(path.read_text().splitlines()) for path in sorted(WORKFLOW.glob("rules/*.smk"))}


def glue(text: str) -> list[str]:
    """Lines of a .smk file that are neither blank nor comment, and stand in no rule.

    >>> glue("import os\\n\\n# why\\nif x:\\n\\n    rule a:\\n        input:\\n            'b',\\n\\n    y = 1\\n")
    ['import os', 'if x:', '    y = 1']
    """
    found, within = [], -1
    for line in text.splitlines():
        indent = len(line) - len(line.lstrip())
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        if within >= 0 and indent > within:
            continue
        rule = _RULE.match(line)
        within = len(rule[1]) if rule else -1
        if not rule:
            found.append(line)
    return found


def path_literals() -> list[str]:
    """Where a path below `results` is written out but in the list of all: file, line and text, docstrings apart."""
    found = []
    for path in sorted([*LIBRARY.rglob("*.py"), *WORKFLOW.glob("scripts/*.py"), *WORKFLOW.glob("*.py")]):
        if path.is_relative_to(LIBRARY) and path.relative_to(LIBRARY).as_posix() in PATHS:
            continue
        tree = ast.parse(path.read_text(encoding="utf-8"))
        documented = {id(node.value) for node in _docstrings(tree)}
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in documented:
                if re.match(r"results/[\w{]", node.value):
                    found.append(f"{path.relative_to(ROOT)}:{node.lineno}: {node.value}")
    for path in (ROOT / "Snakefile", *sorted(WORKFLOW.glob("rules/*.smk"))):
        lines = enumerate(path.read_text().splitlines(), 1)
        found += [f"{path.relative_to(ROOT)}:{number}: {line.strip()}" for number, line in lines if '"results/' in line]
    return found


def words(text: str) -> int:
    """What stands between blanks and has a letter or a number: no table's bars, no dashes.

    >>> words("| DP-SGD | 0.5 |\\n|---|---|\\n- for ε")
    4
    """
    return sum(bool(re.search(r"\w", word)) for word in text.split())


def layers() -> tuple[bool, str]:
    """Whether import-linter's contracts hold, and what it says."""
    command = [str(Path(sys.executable).with_name("lint-imports")), "--no-cache"]
    environment = {"PYTHONPATH": str(WORKFLOW), "PATH": "/usr/bin:/bin"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    return done.returncode == 0, done.stdout.partition("Contracts\n")[2] + done.stderr


def main() -> int:
    """Print the numbers; 1 where one is not as it shall be."""
    kept, said = layers()
    print(said.strip("-\n"))
    counted = packages()
    print(f"\nlines of code: {sum(counted.values()):,} ({THEN:,} on 26 November 2026)")
    print("\n".join(f"  {name:14}{lines:6,}" for name, lines in counted.items()))
    rules = rule_lines()
    beside = [line for path in WORKFLOW.glob("rules/*.smk") for line in glue(path.read_text())]
    literals = path_literals()
    print(
        f"\nrules: {sum(rules.values()):,} lines (at most {RULE_LINES:,}), Python beside them: {len(beside)} lines",
        end="",
    )
    print(f" (at most {GLUE_LINES})\npaths written out outside plan/paths.py: {len(literals)} (none)")
    print("\n".join(f"  {one}" for one in literals))
    read = sum(words(page.read_text(encoding="utf-8")) for page in (ROOT / "README.md", *ROOT.glob("docs/*.md")))
    studies = sum(len(study.read_text().splitlines()) for study in ROOT.glob("studies/**/*.yaml"))
    print(f"pages: {read:,} words (at most {PAGE_WORDS:,}); studies: {studies:,} lines")
    beyond = (sum(rules.values()) > RULE_LINES, len(beside) > GLUE_LINES, bool(literals), read > PAGE_WORDS)
    return int(not kept or any(beyond))


if __name__ == "__main__":
    sys.exit(main())
