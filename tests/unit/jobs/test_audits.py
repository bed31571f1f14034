"""An attack on a cell's method: written where it is consistent with what is certified, refused where it is not."""

import pytest

from dpstudy import methods
from dpstudy.auditing.many_runs import attack
from dpstudy.cell.inputs import pose_problem
from dpstudy.core.errors import StudyError
from dpstudy.core.files import read_json
from dpstudy.jobs import audits
from dpstudy.jobs.audits import audit_cell
from dpstudy.jobs.training import method_of
from dpstudy.privacy.accounting import certify
from dpstudy.privacy.audit import CALIBRATED
from dpstudy.privacy.noise import NoiseSource
from tests.unit.tuning.conftest import inputs_of, request_of, rows, toy_features  # noqa: F401, fixtures

OPTIONS = {"runs": 400, "canaries": 10, "confidence": 0.999}
CELL = {"method": "least_squares"}


def test_an_attack_that_refutes_a_guarantee_stops_the_study(toy_features, tmp_path, monkeypatch):  # noqa: F811
    path = tmp_path / "audit.json"
    audit_cell(request_of(CELL), inputs_of(toy_features), OPTIONS, str(path))
    assert read_json(path)["verdict"].startswith("consistent: ")
    path.unlink()
    gaussian = NoiseSource.gaussian

    def too_little(self, name, shape, std, *args):
        return gaussian(self, name, shape, std, *args) / 10  # asked for as the ledger has it

    monkeypatch.setattr(NoiseSource, "gaussian", too_little)
    told = (
        "cell toy/pixels/entry/eps=1: an attack refutes its guarantee, so that nothing is tabled: refuted: epsilon is "
    )
    with pytest.raises(
        StudyError, match=f"^{told}at least .* At a confidence of 0.999, what method 'least_squares' releases"
    ):
        audit_cell(request_of(CELL), inputs_of(toy_features), OPTIONS, str(path))
    assert not path.exists()


def test_of_a_calibrated_cell_the_method_has_its_own_noise(toy_features, tmp_path, monkeypatch):  # noqa: F811
    """What calibrates scores takes a part of the budget, and is not attacked, as each bound says."""
    attacked, path = [], tmp_path / "audit.json"

    def noted(game, *options):
        attacked.append(game)
        return attack(game, *options)

    monkeypatch.setattr(audits, "attack", noted)
    request, inputs = request_of(CELL | {"calibration": 0.3, "thresholds": 0.2}, "4"), inputs_of(toy_features)
    audit_cell(request, inputs, OPTIONS, str(path))
    problem = pose_problem(request, inputs.manifests())
    calibrated = method_of(request, inputs).plan(methods.parameters("least_squares", {}), problem).events
    of_game = {event.name: event.noise_multiplier for event in attacked[0].plan.events}
    assert of_game == {event.name: event.noise_multiplier for event in calibrated if event.name in of_game}
    content = read_json(path)
    assert content["epsilon_certified"] == certify(calibrated, problem.budget.delta).epsilon
    assert all(bound["statistic"].endswith(CALIBRATED) for bound in content["audits"])
