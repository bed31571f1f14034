"""A small config for tables and figures, and what is said where one is refused."""

import re
from pathlib import Path

import pytest

from dpstudy.config.loading import load
from dpstudy.core.errors import StudyError

STUDIES = Path(__file__).parents[3] / "studies"
GROUPS = [{"features": "pixels", "label": "Pixels", "published": {"pretraining": "ImageNet-1k"}}]
ROWS = [{"entry": "ls", "label": "DP-LS", "epochs": 1, "published": {"method": "DP-LS", "epochs": "1"}}]
PAPER = {"published": {"paper": "mehta2023"}, "counterparts": {"digits": {"table": "3", "dataset": "CIFAR-10"}}}
GONE = object()


def config(tables=None, figures=None):
    return {
        "study": "test",
        "datasets": {"digits": {"reader": "digits", "delta": "1e-4", "splits": {"test": 0.2}}},
        "features": {"pixels": {"extractor": "pixels"}},
        "methods": {"ls": {"method": "least_squares"}},
        "epsilons": ["0.5", "1", "inf"],
        "seeds": [0],
        "tables": tables or {},
        "figures": figures or {},
    }


def refused(study, sentence):
    with pytest.raises(StudyError) as caught:
        load(study)
    pattern = ".*".join(re.escape(part) for part in sentence.split("*"))
    assert re.fullmatch(pattern, str(caught.value)), str(caught.value)
