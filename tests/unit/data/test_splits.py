import hashlib

import numpy as np
import pytest

from dpstudy.core.errors import StudyError
from dpstudy.data.reader import Rows
from dpstudy.data.splits import assign

FRACTIONS = {"test": 0.2, "validation": 0.1}


def rows(names, subjects=None):
    return Rows(
        np.array(list(names), dtype=object), None if subjects is None else np.array(list(subjects), dtype=object)
    )


def split_of(rows_by_pool, splits, salt="s"):
    """id -> split."""
    return {
        rows_by_pool[pool].ids[index]: name
        for name, parts in assign(rows_by_pool, splits, salt).items()
        for pool, indices in parts
        for index in indices
    }


def test_every_row_in_exactly_one_split_and_fractions_are_met():
    source = {"all": rows(f"id{i}" for i in range(20000))}
    parts = assign(source, FRACTIONS, "s")
    assert list(parts) == ["train", "validation", "test"]
    sizes = {name: sum(len(indices) for _, indices in split) for name, split in parts.items()}
    assert sum(sizes.values()) == 20000 == len(split_of(source, FRACTIONS))
    for name, fraction in {"test": 0.2, "validation": 0.1, "train": 0.7}.items():
        assert abs(sizes[name] - 20000 * fraction) < 5 * np.sqrt(20000 * fraction * (1 - fraction))


def test_a_split_is_a_function_of_the_salted_id_alone():
    expected = {}
    for name in (f"id{i}" for i in range(300)):
        place = int(hashlib.sha256(b"s\0" + name.encode()).hexdigest()[:16], 16) / 2**64
        expected[name] = "test" if place < 0.2 else "validation" if place < 0.3 else "train"
    assert split_of({"all": rows(expected)}, FRACTIONS) == expected


def test_adding_removing_and_reordering_records_moves_no_other():
    names = [f"id{i}" for i in range(500)]
    before = split_of({"all": rows(names)}, FRACTIONS)
    for new in ([], ["new"], ["new", "newer"]):  # one less, another one in its place, and one more
        shuffled = list(np.random.default_rng(0).permutation([*names[1:], *new]))
        after = split_of({"all": rows(shuffled)}, FRACTIONS)
        assert {name: before[name] for name in names[1:]} == {name: after[name] for name in names[1:]}
    assert split_of({"all": rows(names)}, FRACTIONS, salt="other") != before


def test_a_subject_is_never_in_two_splits():
    subjects = [f"p{i % 97}" for i in range(1000)]
    source = {"all": rows((f"id{i}" for i in range(1000)), subjects)}
    seen = {}
    for name, split in split_of(source, FRACTIONS).items():
        seen.setdefault(subjects[int(name[2:])], set()).add(split)
    assert all(len(splits) == 1 for splits in seen.values())
    assert {split for splits in seen.values() for split in splits} == {"train", "validation", "test"}


def test_a_subject_keeps_at_most_so_many_records_and_nobody_else_decides_which():
    rng = np.random.default_rng(0)
    owners = [f"p{i}" for i in rng.integers(0, 60, 400)]
    source = {"all": rows((f"id{i}" for i in range(400)), owners)}
    whole, capped = (assign(source, FRACTIONS, "s", cap) for cap in (None, 2))
    kept = {}
    for split in ("train", "validation", "test"):
        (_, indices), (_, all_of_it) = capped[split][0], whole[split][0]
        assert set(indices) <= set(all_of_it) and (np.diff(indices) > 0).all()
        counts = {owner: [owners[i] for i in indices].count(owner) for owner in {owners[i] for i in all_of_it}}
        if split == "test":
            assert len(indices) == len(all_of_it)
        else:
            wanted = {owner: min(2, [owners[i] for i in all_of_it].count(owner)) for owner in counts}
            assert counts == wanted
            kept |= {owner: {i for i in indices if owners[i] == owner} for owner in counts}
    # without one subject, the others keep the same records
    left = [i for i in range(400) if owners[i] != "p7"]
    fewer = assign({"all": rows((f"id{i}" for i in left), [owners[i] for i in left])}, FRACTIONS, "s", 2)
    for split in ("train", "validation"):
        for place in fewer[split][0][1]:
            assert left[place] in kept[owners[left[place]]]
    assert sum(len(fewer[split][0][1]) for split in ("train", "validation")) == sum(
        len(rows) for owner, rows in kept.items() if owner != "p7"
    )


def test_own_test_pool_is_kept_and_validation_comes_from_train():
    source = {"train": rows(f"a{i}" for i in range(200)), "test": rows(f"b{i}" for i in range(50))}
    placed = split_of(source, {"validation": 0.3})
    assert {name for name, split in placed.items() if split == "test"} == set(source["test"].ids)
    assert {name[0] for name, split in placed.items() if split == "validation"} == {"a"}
    assert list(assign(source, {}, "s")) == ["train", "test"]
    assert list(assign(source, {"test": 0}, "s")) == ["train"]
    with pytest.raises(StudyError, match="own; leave out `test`"):
        assign(source, {"test": 0.2}, "s")


