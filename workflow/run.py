"""`make study`: run Snakemake, after clearing a lock that a dead run left, and end by naming what was made.

A lock that a living run holds is never cleared.
"""

import socket
import subprocess
import sys
from pathlib import Path

import psutil

LOCKS = Path(".snakemake/locks")


def holder() -> str | None:
    """Who holds the lock of this folder, or None where nobody on this machine does."""
    here = Path.cwd()
    mine = {process.pid for process in (psutil.Process(), *psutil.Process().parents())}
    for process in psutil.process_iter(["pid", "cmdline", "cwd"]):
        command = process.info["cmdline"] or []
        runs = any(Path(part).name == "snakemake" for part in command[:4])
        if runs and process.info["pid"] not in mine and process.info["cwd"] == str(here):
            return f"process {process.info['pid']} on this machine"
    owner = LOCKS.parent / "dpstudy-host"
    if owner.exists() and owner.read_text().strip() != socket.gethostname():
        return f"a run on the machine {owner.read_text().strip()!r}, which cannot be seen from here"
    return None


def main(arguments: list[str]) -> int:
    """Run the study; the exit status is Snakemake's."""
    snakemake = [str(Path(sys.executable).with_name("snakemake")), "--quiet", "rules"]
    if LOCKS.is_dir() and any(LOCKS.iterdir()):
        who = holder()
        if who:
            print(f"dpstudy: this folder is in use by {who}; wait for it, or stop it, then try again", file=sys.stderr)
            return 1
        print("dpstudy: clearing the lock of a run that died")
        cleared = subprocess.run([*snakemake, *arguments, "--unlock"], capture_output=True, text=True)
        if cleared.returncode:
            sys.stderr.write(cleared.stderr)
            return cleared.returncode
    LOCKS.parent.mkdir(exist_ok=True)
    (LOCKS.parent / "dpstudy-host").write_text(socket.gethostname() + "\n")
    try:
        return subprocess.run([*snakemake, *arguments]).returncode
    except KeyboardInterrupt:  # Snakemake got it too, and has cleaned up
        return 130


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
