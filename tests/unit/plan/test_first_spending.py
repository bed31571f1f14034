"""What a first run with secure noise is about to spend is said, and confirmed."""

import os
import pty
import re
from dataclasses import replace

import pytest

from dpstudy.config.cells import Cell
from dpstudy.core.errors import StudyError
from dpstudy.plan import sources
from dpstudy.plan.before import check_budget
from dpstudy.plan.first_spending import (
    DRAWN,
    ENOUGH,
    EXACT,
    ask_on_terminal,
    first_spending,
    margin,
    refuse_together,
)
from dpstudy.plan.sources import record_names
from dpstudy.privacy.budget import Budget
from dpstudy.privacy.events import Event
from dpstudy.privacy.gaussian import epsilon_of, mu_of
from dpstudy.privacy.ledger import build_ledger
from dpstudy.privacy.printed import upper_bound
from dpstudy.privacy.spending import BOOK, Spending
from dpstudy.privacy.spent_sums import Protected
from tests.unit.plan.conftest import study_with
from tests.unit.plan.test_before import TRAIN

OWN = {"noise": "secure", "datasets__own__test_split": "private"}


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv(DRAWN, raising=False)


def of_epsilon(epsilon, seeds=(0,)):
    outputs = {key: path.replace("eps=1", f"eps={epsilon}") for key, path in TRAIN.outputs.items()}
    return replace(TRAIN, wildcards={**TRAIN.wildcards, "epsilon": epsilon}, outputs=outputs, seeds=list(seeds))


def asked(study, *due, answer=None):
    questions = []
    told = first_spending(study, list(due), Spending(BOOK), lambda text: questions.append(text) or answer)
    return told, questions


def test_a_yes_is_asked_for_what_all_models_spend_together():
    study = study_with(**OWN, epsilons=["1", "8", "inf"])
    due = of_epsilon("1", (0, 1)), of_epsilon("8", (0, 1)), of_epsilon("inf", (0, 1))
    (told,), (question,) = asked(study, *due, answer="yes\n")
    together = epsilon_of((2 * mu_of(1, 1e-5) ** 2 + 2 * mu_of(8, 1e-5) ** 2) ** 0.5, 1e-5)
    assert 11 < together < 13, "by hand: mu 0.27 and 1.74, twice each, is 2.49"
    assert (
        f"datasets.own: this run spends about epsilon {upper_bound(together)} of its records at delta 1e-5, by 4 models"
        in told
    )
    assert (
        "(epsilon 1, 8); 2 without noise protect nobody; nothing was spent of them before. What is spent stays" in told
    )
    assert question == f"{told}. Go on? [y/N] "
    for answer in ("n\n", "\n", ""):
        with pytest.raises(StudyError, match=r"^datasets\.own: not confirmed, and nothing was spent$"):
            asked(study, *due, answer=answer)


def test_where_nobody_answers_a_budget_is_asked_for():
    words = r'nobody is here to say yes: .*`release: \{budget: "1\.0\d*"\}`, or start it in a terminal'
    with pytest.raises(StudyError, match=words):
        asked(study_with(**OWN), of_epsilon("1"))
    told, questions = asked(study_with(**OWN, release={"budget": "1"}), of_epsilon("1"))
    assert len(told) == 1 and "by 1 model (epsilon 1)" in told[0] and not questions


def test_nothing_is_asked_of_others_records_of_drawn_ones_or_where_nothing_is_trained(monkeypatch):
    public = study_with(noise="secure", datasets__own__test_split="public")
    assert asked(public, of_epsilon("1")) == ([], [])
    assert asked(study_with(**OWN)) == ([], [])
    assert first_spending(study_with(**OWN), [of_epsilon("1")], Spending(BOOK), None), "only planned: said, not asked"
    monkeypatch.setenv(DRAWN, "1")
    assert not asked(study_with(**OWN), of_epsilon("1"))[1]


def together(study, epsilons, before=0.0, ceiling="3"):
    book = Spending(BOOK, ceiling=ceiling)
    book.before = lambda *_: before
    refuse_together(study, "own", [Cell("own", "pixels", "ls", epsilon) for epsilon in epsilons], book)


