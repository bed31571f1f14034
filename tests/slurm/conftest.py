"""A cluster for the tests of a file."""

import pytest

from tests.slurm.cluster import forget_killed, running

forget_killed()


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    with running(tmp_path_factory.mktemp("slurm")) as found:
        yield found
