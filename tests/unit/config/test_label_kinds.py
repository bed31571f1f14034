import pytest

from dpstudy.config.loading import load
from dpstudy.core.errors import StudyError

STEPS = {"learning_rate": 1.0, "clipping_norm": 1.0, "steps": 10}


def study(entry, **dataset):
    own = {
        "reader": "image_table", "location": "own", "table": "a.csv", "path_column": "p", "delta": "1e-4",
        "size": [8, 8], "label_columns": ["Edema", "Mass"], "splits": {"test": 0.3},
    }  # fmt: skip
    own = {key: value for key, value in (own | dataset).items() if value is not None}
    return load({
        "study": "s", "datasets": {"own": own}, "features": {"pixels": {"extractor": "pixels"}},
        "methods": {"e": entry}, "epsilons": ["1"], "seeds": [0],
    })  # fmt: skip


@pytest.mark.parametrize(
    ("entry", "remedy"),
    [
        ({"method": "first_order", **STEPS}, "set loss: sigmoid"),
        ({"method": "network_dpsgd", "network": "lenet", **STEPS}, "set loss: sigmoid"),
        ({"method": "feature_covariance"}, "set loss: sigmoid"),
        ({"method": "newton"}, "set variant: published"),
        ({"method": "iterated_sgd", "learning_rate": 1.0, "clipping_norm": 1.0, "batch_size": 5, "epochs": 1}, "use"),
    ],
)
def test_a_loss_of_one_label_is_refused_before_a_job_runs(entry, remedy):
    for more in ({"positives": 2}, {}):  # without it a record bears one or none
        with pytest.raises(StudyError, match=rf"methods\.e: {entry['method']}.* 'own' .*; {remedy}"):
            study(entry, **more)
    study(entry, label_columns=["Edema"])  # two classes, without it and with it


def test_what_suits_several_labels_is_let_be():
    for entry in ({"method": "least_squares"}, {"method": "feature_covariance", "loss": "sigmoid"}):
        study(entry, positives=2)
    tuned = {"method": "first_order", "tuning": {"trials": 2, "space": {"loss": {"choices": ["sigmoid"]}}}} | STEPS
    study(tuned, positives=2, splits={"test": 0.3, "validation": 0.1})


ITERATED = {"method": "iterated_sgd", "learning_rate": 1.0, "clipping_norm": 1.0, "batch_size": 5, "epochs": 1}


def test_classes_are_weighed_where_methods_know_how():
    one = {"label_column": "c", "classes": ["a", "b"], "label_columns": None, "class_weights": {"a": 0.2}}
    study({"method": "least_squares"}, **one)
    with pytest.raises(StudyError, match=r"iterated_sgd does not weigh records, as datasets\.own\.class_weights asks"):
        study(ITERATED, **one)
    for wrong in (0, 1.5, "much"):
        with pytest.raises(StudyError, match=r"datasets\.own\.class_weights\.a: "):
            study({"method": "least_squares"}, **one | {"class_weights": {"a": wrong}})


def test_averages_are_for_methods_that_know_them_and_for_all_records():
    persons = {"unit": "subject", "subject_column": "p", "per_subject": 3, "contributions": "average"}
    one = {"label_column": "c", "classes": ["a", "b"], "label_columns": None}
    searched = {"method": "first_order"} | STEPS | {"loss": "sigmoid"}
    searched["tuning"] = {"trials": 2, "records": 20, "space": {"learning_rate": {"choices": [1.0, 2.0]}}}
    study({"method": "least_squares"}, **persons)
    study({"method": "first_order", **STEPS, "loss": "sigmoid"}, **persons)
    with pytest.raises(StudyError, match=r"methods\.e: iterated_sgd does not average .* datasets\.own\.contributions"):
        study(ITERATED, **persons, **one)
    with pytest.raises(StudyError, match=r"methods\.e: a search on some of the records does not average"):
        study(searched, **persons, splits={"test": 0.3, "validation": 0.1})


def test_calibration_on_test_records_is_for_public_ones_and_thresholds_for_few_classes():
    entry = {"method": "least_squares", "calibration": "test"}
    one = {"label_column": "c", "label_columns": None}
    study(entry, **one, classes=["a", "b"], test_split="public")
    paid = {"pay": "choice", "trials": 2, "sampler": "random", "space": {"ridge": {"low": 0.1, "high": 1.0}}}
    with pytest.raises(StudyError, match=r"methods\.e\.calibration: goes with no `tuning.pay`"):
        splits = {"test": 0.3, "validation": 0.1}
        study(entry | {"tuning": paid}, **one, classes=["a", "b"], test_split="public", splits=splits)
    with pytest.raises(StudyError, match=r"methods\.e\.calibration: 'test' .* those of 'own' are private"):
        study(entry, **one, classes=["a", "b"])
    fine = {"method": "least_squares", "calibration": "auto", "thresholds": True}
    study(fine, **one, classes=50)
    with pytest.raises(StudyError, match=r"methods\.e\.thresholds: are for at most 50 classes, and 'own' has 51"):
        study(fine, **one, classes=51)
    with pytest.raises(StudyError, match=r"methods\.e\.thresholds: are of probabilities"):
        study({"method": "least_squares", "thresholds": True}, **one, classes=2)