def test_pools_that_share_a_subject_are_refused_or_merged():
    source = {
        "train": rows((f"a{i}" for i in range(100)), (f"p{i % 40}" for i in range(100))),
        "test": rows((f"b{i}" for i in range(40)), (f"p{i + 39}" for i in range(40))),
    }
    with pytest.raises(StudyError, match="subject 'p39' stands in both"):
        assign(source, {}, "s")
    placed = split_of(source, {"test": 0.3})
    assert len(placed) == 140
    assert {name[0] for name, split in placed.items() if split == "test"} == {"a", "b"}
    assert placed["a39"] == placed["a79"] == placed["b0"]
    assert list(assign(source, {"test": 0}, "s")) == ["train"]  # the shared subject's test rows are not used


@pytest.mark.parametrize(
    ("splits", "message"),
    [
        ({}, "give the fraction `test`"),
        ({"test": 1.0}, "test is 1.0"),
        ({"test": -0.1}, "test is -0.1"),
        ({"test": "0.2"}, "test is '0.2'"),
        ({"test": True}, "test is True"),
        ({"test": float("nan")}, "test is nan"),
        ({"test": 0.5, "validation": 0.5}, "nothing for train"),
        ({"test": 0.2, "left_out": 0.8}, "test 0.2, left_out 0.8 leave nothing for train"),
        ({"tset": 0.2}, "unknown key 'tset'"),
        ({"test": 0.2, "records": 0}, "records is 0; it must be an integer of at least 1"),
        ({"test": 0.2, "records": 2.0}, "records is 2.0"),
        ({"test": 0.2, "records": 20, "left_out": 0.1}, "either left_out, a fraction, or records, a number"),
        ({"test": 0.2, "records": 99}, "records is 99, but there are only .* rows to choose from"),
    ],
)
def test_bad_fractions_are_refused(splits, message):
    with pytest.raises(StudyError, match=message):
        assign({"all": rows(f"id{i}" for i in range(100))}, splits, "s")


def test_empty_splits_and_repeated_ids_are_refused():
    with pytest.raises(StudyError, match="no row falls into the split"):
        assign({"all": rows(["only"])}, {"test": 0.2}, "s")
    with pytest.raises(StudyError, match="row 1 of the pool 'test': the id 'x' stands twice"):
        assign({"train": rows(["x"]), "test": rows(["y", "x"])}, {}, "s")


def test_records_left_out_belong_to_no_split_and_move_no_other():
    source = {"all": rows(f"id{i}" for i in range(5000))}
    whole = split_of(source, FRACTIONS)
    sizes = []
    for fraction in (0.0, 0.2, 0.6):
        part = split_of(source, FRACTIONS | {"left_out": fraction})
        assert part.items() <= whole.items(), "the smaller sets are part of the larger"
        assert {name for name in whole if whole[name] != "train"} <= set(part)
        sizes.append(len(part) / 5000)
    assert sizes == pytest.approx([1.0, 0.8, 0.4], abs=0.03)


@pytest.mark.parametrize("splits", [{"test": 0.2}, FRACTIONS])
def test_a_number_of_records_is_met_exactly_and_moves_no_other(splits):
    source = {"all": rows(f"id{i}" for i in range(3000))}
    whole, before = split_of(source, splits), set()
    for count in (100, 500, 2000):
        part = split_of(source, splits | {"records": count})
        chosen = {name for name in part if part[name] != "test"}
        assert part.items() <= whole.items() and len(chosen) == count
        assert {name for name in whole if whole[name] == "test"} <= set(part)
        assert before < chosen, "the smaller sets are part of the larger"
        before = chosen
    held = sum(part[name] == "validation" for name in chosen) / 2000
    assert held == pytest.approx(splits.get("validation", 0) / 0.8, abs=0.04), "chosen by another hash than the split's"


def test_records_are_chosen_by_their_ids_alone():
    ids = [f"id{i}" for i in range(400)]
    places = {name: int(hashlib.sha256(b"s, records\0" + name.encode()).hexdigest()[:16], 16) for name in ids}
    expected = set(sorted(ids, key=places.get)[:150])
    for names in (ids, list(np.random.default_rng(0).permutation(ids))):
        placed = split_of({"train": rows(names), "test": rows(["t"])}, {"records": 150})
        assert {name for name in placed if placed[name] == "train"} == expected
    more = [split_of({"train": rows([*ids, f"new{i}"]), "test": rows(["t"])}, {"records": 150}) for i in range(20)]
    gone = [len(expected - set(placed)) for placed in more]
    assert set(gone) == {0, 1}, "one more record displaces one other, or none"


def test_another_draw_cuts_anew_and_each_by_the_record_alone():
    names = [f"id{i}" for i in range(2000)]
    source = {"all": rows(names)}
    first, *others = (split_of(source, FRACTIONS | {"draw": draw}) for draw in (0, 1, 2))
    assert first == split_of(source, FRACTIONS)
    for other in others:
        both = sum(first[name] == other[name] == "test" for name in names)
        assert 0.2 * 0.2 * 2000 - 5 * 9 < both < 0.2 * 0.2 * 2000 + 5 * 9  # independent of each other
    alone = split_of({"all": rows(names[:700])}, FRACTIONS | {"draw": 1})
    assert alone == {name: others[0][name] for name in names[:700]}
    for wrong in (-1, 1.0, True, "1"):
        with pytest.raises(StudyError, match="splits: draw is .*; it must be an integer of at least 0"):
            assign(source, FRACTIONS | {"draw": wrong}, "s")
