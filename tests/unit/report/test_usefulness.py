import pytest

from dpstudy.core.files import read_json, write_json
from dpstudy.report.usefulness import describe_usefulness

CELL = "mnist/scatternet/ls/eps=1.2"


def told(study, least, half=None):
    for path in study.metrics.values():
        content = read_json(path)
        for row in content["seeds"]:
            row |= {"top1_low": row["top1"] - half, "top1_high": row["top1"] + half} if half else {}
        write_json(path, content)
    found = describe_usefulness({"metric": "top1", "at_least": least}, study.results)
    (own,) = [sentence for sentence in found if sentence.startswith(f"{CELL}: ")]
    return own, found


@pytest.mark.parametrize(
    ("least", "verdict"), [(90, "useful"), (99, "not useful"), (96, "open, the interval has it within")]
)
def test_the_interval_decides(study, least, verdict):
    own, _ = told(study, least, half=1)
    assert own.endswith(f"; {least} was asked for: {verdict}.") and "95 % interval 94." in own


def test_without_an_interval_nothing_is_decided(study):
    own, _ = told(study, 50)
    assert own == f"{CELL}: top-1 accuracy (%) 96.1; 50 was asked for: no interval tells whether it is reached."


def test_only_models_with_a_proved_epsilon_are_looked_at(study):
    proved = {cell for cell in study.ledgers if study.results.ledger(cell)["guarantee"] == "proved"}
    _, found = told(study, 50)
    assert {sentence.partition(": ")[0] for sentence in found} == proved != set(study.ledgers)


def test_nothing_is_said_where_nothing_was_asked(study):
    assert describe_usefulness(None, study.results) == []


def test_a_metric_that_no_cell_has_is_named(study):
    (told,) = describe_usefulness({"metric": "auc", "at_least": 0.7}, study.results)
    assert told.endswith("of at least 0.7 was asked for; name auc in evaluation.metrics, to have it.")
