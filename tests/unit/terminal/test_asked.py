"""What is said of a command before Snakemake sees it, and of a job that is to run again."""

import pytest

from terminal.asked import mistake, unknown_target
from terminal.reasons import shorten


@pytest.fixture
def folder(tmp_path, monkeypatch):
    for name, text in (
        ("Snakefile", ""),
        ("config.yaml", "study: a\n"),
        ("studies/tramer2021-mnist.yaml", "study: b\n"),
    ):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_study_that_is_there_is_no_mistake(folder):
    assert mistake([]) == mistake(["--configfile", "studies/tramer2021-mnist.yaml", "--cores", "all"]) == ""
    assert mistake(["results/tables/all.pdf", "--configfile=config.yaml", "--until", "no.yaml"]) == ""


@pytest.mark.parametrize(
    "name", ["tramer2021-mnist", "tramer2021-mnist.yaml", "studies/tramer2021-mnist", "studies/tramer-mnist.yaml"]
)
def test_a_name_that_is_close_is_suggested(folder, name):
    assert f"{name}: no such file (did you mean 'studies/tramer2021-mnist.yaml'?); " in mistake(["--configfile", name])


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (b"a: 1\n\tb: 2\n", "not YAML at line 2"),
        (b"", "holds no keys"),
        (b"- a\n", "holds no keys"),
        (b"a: \xff", "UTF-8"),
    ],
)
def test_a_file_that_is_no_study_is_refused(folder, text, words):
    (folder / "mine.yaml").write_bytes(text)
    said = mistake(["--configfile=mine.yaml"])
    assert said.startswith("mine.yaml: ") and words in said and "\n" not in said


def test_what_no_rule_makes_is_told_by_the_name_that_is_wrong(folder):
    (folder / "mine.yaml").write_text(
        "datasets: {own: {}}\nfeatures: {pixels: {}}\nmethods: {default: {}}\nepsilons: ['1', '2']\n"
        "tables: {auc: {}}\nfigures: {points: {}}\n"
    )
    for target, words in (
        (
            "release/own/pixels/defaul/eps=2",
            "mine.yaml has no entry 'defaul' (did you mean 'default'?); it has default",
        ),
        ("cells/own/pixels/default/eps=3/metrics.json", "mine.yaml has no epsilon '3'; it has 1, 2"),
        (
            "release/own",
            "mine.yaml has no such cell, or no such file of it; a cell's folder is results/release/DATASET/",
        ),
        (
            "tables/acu.csv",
            "nothing that mine.yaml makes is called so (did you mean 'results/tables/auc.csv'?); another",
        ),
    ):
        said = unknown_target(f"results/{target}", ["--configfile", "mine.yaml", "--cores", "1"])
        assert said.startswith(f"results/{target}: {words}")
    assert "config.yaml has no data set 'own'; " in unknown_target("results/cells/own/x", [])


def test_a_profile_that_snakemake_would_silently_leave_out_is_refused(folder):
    (folder / "profiles/slurm").mkdir(parents=True)
    for name in ("slurm", "profile/slurm", "profiles/slrm"):
        assert f"{name}: no such folder (did you mean 'profiles/slurm'?); " in mistake(["--workflow-profile", name])
    assert mistake(["--workflow-profile=profiles/slurm"]) == mistake(["--workflow-profile", "none"]) == ""


def test_a_cluster_that_would_not_tell_how_jobs_end_is_refused(folder, monkeypatch):
    profile, sacct, asked = folder / "profiles/slurm/config.yaml", folder / "bin/sacct", ["--workflow-profile"]
    for path, text in ((profile, "executor: slurm\n"), (sacct, "#!/bin/sh\necho storage is disabled >&2\nexit 1\n")):
        path.parent.mkdir(parents=True)
        path.write_text(text)
    sacct.chmod(0o755)
    monkeypatch.setenv("PATH", str(sacct.parent), prepend=":")
    asked.append("profiles/slurm")
    assert "(storage is disabled)" in mistake(asked) and "squeue in profiles/slurm/config.yaml" in mistake(asked)
    assert mistake([*asked, "--slurm-status-command", "squeue"]) == ""
    profile.write_text("executor: slurm\nslurm-status-command: squeue\n")
    assert mistake(asked) == ""
    profile.write_text("executor: slurm\n")
    sacct.write_text("#!/bin/sh\n")
    assert mistake(asked) == ""


def test_another_folder_is_said(folder, monkeypatch):
    monkeypatch.chdir(folder / "studies")
    assert "no Snakefile is here" in mistake([])


def test_a_reason_names_what_changed():
    text = "Params have changed since last execution: Union of all output: before: {} now: {}"
    assert shorten(text.format("{'a': 1, 'b': 2},[0, 1]", "[0, 1, 2],{'b': 2, 'c': 'x'}")) == (
        "parameters changed: a: 1 -> nothing, c: nothing -> x, [0, 1] -> [0, 1, 2]"
    )
    assert shorten(text.format("<nothing exclusive>", "{'a': 1}")) == "parameters changed"
    assert shorten("Updated input files: " + 200 * "x").endswith("xxx...") and len(shorten(200 * "x")) == 100