def test_a_training_that_was_begun_and_goes_on_counts_once():
    """Its line in the book has all that it will spend; its job is due again."""
    study, book = study_with(**OWN), Spending(BOOK, ceiling="2.1")
    events, known = [Event("x", "gaussian", 1 / mu_of(2, 1e-5), 1.0)], {"n": 1000, "unit": "record", "noise": "secure"}
    ledger = build_ledger(events, Budget("2", 1e-5), **known)
    cell = Cell("own", "images", "net", "2")
    book.record("own", cell.path, [0], ledger, record_names(study, "own"), training="a")
    refuse_together(study, "own", [cell], book)
    with pytest.raises(
        StudyError, match=r"1 model of 'own' would bring what is spent to about ε = 2\.9\d* \(before 2\)"
    ):
        refuse_together(study, "own", [Cell("own", "pixels", "ls", "2")], book)


def test_models_that_keep_a_budget_one_by_one_alone_are_refused_before_any_is_trained():
    study = study_with(**OWN)
    together(study, ["2", "2"])  # 2.95
    with pytest.raises(
        StudyError, match=r"^release: \{budget: 3\}: 3 models of 'own' would bring what is spent to about ε"
    ) as told:
        together(study, ["2", "2", "2"])
    largest = re.search(r"3 fit, each with ε = (\S+), or ask for fewer$", str(told.value))[1]
    together(study, [largest] * 3)
    assert largest == f"{float(largest):g}"  # as `epsilons` wants it
    assert epsilon_of(3**0.5 * mu_of(float(largest) * 1.2, 1e-5), 1e-5) > 3
    with pytest.raises(
        StudyError, match=r"1 model of 'own' .* \(before 2\.9\d*\); one with ε = 0\.\d+ fits, or leave it out"
    ):
        together(study, ["2"], before=2.9)
    with pytest.raises(StudyError, match="; leave it out$"):
        together(study, ["2"], before=3.2)


def test_where_batches_are_samples_more_is_reckoned_with():
    """Their epsilons add up otherwise: as many as this accountants gave of two models with 5 of 41 persons a batch."""
    study = study_with(**OWN)
    wildcards = {**TRAIN.wildcards, "features": "images", "entry": "net", "epsilon": "2"}
    (told,), _ = asked(study, replace(of_epsilon("2"), wildcards=wildcards, seeds=[0, 1]), answer="y")
    certain = float(re.search(r"spends at most about epsilon (\S+) of", told)[1])
    assert certain == pytest.approx(1.25 * epsilon_of(2**0.5 * mu_of(2, 1e-5), 1e-5), rel=1e-3)
    book = Spending(BOOK, ceiling="3")
    book.before = lambda *_: 0.0
    refuse_together(study, "own", [Cell("own", "images", "net", "2.4")] * 2, book)  # 3.5, which may be 3
    with pytest.raises(StudyError, match="2 fit, each with ε = 1.6, or ask for fewer"):
        refuse_together(study, "own", [Cell("own", "images", "net", "3")] * 2, book)


def test_a_whole_number_that_fits_is_proposed_as_the_config_wants_it(monkeypatch):
    monkeypatch.setattr("dpstudy.plan.first_spending.fitting", lambda *_: 2.0)
    with pytest.raises(StudyError, match="3 fit, each with ε = 2, or ask for fewer"):
        together(study_with(**OWN), ["2", "2", "2"])


def spent(study, epsilon, seed=0, entry="other", **more):
    """A book in which a model of these records stands."""
    book = Spending(BOOK)
    events = [Event("x", "gaussian", 1 / mu_of(epsilon, 1e-5), 1.0)]
    ledger = build_ledger(events, Budget(str(epsilon), 1e-5), n=1000, unit="record", noise="secure")
    cell = Cell("own", "pixels", entry, f"{epsilon:g}")
    book.record("own", cell.path, [seed], ledger, record_names(study, "own"), **more)
    return book


def test_whoever_has_spent_before_is_asked_again_and_told_what_it_comes_to():
    study = study_with(**OWN)
    book = spent(study, 2)
    with pytest.raises(StudyError, match="nobody is here to say yes: .*in all, by earlier studies too") as refused:
        first_spending(study, [of_epsilon("1")], book, lambda question: None)
    enough = re.search(r'budget: "(\S+)"', str(refused.value))[1]
    allowed = Spending(BOOK, ceiling=enough)
    allowed.everywhere = book.everywhere
    refuse_together(study, "own", [Cell("own", "pixels", "net", "1")], allowed)  # what is proposed lets it through
    assert not allowed.hopeless(
        "own", "own/pixels/net/eps=1", "1", 1e-5, record_names(study, "own"), Protected("record")
    )
    (told,) = first_spending(study, [of_epsilon("1")], book, lambda question: "y")
    together = epsilon_of((mu_of(1, 1e-5) ** 2 + mu_of(2, 1e-5) ** 2) ** 0.5, 1e-5)
    assert f"; with epsilon 2 that was spent before about {upper_bound(together)} in all (less than" in told
    assert "adds up by squares). What is spent stays" in told
    (told,) = first_spending(study_with(**OWN, release={"budget": "9"}), [of_epsilon("1")], book, pytest.fail)
    assert "with epsilon 2 that was spent before" in told and "), of a budget of 9. What" in told, (
        "said, and not asked: the budget is the answer"
    )


