"""What a run could not end in is told before its first job."""

import pytest
from safetensors.torch import save_file

from dpstudy.config.cells import Cell
from dpstudy.core.errors import StudyError
from dpstudy.models import networks
from dpstudy.plan.foreseen import check_reach, check_release, check_starts, foresee
from dpstudy.plan.internals import Job
from tests.unit.plan.conftest import study_with

NET, SGD = Cell("own", "images", "net", "1"), Cell("own", "pixels", "sgd", "1")


def job(cell, rule="train_seed", script="../scripts/train_cell.py"):
    names = {"dataset": cell.dataset, "features": cell.features, "entry": cell.entry, "epsilon": cell.epsilon}
    return Job(rule, names, [], {}, [], script, [0])


def test_weights_that_do_not_fit_are_told(tmp_path):
    start = {"weights": "wide.safetensors", "trained_on": "unmatched"}
    study = study_with(data_root=str(tmp_path), methods__net__network="wrn-10-1", methods__net__start=start)
    file = tmp_path / "wide.safetensors"
    save_file(networks.build("wrn-10-1", (3, 32, 32), 10).state_dict(), file)
    check_starts(study, [NET])
    save_file(networks.build("wrn-10-1-gn", (3, 32, 32), 10).state_dict(), file)
    with pytest.raises(StudyError, match=r"not those of network 'wrn-10-1' but of 'wrn-10-1-gn'; write `network: wrn"):
        check_starts(study, [NET])
    save_file(networks.build("wrn-10-2", (3, 32, 32), 10).state_dict(), file)
    with pytest.raises(StudyError, match=r"wide\.safetensors: the parameter .* has it with shape"):
        foresee(study, [job(NET)])
    check_starts(study, [])


def test_a_normalisation_that_costs_all_there_is_is_told():
    # Two Gaussian releases of noise multiplier 5: mu = sqrt(2) / 5, which is epsilon 1.06 at 1e-5 and 0.89 at 1e-4.
    normalised = {"mean_clip": 1.0, "square_clip": 1.0, "noise_multiplier": 5.0}
    study = study_with(methods__sgd__normalisation=normalised, datasets__own__delta="1e-5")
    with pytest.raises(
        StudyError, match=r"^methods\.sgd\.normalisation: the noise of the normalisation alone costs"
    ) as caught:
        check_reach(study, [SGD])
    assert "epsilon 1.061 at delta 1e-5, which leaves nothing of 1 (cell own/pixels/sgd/eps=1)" in str(caught.value)
    check_reach(study, [Cell("own", "pixels", "sgd", epsilon) for epsilon in ("inf", "8")])
    check_reach(study, [Cell("own", "pixels", "ls", "1")])
    study["datasets"]["own"]["delta"] = "1e-4"
    check_reach(study, [SGD])


def test_a_release_that_could_not_be_is_told_before_the_cell_is_trained():
    study = study_with()
    with pytest.raises(StudyError, match=r"cell own/pixels/sgd/eps=1: not for release: its noise is seeded"):
        foresee(study, [job(SGD), job(SGD, "write_bundle", "../scripts/write_bundle.py")])
    foresee(study, [job(SGD, "write_bundle", "../scripts/write_bundle.py")])  # of a cell that is there its ledger tells
    secure = study_with(noise="secure", datasets__own__test_split="public")
    check_release(secure, SGD)
    with pytest.raises(StudyError, match="its guarantee is 'none', not proved"):
        check_release(secure, Cell("own", "pixels", "sgd", "inf"))
    tuned = {"space": {"learning_rate": {"low": 0.1, "high": 1.0}}}
    searched = study_with(noise="secure", datasets__own__test_split="public", methods__sgd__tuning=tuned)
    with pytest.raises(StudyError, match=r"tuned on: validation.*accept: \[tuning\]"):
        check_release(searched, SGD)
