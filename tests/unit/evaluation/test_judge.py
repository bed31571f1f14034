import numpy as np
import pytest
from scipy.stats import binomtest
from sklearn.metrics import average_precision_score, roc_auc_score

from dpstudy.evaluation.evaluate import evaluate
from dpstudy.evaluation.judge import judge
from dpstudy.evaluation.metric import mean_of_defined

OPTIONS = {"metrics": ["top1", "auc"], "intervals": 0, "smallest_group": 5, "small_groups": "merge", "per_label": False}
CLASSES = ["a", "b", "c"]


def rows(n=120, several=False, classes=3, seed=0):
    rng = np.random.default_rng(seed)
    labels = (rng.random((n, classes)) < 0.3).astype(np.int8) if several else rng.integers(classes, size=n)
    truth = labels if several else np.eye(classes)[labels]
    scores = truth + rng.standard_normal((n, classes))
    sex = np.array(["F", "M"], object)[rng.integers(2, size=n)]
    return scores, labels, {"sex": sex}


def test_groups_have_the_metrics_of_their_records_alone():
    scores, labels, columns = rows()
    found = judge(scores, labels, CLASSES, OPTIONS, columns)
    assert found["groups"].keys() == {"sex=F", "sex=M"}
    for name in "FM":
        mask = columns["sex"] == name
        expected = evaluate(scores[mask], labels[mask], ["top1", "auc"], CLASSES)
        entry = found["groups"][f"sex={name}"]
        ends = entry.pop("top1_low"), entry.pop("top1_high")
        assert ends == pytest.approx(share_interval(expected["top1"], mask.sum()))
        assert entry.pop("n") == mask.sum() and entry == pytest.approx(expected)


def share_interval(percent, count):
    """Wilson's, by scipy."""
    found = binomtest(round(percent * count / 100), count).proportion_ci(0.95, method="wilson")
    return [100 * found.low, 100 * found.high]


