"""The git commit that a study was made with."""

import subprocess

from dpstudy.provenance.code import WORKFLOW


def commit() -> str:
    """The first twelve digits of the commit, with "with changes" where files differ from it; "" without git."""
    known = _git("rev-parse", "--short=12", "HEAD")
    return f"{known} with changes" if known and _git("status", "--porcelain", "--", ".") else known


def _git(*arguments: str) -> str:
    try:
        asked = subprocess.run(
            ["git", "-C", str(WORKFLOW), *arguments], capture_output=True, text=True, timeout=30, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return asked.stdout.strip() if asked.returncode == 0 else ""