def by_person(**changes):
    """The study, where each record has its person."""
    study = study_with(**OWN, **changes)
    study["datasets"]["own"] |= {"unit": "subject"}
    return study


def test_what_protected_records_is_not_added_up_for_persons():
    """ε 2 and 2 would make 2.9, which a person with two images has by the first alone."""
    study = by_person()
    book = spent(study, 2)
    (told,) = first_spending(study, [of_epsilon("2")], book, lambda question: "y")
    assert (
        "(epsilon 2); trainings before it protect single records and bound nothing for persons, so that nobody" in told
    )
    assert "in all" not in told and "2.9" not in told
    with pytest.raises(StudyError, match="nobody is here to say yes: start it in a terminal;") as refused:
        first_spending(study, [of_epsilon("2")], book, lambda question: None)
    assert "budget: " not in str(refused.value), "no budget would let it through"
    with pytest.raises(StudyError, match=r"nothing for persons: nobody can tell whether it keeps release: \{budget: 9"):
        check_budget(by_person(release={"budget": "9"}), [of_epsilon("2")])
    check_budget(study_with(**OWN, release={"budget": "9"}), [of_epsilon("2")])


def test_models_of_persons_and_of_records_on_the_same_images_have_no_sum():
    """Of one study, whichever is trained first."""
    study, due = of_two(epsilons=["2"], release={"budget": "9"})
    check_budget(study, due)
    study["datasets"]["again"] |= {"unit": "subject"}
    with pytest.raises(StudyError, match="^release: .*: of 'again' and 'own', .* 1 of 2 models protect single records"):
        check_budget(study, due)
    del study["release"]["budget"]
    told, _ = first_spending(study, due, Spending(BOOK), lambda question: "y")
    assert "; 1 of them protect single records and bound nothing for persons; nothing was spent" in told
    for name, column in (("own", "patient"), ("again", "visit")):
        study["datasets"][name] |= {"unit": "subject", "subject_column": column}
    told, _ = first_spending(study, due, Spending(BOOK), lambda question: "y")
    assert "; 1 of them tell persons apart by 'visit', not 'patient', and bound nothing for these; nothing" in told
    study["release"] |= {"budget": "9"}
    with pytest.raises(StudyError, match="1 of 2 models tell persons apart .* the same subject_column"):
        check_budget(study, due)


def test_where_nothing_was_spent_it_is_said_and_where_it_will_be_written_down(tmp_path):
    (told,) = first_spending(study_with(**OWN), [of_epsilon("1")], Spending(BOOK), lambda question: "y")
    assert "; nothing was spent of them before. What" in told
    book = Spending(BOOK, shared=[tmp_path / "x.jsonl"])
    (told,) = first_spending(study_with(**OWN), [of_epsilon("1")], book, lambda question: "y")
    assert f"; nothing was spent of them before ({tmp_path / 'x.jsonl'}). What" in told


def test_near_a_budget_only_what_accountants_may_say_otherwise_is_let_through():
    """Of full-batch Gaussian releases the sum is exact: the second training would have refused itself."""
    study = study_with(**OWN)
    together(study, ["2", "2"], ceiling=upper_bound(epsilon_of(2**0.5 * mu_of(2, 1e-5), 1e-5)))
    with pytest.raises(StudyError, match="2 models of 'own' would bring what is spent to about ε"):
        together(study, ["2", "2"], ceiling="2.93")
    study["methods"]["ls"] |= {"tuning": {"pay": "choice"}}
    together(study, ["2", "2"], ceiling="2.93")
    del study["methods"]["ls"]["tuning"]
    book = Spending(BOOK, ceiling="2.93")
    events = [Event("x", "gaussian", 1 / mu_of(2, 1e-5), 1.0)]
    ledger = build_ledger(events, Budget("2", 1e-5), n=1000, unit="record", noise="secure")
    book.record("own", "x", [0], ledger, record_names(study, "own"))
    with pytest.raises(StudyError, match="1 model of 'own' would bring"):
        refuse_together(study, "own", [Cell("own", "pixels", "ls", "2")], book)
    assert margin(study, [], False, [ledger]) == EXACT
    ledger["events"][0] |= {"sampling": "poisson"}
    assert margin(study, [], False, [ledger]) == ENOUGH[False]