def test_without_samples_shares_of_independent_records_have_intervals_and_nothing_else_has():
    scores, labels, _ = rows()
    several = OPTIONS | {"metrics": ["top1", "balanced_accuracy", "auc"], "per_label": True}
    found = judge(scores, labels, CLASSES, several, subjects=np.arange(len(labels)))
    shares = {f"{name}_{end}" for name in ("top1", "balanced_accuracy") for end in ("low", "high")}
    assert found.keys() == {*shares, "groups"}
    top1 = evaluate(scores, labels, ["top1"], CLASSES)["top1"]
    assert [found["top1_low"], found["top1_high"]] == pytest.approx(share_interval(top1, len(labels)))
    of_b = found["groups"]["label=b"]
    assert [of_b["top1_low"], of_b["top1_high"]] == pytest.approx(share_interval(of_b["top1"], of_b["n"]))
    paired = judge(scores, labels, CLASSES, several, subjects=np.arange(len(labels)) // 2)  # two pictures a person
    assert paired.keys() == found.keys() and paired["top1_low"] != found["top1_low"]
    assert not [name for name in paired["groups"]["label=b"] if name.startswith("auc_")]


@pytest.mark.parametrize("metrics", [["top1"], ["balanced_accuracy"], ["auc"], ["average_precision"]])
@pytest.mark.parametrize("classes", [2, 3])
def test_intervals_hold_the_value_and_shrink_with_the_records(metrics, classes):
    widths = []
    for n in (100, 2500):
        scores, labels, _ = rows(n, classes=classes)
        found = judge(scores, labels, CLASSES[:classes], OPTIONS | {"metrics": metrics, "intervals": 300})
        value = evaluate(scores, labels, metrics, CLASSES[:classes])[metrics[0]]
        low, high = (found[f"{metrics[0]}_{end}"] for end in ("low", "high"))
        assert low < value < high
        widths.append(high - low)
    assert 3 < widths[0] / widths[1] < 8  # the root of 25, about


def test_each_label_against_the_others():
    scores, labels, _ = rows(several=True)
    options = OPTIONS | {"metrics": ["auc", "average_precision"], "per_label": True, "intervals": 50}
    found = judge(scores, labels, CLASSES, options)
    for number, name in enumerate(CLASSES):
        entry = found["groups"][f"label={name}"]
        assert entry["n"] == labels[:, number].sum()
        assert entry["auc"] == pytest.approx(roc_auc_score(labels[:, number], scores[:, number]))
        assert entry["average_precision"] == pytest.approx(
            average_precision_score(labels[:, number], scores[:, number])
        )
        assert entry["auc_low"] < entry["auc"] < entry["auc_high"]
    assert found["auc_low"] < np.mean([found["groups"][f"label={name}"]["auc"] for name in CLASSES]) < found["auc_high"]
    scores, labels, _ = rows()
    single = judge(scores, labels, CLASSES, OPTIONS | {"per_label": True})["groups"]["label=b"]
    right = (scores.argmax(1) == labels)[labels == 1]
    assert single["n"] == len(right) and single["top1"] == pytest.approx(100 * right.mean())


def test_each_of_two_classes_is_told_from_the_other_by_both_scores():
    """What a score adds to both classes alike, as a log density does, says nothing of which it is."""
    scores, labels, _ = rows(classes=2)
    both = np.random.default_rng(1).standard_normal((len(labels), 1)) * 10
    options = OPTIONS | {"metrics": ["auc"], "per_label": True}
    whole = evaluate(scores, labels, ["auc"], ["a", "b"])["auc"]
    for shown in (scores, scores + both):
        groups = judge(shown, labels, ["a", "b"], options)["groups"]
        assert [groups[f"label={name}"]["auc"] for name in "ab"] == pytest.approx([whole, whole])


def test_persons_are_drawn_so_that_many_pictures_of_few_say_less():
    scores, labels, _ = rows(600)
    subjects = np.array([f"p{row // 30}" for row in range(600)], object)
    blocks = np.repeat(np.arange(20), 30)
    wrong = blocks % 2 == 0  # persons are right or wrong as a whole
    scores = np.eye(3)[np.where(wrong, (labels + 1) % 3, labels)]
    options = OPTIONS | {"metrics": ["top1"], "intervals": 400}
    widths = [
        found["top1_high"] - found["top1_low"]
        for found in (judge(scores, labels, CLASSES, options, None, names) for names in (None, subjects))
    ]
    assert widths[1] > 3 * widths[0]


def test_what_is_not_defined_is_left_out():
    scores, labels, _ = rows(several=True)
    columns = {"site": np.array(["x"] * 60 + ["y"] * 60, object)}
    labels[:60] = 0  # no finding at the first site
    found = judge(scores, labels, CLASSES, OPTIONS | {"metrics": ["auc"], "intervals": 20}, columns)
    assert found["groups"]["site=x"] == {"n": 60} and "auc" in found["groups"]["site=y"]


def test_a_sample_without_a_rare_label_says_nothing_of_the_mean_over_labels():
    """A mean over the labels that happen to be there would be lower or higher for that reason alone."""
    parts = [np.array([0.9, np.nan, 0.8]), np.array([0.5, 0.5, 0.6]), np.array([np.nan, 0.4, np.nan])]
    assert mean_of_defined(parts) == pytest.approx([0.7, np.nan, 0.7], nan_ok=True)
    assert np.isnan(mean_of_defined([np.array([np.nan, 0.4])])).all()


def test_groups_are_compared_on_the_labels_that_all_of_them_have():
    """The first finding is easy to tell and the second is not: a group without the second would look better served."""
    scores, labels, columns = rows(400, several=True)
    scores[:, 1] = np.random.default_rng(5).standard_normal(400)
    women = columns["sex"] == "F"
    options = OPTIONS | {"metrics": ["auc"], "intervals": 50}
    labels[women, 1] = 0
    labels[np.flatnonzero(women)[:2], 1] = 1  # too few to say anything
    found = judge(scores, labels, CLASSES, options, columns)["groups"]
    for name, mask in (("sex=F", women), ("sex=M", ~women)):
        areas = [roc_auc_score(labels[mask, place], scores[mask, place]) for place in (0, 2)]
        assert found[name]["auc"] == pytest.approx(np.mean(areas)) and found[name]["auc_low"] < np.mean(areas)
    labels[np.flatnonzero(women)[2], 1] = 1
    found = judge(scores, labels, CLASSES, options, columns)["groups"]
    areas = [roc_auc_score(labels[women, place], scores[women, place]) for place in range(3)]
    assert found["sex=F"]["auc"] == pytest.approx(np.mean(areas))


def test_the_whole_split_is_told_on_the_labels_that_its_groups_are_compared_on():
    """Where all labels are, the metrics of the split say it already."""
    scores, labels, columns = rows(400, several=True)
    scores[:, 1] = np.random.default_rng(5).standard_normal(400)
    options = OPTIONS | {"metrics": ["auc"], "intervals": 50}
    assert "sex=" not in judge(scores, labels, CLASSES, options, columns)["groups"]
    labels[columns["sex"] == "F", 1] = 0
    found = judge(scores, labels, CLASSES, options, columns)["groups"]["sex="]
    areas = [roc_auc_score(labels[:, place], scores[:, place]) for place in (0, 2)]
    assert found["n"] == 400 and found["auc"] == pytest.approx(np.mean(areas))
    assert found["auc_low"] < found["auc"] < found["auc_high"]
    assert evaluate(scores, labels, ["auc"], CLASSES)["auc"] < found["auc"] - 0.05, "the label that women lack"


def test_a_mean_over_classes_is_over_those_that_all_groups_have():
    """A class that is hard and that one group lacks would make the other look worse served."""
    scores, labels, columns = rows(400)
    labels[columns["sex"] == "F"] %= 2
    scores = scores - 9 * (labels == 2)[:, None] * np.eye(3)[2]  # the third class is always mistaken
    options = OPTIONS | {"metrics": ["top1", "balanced_accuracy"]}
    found = judge(scores, labels, CLASSES, options, columns)["groups"]
    right = scores.argmax(1) == labels
    for name, mask in (("sex=F", columns["sex"] == "F"), ("sex=M", columns["sex"] == "M"), ("sex=", labels >= 0)):
        shares = [100 * right[mask & (labels == label)].mean() for label in (0, 1)]
        assert found[name]["balanced_accuracy"] == pytest.approx(np.mean(shares))
    assert "top1" not in found["sex="], "which is of no labels: that of the split"
    whole = evaluate(scores, labels, ["balanced_accuracy"], CLASSES)["balanced_accuracy"]
    assert found["sex="]["balanced_accuracy"] > whole + 10


def test_the_size_of_a_group_is_told_by_persons_where_they_are_known():
    scores, labels, columns = rows()
    one = np.where(columns["sex"] == "F", "p0", [f"p{row}" for row in range(120)])
    found = judge(scores, labels, CLASSES, OPTIONS, columns, one.astype(object))
    assert set(found["groups"]) == {"sex=M"}


def test_the_size_of_a_label_is_told_by_persons_too():
    """Twenty pictures of four persons bear it: a group of five records, and no group of five persons."""
    labels = np.repeat(np.array([[1, 0], [0, 1]], np.int8), (20, 100), axis=0)
    scores = labels + np.random.default_rng(0).standard_normal(labels.shape)
    persons = np.array([f"p{row // 5}" for row in range(120)], object)
    options = OPTIONS | {"metrics": ["auc"], "per_label": True, "intervals": 50}
    assert set(judge(scores, labels, ["a", "b"], options, None, persons)["groups"]) == {"label=b"}
    few = judge(scores, labels, ["a", "b"], options | {"smallest_group": 1}, None, persons)["groups"]
    assert few["label=a"].keys() == {"n", "auc"}, "four persons: a value, and no interval"
    assert "auc_low" in judge(scores, labels, ["a", "b"], options, None, None)["groups"]["label=a"]


@pytest.mark.parametrize("lacking", [0, 3, 30])
def test_a_label_that_all_bear_is_told_of_nobody_in_value_and_interval(lacking):
    """Its average precision was left out of the mean and counted as 1 in the samples."""
    rng = np.random.default_rng(0)
    labels = np.column_stack([rng.integers(0, 2, 200), np.ones(200, int)])
    labels[:lacking, 1] = 0
    scores = rng.normal(size=(200, 2)) + 0.3 * labels
    options = OPTIONS | {"metrics": ["auc", "average_precision"], "intervals": 100, "per_label": True}
    value, found = evaluate(scores, labels, options["metrics"], ["A", "B"]), judge(scores, labels, ["A", "B"], options)
    for name in options["metrics"]:
        if lacking == 3:
            assert f"{name}_low" not in found
        else:
            assert found[f"{name}_low"] < value[name] < found[f"{name}_high"]
    assert found["groups"]["label=B"].keys() >= ({"n"} if not lacking else {"n", "auc", "average_precision"})
    assert ("auc" in found["groups"]["label=B"]) == (lacking > 0) == ("average_precision" in found["groups"]["label=B"])
