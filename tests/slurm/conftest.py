"""A cluster for the tests of a file."""

import subprocess

import pytest

from tests.slurm.cluster import forget_killed, running
from tests.slurm.sent import ASKED

forget_killed()


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    with running(tmp_path_factory.mktemp("slurm"), started_or_skipped if ASKED == "short" else None) as found:
        yield found


def started_or_skipped(start):
    """CI's machine may be one that no daemon can be started on."""
    try:
        start()
    except (OSError, LookupError, TimeoutError, subprocess.SubprocessError) as error:
        pytest.skip(f"no cluster can be started here: {error}")
