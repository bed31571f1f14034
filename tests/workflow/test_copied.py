"""Results copied without .snakemake: what made them is known; what is not known is made anew."""

import copy
import os
import shutil
import time

from tests.workflow.conftest import TINY, make_folder
from tests.workflow.test_reruns import AFTER_CELLS, WITHOUT_PRIVACY, cells, scored, trainings

FEATURES = [
    ("extract_manifest", "results/features/digits/pixels/test/manifest.json"),
    ("extract_manifest", "results/features/digits/pixels/train/manifest.json"),
    *(
        ("extract_shard", f"results/features/digits/pixels/{split}/part-{shard:05d}.parquet")
        for split in ("test", "train")
        for shard in (0, 1)
    ),
]


def sums(clips):
    return [
        ("sum_statistics", f"results/private/statistics/digits/pixels/train/clip={clip}/shared.safetensors")
        for clip in clips
    ]


def copied(finished, path):
    """A clone of the workflow with the results of a finished study, of which nothing else was copied."""
    folder = make_folder(path)
    shutil.copytree(finished.path / "results", path / "results", copy_function=shutil.copy2)
    return folder


def scaled():
    config = copy.deepcopy(TINY)
    config["features"]["pixels"]["normalise"] = "l2"
    return config


def forget(study, record):
    """Lose Snakemake's record of one file."""
    from base64 import urlsafe_b64encode

    (study.path / "results/records" / urlsafe_b64encode(record.encode()).decode()).unlink()


def test_copied_results_are_current(finished, tmp_path):
    folder = copied(finished, tmp_path / "elsewhere")
    assert folder.planned() == []
    assert os.readlink(folder.path / ".snakemake/metadata") == "../results/records"


def test_results_that_were_copied_without_their_times_are_told_with_the_remedy(finished, tmp_path):
    folder = copied(finished, tmp_path / "elsewhere")
    for path in (folder.path / "results").rglob("*"):  # as cp -r leaves them, data last
        os.utime(path, 2 * (time.time() - (10 if "data" in path.parts else 20),))
    large = ("--max-checksum-file-size", "0")  # as if all files were of those whose content is not looked at
    done = folder.snakemake(*large)
    said = " ".join((done.stdout + done.stderr).split())
    assert done.returncode and "nothing was run: results: files have other times than when they were made" in said, said
    assert folder.snakemake("--touch", *large).returncode == 0
    assert "Nothing to be done" in folder.snakemake(*large).stderr
    os.utime(next((folder.path / "results/data").rglob("part-00000.parquet")))  # one that somebody made anew
    told = folder.snakemake("--dry-run", *large)
    assert "nothing was run" not in told.stderr and "prepare_manifest" in told.stdout + told.stderr


def test_of_copied_results_only_what_another_config_makes_is_made_anew(finished, tmp_path):
    folder = copied(finished, tmp_path / "elsewhere")
    folder.write_config(scaled())
    every = [job for entry in ("ls", "sgd") for job in cells(entry, features=["pixels"])]
    assert folder.planned() == sorted(FEATURES + sums(["1.0", "inf"]) + every + AFTER_CELLS)


def test_without_any_records_everything_is_made_anew(finished, tmp_path):
    folder, fresh = copied(finished, tmp_path / "elsewhere"), make_folder(tmp_path / "fresh")
    shutil.rmtree(folder.path / "results/records")
    planned = folder.planned()
    assert planned == fresh.planned()
    result = folder.snakemake("--dry-run")
    said = result.stdout + result.stderr
    assert "no record says what made results/data/digits/" in said and "other files: made anew" in said


def test_a_file_without_a_record_is_made_anew_with_what_depends_on_it(study):
    forget(study, "results/cells/digits/cnn/ls/eps=1/run.json")
    assert study.planned() == sorted(cells("ls", ["1"], ["cnn"]) + AFTER_CELLS)
    assert study.planned() == sorted(cells("ls", ["1"], ["cnn"]) + AFTER_CELLS), "a dry run makes nothing current"


def test_metrics_without_a_record_are_made_of_the_scores(study):
    forget(study, "results/cells/digits/cnn/ls/eps=1/metrics.json")
    assert study.planned() == sorted(scored(trainings("ls", ["1"], ["cnn"])) + WITHOUT_PRIVACY)


def test_records_of_an_earlier_version_are_taken_over(study):
    shutil.rmtree(study.path / "results/records")  # the copy of this test has them twice
    assert study.planned() == [] and (study.path / ".snakemake/metadata").is_symlink()
    assert any((study.path / "results/records").iterdir())


def test_a_cell_of_other_features_is_never_tabled_whatever_snakemake_was_told(study):
    study.write_config(scaled())
    assert study.snakemake("--touch").returncode == 0
    assert study.planned() == []
    (study.path / "results/summary.csv").unlink()
    result = study.snakemake("results/summary.csv")
    assert (
        result.returncode != 0 and "digits/pixels/ls/eps=1: stale, its config is not the present one" in result.stderr
    )


def test_a_cell_of_other_data_is_never_tabled_whatever_snakemake_was_told(study):
    manifest = study.path / "results/features/digits/pixels/train/manifest.json"
    manifest.write_text(manifest.read_text() + "\n")
    assert study.snakemake("--touch").returncode == 0
    (study.path / "results/summary.csv").unlink()
    result = study.snakemake("results/summary.csv")
    assert result.returncode != 0
    assert "digits/pixels/ls/eps=1: stale, its data (train) is not the present one" in result.stderr
