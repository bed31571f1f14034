"""What may be recorded is looked at before anything is."""

import pytest

from dpstudy.config.loading import load, read_study
from dpstudy.core.errors import StudyError
from dpstudy.core.files import write_json
from dpstudy.evidence.record import attacked, processor, record
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


LEDGER = {"guarantee": "proved", "epsilon": 2.9999, "adjacency": "add-remove-one"}
AUDIT = {
    "audits": [
        {"adjacency": "add-remove-one", "epsilon_lower": 1.5},
        {"adjacency": "add-remove-one", "epsilon_lower": 2.6599},
        {"adjacency": "replace-one", "epsilon_lower": 5.1},
    ],
    "epsilon_certified": 2.9999,
}


def test_the_best_attack_is_recorded_rounded_down(tmp_path):
    path = tmp_path / "audit.json"
    assert attacked(path, LEDGER) == ""
    write_json(path, AUDIT)
    assert attacked(path, LEDGER) == "2.65"
    assert attacked(path, LEDGER | {"adjacency": "replace-one"}) == "5.1"
    assert attacked(path, LEDGER | {"adjacency": "zero-out"}) == ""
    assert attacked(path, LEDGER | {"guarantee": "claimed", "epsilon": None}) == ""


@pytest.mark.parametrize(
    ("audit", "sentence"),
    [
        (AUDIT | {"epsilon_certified": 1.5}, "audit.json: is of another guarantee; delete it"),
        (AUDIT | {"epsilon_certified": None}, "audit.json: damaged"),
        ({"epsilon_certified": 2.9999}, "audit.json: damaged"),
        (AUDIT | {"audits": [{"epsilon_lower": 1.0}]}, "audit.json: damaged"),
    ],
)
def test_an_audit_of_another_cell_is_not_recorded(audit, sentence, tmp_path):
    write_json(tmp_path / "audit.json", audit)
    with pytest.raises(StudyError, match=sentence):
        attacked(tmp_path / "audit.json", LEDGER)
