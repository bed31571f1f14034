import pytest

from dpstudy.report.page import clock
from dpstudy.report.runs import read_runs

HEAD = "s\th:m:s\tmax_rss\tcpu_time\trule_name\tresources\n"


def write(folder, name, *fields):
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(HEAD + "\t".join(fields) + "\n" if fields else "")


def test_a_rules_jobs_are_added_up(tmp_path):
    write(tmp_path, "train/a/eps=1.tsv", "2.5", "0:00:02", "300.5", "2", "train", "{'mem_mb': 400, 'tmpdir': '/tmp'}")
    write(tmp_path, "train/a/eps=2.tsv", "4", "0:00:04", "200", "5", "train", "{'mem_mb': 500}")
    write(tmp_path, "prepare/p.tsv", "0.1", "0:00:00", "-", "NA", "prepare", "{'mem_mb': '<TBD>'}")
    write(tmp_path, "other/o.tsv", "9", "0:00:09", "1", "1", "other", "{}")
    write(tmp_path, "train/empty.tsv")
    prepare, train = read_runs(tmp_path, ["prepare", "train", "never"])
    assert (train.rule, train.jobs, train.seconds, train.longest, train.cpu_seconds) == ("train", 2, 6.5, 4.0, 7.0)
    assert (train.peak_mb, train.declared_mb) == (300.5, 500)
    assert (prepare.peak_mb, prepare.cpu_seconds, prepare.declared_mb) == (0.0, 0.0, None)


def test_nothing_ran(tmp_path):
    assert read_runs(tmp_path / "none", ["a"]) == []


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.44, "0.4 s"), (9.96, "10 s"), (59.4, "59 s"), (59.6, "1 min 0 s"), (184, "3 min 4 s"), (7512, "2 h 5 min")],
)
def test_times_as_people_say_them(seconds, text):
    assert clock(seconds) == text
