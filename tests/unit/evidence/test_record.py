"""What may be recorded is looked at before anything is."""

import pytest

from dpstudy.config.loading import load, read_study
from dpstudy.core.errors import StudyError
from dpstudy.evidence.record import processor, record
from tests.workflow.conftest import TINY


@pytest.mark.parametrize(("kind", "what"), [("whole", ""), ("full", "half"), ("reduced", "")])
def test_a_kind_says_what_is_reduced_or_stood_in_for(kind, what, tmp_path):
    with pytest.raises(StudyError, match="say what kind of numbers these are"):
        record(load(TINY), tmp_path, kind, what)


def test_private_test_records_are_in_no_published_file(tmp_path):
    config = TINY | {"datasets": {"digits": TINY["datasets"]["digits"] | {"test_split": "private"}}}
    with pytest.raises(StudyError, match="the scores of digits are of private test records"):
        record(load(config), tmp_path, "full")


def test_a_folder_without_cells_is_told(tmp_path):
    with pytest.raises(StudyError, match="has no finished cell of tiny"):
        record(load(TINY), tmp_path, "full")


@pytest.mark.parametrize(("text", "sentence"), [(None, "no such file"), ("a: [", "not YAML"), ("a: 1", "unknown key")])
def test_a_config_that_cannot_be_read_is_told(text, sentence, tmp_path):
    if text is not None:
        (tmp_path / "s.yaml").write_text(text)
    with pytest.raises(StudyError, match=f"s.yaml: .*{sentence}"):
        read_study(tmp_path / "s.yaml")


def test_a_processor_has_a_name():
    assert processor()
