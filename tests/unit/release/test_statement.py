"""What PRIVACY.md says of attacks."""

import pytest

from dpstudy.privacy.audit import CALIBRATED, OF_MODEL
from dpstudy.release.statement import _attacked

BOUND = {"bound": "gaussian-dp", "statistic": "the releases", "runs": 4000, "epsilon_lower": 0.71}


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        (
            {},
            "the training's own releases show that ε is at least 0.71 (4000 runs with a canary and as many without it)",
        ),
        ({"statistic": OF_MODEL}, "the published model alone show that ε is at least 0.71 (4000 runs"),
        ({"bound": "one-run", "runs": 100}, "ε is at least 0.71 (one run with 100 canaries): consistent"),
        (
            {"statistic": f"{OF_MODEL}; {CALIBRATED}"},
            "the published model alone show that ε is at least 0.71 (4000 runs with a canary and as many without it; "
            "what calibrates its scores was not attacked)",
        ),
    ],
)
def test_attacks_are_told_as_they_were_played(changes, told):
    assert told in _attacked({"audits": [BOUND | changes], "verdict": "consistent"})
    assert _attacked(None) == "This cell was not attacked."