def test_what_was_begun_and_goes_on_is_not_asked_for_again():
    study = study_with(**OWN)
    book = spent(study, 1, entry=TRAIN.wildcards["entry"], training="a")
    assert first_spending(study, [of_epsilon("1")], book, pytest.fail) == []
    (told,) = first_spending(study, [of_epsilon("1", (0, 1))], book, lambda question: "y")
    assert "by 1 model (epsilon 1)" in told


def test_what_another_folder_has_begun_or_begins_again_is_asked_for(tmp_path):
    """A training of the same name in another folder is another model, and spends for itself."""
    study = study_with(**OWN)
    shared = [tmp_path / "shared.jsonl"]
    events = [Event("x", "gaussian", 1 / mu_of(1, 1e-5), 1.0)]
    ledger = build_ledger(events, Budget("1", 1e-5), n=1000, unit="record", noise="secure")
    cell = Cell("own", "pixels", TRAIN.wildcards["entry"], "1")
    elsewhere = Spending(tmp_path / "elsewhere" / "spent.jsonl", shared=shared)
    elsewhere.record("own", cell.path, [0], ledger, record_names(study, "own"), training="a")
    (told,) = first_spending(study, [of_epsilon("1")], Spending(BOOK, shared=shared), lambda question: "y")
    assert "by 1 model (epsilon 1); with epsilon 1 that was spent before" in told
    here = spent(study, 1, entry=TRAIN.wildcards["entry"], training="a")
    again = study_with(**OWN, release={"spend_again": True})
    assert len(first_spending(again, [of_epsilon("1")], here, lambda question: "y")) == 1


def test_a_folder_that_was_moved_is_told(monkeypatch):
    book, moved = Spending(BOOK), {"dataset": "own", "cell": "x", "ledger": {}, "records": "0123456789abcdef"}
    monkeypatch.setattr(book, "everywhere", lambda: [moved, moved, moved | {"dataset": "another"}])
    (told,) = first_spending(study_with(**OWN), [of_epsilon("1")], book, lambda text: "y")
    assert told.endswith(
        "; 2 trainings on another folder stand in the budget log under this name: if the records were moved or "
        "copied from there, that was spent of them too"
    )


def of_two(**changes):
    """A study with two data sets of one folder, of other deltas, and what is due of both."""
    twice = {"reader": "cifar", "location": "cifar10", "delta": "1e-4", "test_split": "private"}
    sources._record_names.clear()  # of a data_root that counts from another test's folder
    study = study_with(**OWN, datasets__again=twice, datasets__other=twice | {"location": "elsewhere"}, **changes)
    due = [of_epsilon("2")]
    for name in ("again", "other"):
        outputs = {key: path.replace("own/", f"{name}/") for key, path in due[0].outputs.items()}
        due.append(replace(due[0], wildcards={**due[0].wildcards, "dataset": name}, outputs=outputs))
    return study, due


def test_data_sets_with_the_same_records_are_added_up_and_asked_for_together():
    study, due = of_two(epsilons=["2"])
    (both, other), questions = asked(study, *due, answer="y")
    whole = epsilon_of((mu_of(2, 1e-5) ** 2 + mu_of(2, 1e-4) ** 2) ** 0.5, 1e-5)
    assert both.startswith(
        f"datasets.own: this run spends about epsilon {upper_bound(whole)} of its records at delta 1e-5, by 2 models "
        "(epsilon 2), those of 'again' among them; nothing"
    )
    assert other.startswith("datasets.other: this run spends about epsilon 2 of its") and len(questions) == 2


def test_data_sets_with_the_same_records_are_refused_together():
    study, due = of_two(epsilons=["2"], release={"budget": "2.5"})
    check_budget(study, [due[0], due[2]])
    with pytest.raises(
        StudyError, match=r"^release: \{budget: 2\.5\}: 2 models of 'again' and 'own' would bring .*ε = 3\.2\d*"
    ) as refused:
        check_budget(study, due)
    fits = re.search(r"2 fit, each with ε = (\S+),", str(refused.value))[1]
    cells = [Cell(name, "pixels", "ls", fits) for name in ("own", "again")]
    refuse_together(study, "own", cells, Spending(BOOK, ceiling="2.5"))


