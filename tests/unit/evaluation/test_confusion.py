import numpy as np
import pytest

from dpstudy.evaluation.confusion import SEVERAL, confusion


def test_counts_are_those_of_a_loop():
    rng = np.random.default_rng(0)
    scores, labels, women = rng.normal(size=(200, 4)), rng.integers(4, size=200), rng.random(200) < 0.3
    found = confusion(scores, labels, "abcd", {"sex=F": women}, False)
    assert found["classes"] == found["told"] == list("abcd") and list(found["counts"]) == ["", "sex=F"]
    for name, mask in (("", np.ones(200, bool)), ("sex=F", women)):
        slow = [[0] * 4 for _ in range(4)]
        for score, label in zip(scores[mask], labels[mask], strict=True):
            slow[label][max(range(4), key=lambda j, s=score: s[j])] += 1
        assert found["counts"][name] == slow and np.sum(slow) == mask.sum()


def test_several_labels_are_told_from_a_probability_of_one_half_on():
    rng = np.random.default_rng(1)
    scores, labels = rng.normal(size=(300, 3)), (rng.random((300, 3)) < 0.2).astype(np.int8)
    found = confusion(scores, labels, ["x", "y", "z"], {}, True)
    assert tuple(found["told"]) == SEVERAL
    for j, (left, wrong, missed, hit) in enumerate(found["counts"][""]):
        pairs = [(1 / (1 + np.exp(-s)) >= 0.5, bool(y)) for s, y in zip(scores[:, j], labels[:, j], strict=True)]
        assert [left, wrong, missed, hit] == [pairs.count(pair) for pair in ((0, 0), (1, 0), (0, 1), (1, 1))]
    assert confusion(scores, labels, ["x", "y", "z"], {}, False) is None


@pytest.mark.parametrize("labels", [np.zeros(0, int), np.zeros((0, 2), np.int8)])
def test_an_empty_group_counts_nothing(labels):
    found = confusion(np.zeros((0, 2)), labels, "ab", {"sex=F": np.zeros(0, bool)}, True)
    assert not np.any(found["counts"]["sex=F"])
