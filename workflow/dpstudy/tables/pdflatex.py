"""Compiling LaTeX to PDF reproducibly, with errors in one sentence."""

import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

from dpstudy.core.errors import StudyError
from dpstudy.core.files import atomic

MISSING = (
    "pdflatex is not installed, and the PDF needs it; install LaTeX (Debian: texlive-latex-recommended; elsewhere TeX "
    "Live) and run the same command again"
)
_COMMAND = ("pdflatex", "-interaction=nonstopmode", "-halt-on-error", "-file-line-error", "-no-shell-escape")
_PASSES = 5  # of LaTeX at most: a longtable needs three or four until its columns keep their width
_ERROR = re.compile(r"^(?:\./)?(?P<file>[^\s:][^:\n]*):(?P<line>\d+): (?P<what>.+(?:\n {4,}\S.*)*)$", re.MULTILINE)
_PACKAGE = re.compile(r"File `(?P<name>[^']+)\.(?:sty|cls|def)' not found")
_UNDEFINED = re.compile(r"(\\\S+)\s*$")


def find_latex() -> str:
    """The path of pdflatex.

    Raises:
        StudyError: it is not installed.
    """
    path = shutil.which(_COMMAND[0])
    if path is None:
        raise StudyError(MISSING)
    return path


def compile_pdf(tex_path: str | os.PathLike, pdf_path: str | os.PathLike) -> None:
    """Compile a document in its folder; LaTeX's auxiliary files go to a temporary folder.

    Raises:
        StudyError: pdflatex or a package is not installed, or the document does not compile: the first error, with its
            file and line.
    """
    find_latex()
    tex_path = Path(tex_path)
    with tempfile.TemporaryDirectory() as folder:
        auxiliary, before = Path(folder, f"{tex_path.stem}.aux"), None
        for _ in range(_PASSES):
            _run(tex_path, folder)
            after = auxiliary.read_bytes()
            if after == before:
                break
            before = after
        with atomic(pdf_path) as temporary:
            shutil.copyfile(Path(folder, f"{tex_path.stem}.pdf"), temporary)


def _run(tex_path: Path, folder: str) -> None:
    # The date of the file would be that of the run; lines of the log would break where a path goes on.
    environment = os.environ | {"SOURCE_DATE_EPOCH": "0", "FORCE_SOURCE_DATE": "1", "max_print_line": "10000"}
    done = subprocess.run(
        [*_COMMAND, f"-output-directory={folder}", tex_path.name],
        cwd=tex_path.parent,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
    )
    if done.returncode:
        raise StudyError(_sentence(tex_path, done.stdout))


def _sentence(tex_path: Path, log: str) -> str:
    """What stopped LaTeX, from its log."""
    error = _ERROR.search(log)
    first_error = next((line for line in log.splitlines() if line.startswith("! ")), "! no reason given")
    # A file that is not there stops LaTeX with a reason that has no place, and then a place that has no reason.
    if error is None or error["what"].strip().startswith("Emergency stop"):
        what = first_error.removeprefix("! ")
    else:
        what = error["what"]
    what = " ".join(what.removeprefix("LaTeX Error: ").split()).rstrip(". ")
    if package := _PACKAGE.search(what):
        return (
            f"{tex_path}: LaTeX has no package {package['name']!r}; install it (Debian: texlive-latex-recommended; TeX "
            f"Live: tlmgr install {package['name']}) and run the same command again"
        )
    if error is None:
        return f"{tex_path}: LaTeX stopped: {what}; mend it and run the same command again"
    if what == "Undefined control sequence":
        shown = re.search(rf"^l\.{error['line']} (.*)$", log[error.end() :], re.MULTILINE)
        named = _UNDEFINED.search(shown[1]) if shown else None
        what = f"{what} {named[1]}" if named else what
    file = Path(os.path.normpath(tex_path.parent / error["file"]))
    return f"{file}, line {error['line']}: LaTeX stopped: {what}; mend that text, in the config or there, and try again"