def test_a_budget_is_reckoned_at_the_smallest_delta_of_all():
    """What fits is told at the delta of the models."""
    study, book = study_with(**OWN, datasets__own__delta="1e-3"), Spending(BOOK, ceiling="2.3")
    events = [Event("x", "gaussian", 1 / mu_of(2, 1e-5), 1.0)]
    ledger = build_ledger(events, Budget("2", 1e-5), n=1000, unit="record", noise="secure")
    book.record("own", "x", [0], ledger, record_names(study, "own"))
    cells = [Cell("own", "pixels", "ls", "1")]
    mu = mu_of(2, 1e-5), mu_of(1, 1e-3)
    assert (
        epsilon_of(sum(one**2 for one in mu) ** 0.5, 1e-3)
        < 2
        < 2.4
        < epsilon_of(sum(one**2 for one in mu) ** 0.5, 1e-5)
    )
    with pytest.raises(StudyError, match=r"what is spent to about ε = 2\.\d* \(before 2\)") as refused:
        refuse_together(study, "own", cells, book)
    fits = re.search(r"one with ε = (\S+) fits", str(refused.value))[1]
    refuse_together(study, "own", [replace(cells[0], epsilon=fits)], book)
    (told,) = first_spending(study, [of_epsilon("1")], book, lambda question: "y")
    assert (
        "at delta 1e-5" in told and f"about {upper_bound(epsilon_of(sum(one**2 for one in mu) ** 0.5, 1e-5))}" in told
    )


def test_of_a_log_with_lines_that_match_nothing_it_is_not_said_that_nothing_was_spent(tmp_path):
    study, log = study_with(**OWN), tmp_path / "data" / "log.jsonl"
    for place in ("data/mri", "gone"):
        (tmp_path / place).mkdir(parents=True)
    events = [Event("x", "gaussian", 1 / mu_of(2, 1e-5), 1.0)]
    ledger = build_ledger(events, Budget("2", 1e-5), n=1000, unit="record", noise="secure")
    elsewhere = Spending(tmp_path / "elsewhere" / "spent.jsonl", shared=[log])
    elsewhere.record("mri", "x", [0], ledger, "r1", folders=[str(tmp_path / "data/mri")])
    (told,) = first_spending(study, [of_epsilon("1")], Spending(BOOK, shared=[log]), lambda question: "y")
    assert f"; in the budget log ({log}) is 1 training of 'mri', none on these records. What" in told
    elsewhere.record("scans", "y", [0], ledger, "r2", folders=[str(tmp_path / "gone")])
    (tmp_path / "gone").rename(tmp_path / "renamed")
    (told,) = first_spending(study, [of_epsilon("1")], Spending(BOOK, shared=[log]), lambda question: "y")
    assert "; with epsilon 2 that was spent before" in told and told.endswith(
        "; 1 training of 'scans' in the budget log, whose folder is not where it was, count since these records may "
        "have lain there: if others did, write release: {accept: [other_records]}"
    )
    accepting = Spending(BOOK, shared=[log], others=True)
    (told,) = first_spending(study, [of_epsilon("1")], accepting, lambda question: "y")
    assert f"; in the budget log ({log}) are 2 trainings of 'mri', 'scans', none on these records. What" in told


def test_a_terminal_is_asked_and_nobody_where_there_is_none():
    """In a session of its own, with a terminal of its own or without."""
    child, terminal = pty.fork()
    if not child:
        answer = ask_on_terminal("really? ")
        os.write(1, f"[{answer!r}]".encode())
        os._exit(0)
    heard = b""
    while b"really? " not in heard:
        heard += os.read(terminal, 1000)
    os.write(terminal, b"yes\n")
    while b"]" not in heard.rpartition(b"really? ")[2]:
        heard += os.read(terminal, 1000)
    os.waitpid(child, 0)
    assert b"['yes\\n']" in heard
    reading, writing = os.pipe()
    if not (child := os.fork()):
        os.setsid()
        os.write(writing, repr(ask_on_terminal("really? ")).encode())
        os._exit(0)
    os.waitpid(child, 0)
    assert os.read(reading, 100) == b"None"


def test_what_is_claimed_and_not_proved_is_said_to_be_more_perhaps():
    study = study_with(**OWN, epsilons=["1"])
    (told,), _ = asked(study, of_epsilon("1"), answer="yes")
    assert "claimed" not in told
    entry = {"method": "instance_smoothing", "epochs": 2, "batch_size": 4}
    study["methods"][TRAIN.wildcards["entry"]] |= entry
    (told,), _ = asked(study, of_epsilon("1"), answer="yes")
    assert "spends about epsilon 1 of" in told and "; of 1 it is claimed and not proved, and may be more" in told
