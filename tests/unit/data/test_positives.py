import numpy as np
import pytest

from dpstudy.core.errors import StudyError
from dpstudy.data.positives import at_most, refuse_more
from dpstudy.data.records import Records


def records(labels, names=None):
    ids = np.array(names or [f"r{row}" for row in range(len(labels))], dtype=object)
    return Records(ids, None, np.asarray(labels))


def test_labels_beyond_the_most_are_dropped_by_the_records_own_id():
    rng = np.random.default_rng(0)
    labels = (rng.random((300, 9)) < 0.5).astype(np.int8)
    cut = at_most(records(labels), 2).labels
    assert (cut <= labels).all() and (cut.sum(1) == np.minimum(labels.sum(1), 2)).all()
    few = labels.sum(1) <= 2
    assert (cut[few] == labels[few]).all() and labels.sum(1).max() > 5
    # nobody else matters, and no label is preferred
    alone = np.concatenate([at_most(records(labels[row : row + 1], [f"r{row}"]), 2).labels for row in range(300)])
    assert (alone == cut).all()
    kept = cut[~few].sum(0) / labels[~few].sum(0)
    assert kept.min() > 0.25 and kept.max() < 0.6


def test_too_many_positives_name_the_record_and_what_to_do():
    labels = np.array([[1, 0, 0], [1, 1, 0], [1, 1, 1]], np.int8)
    refuse_more(records(labels), 3)
    refuse_more(records(np.arange(9, dtype=np.int32)), 1)
    with pytest.raises(
        StudyError, match="record 'r1' has 2 positive labels, but `positives` declares at most 1: raise"
    ):
        refuse_more(records(labels), 1)


def test_one_class_a_record_is_left_alone():
    single = records(np.arange(5, dtype=np.int32))
    assert at_most(single, 1) is single
