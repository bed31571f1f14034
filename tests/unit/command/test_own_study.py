"""What is looked at before a study of somebody's own images runs."""

import pytest

from dpstudy.cell.paid_models import Due
from dpstudy.command import own_study
from dpstudy.command.own_study import together_mu
from dpstudy.config.cells import Cell
from dpstudy.core.errors import StudyError
from dpstudy.privacy.budget import Budget
from dpstudy.privacy.events import Event
from dpstudy.privacy.gaussian import epsilon_of, mu_of
from dpstudy.privacy.ledger import build_ledger
from dpstudy.privacy.paid_store import PaidStore, name_of
from dpstudy.privacy.printed import upper_bound
from dpstudy.privacy.spending import BOOK, Spending

CELL = "own/pixels/least-squares/eps=1"


@pytest.fixture
def study(monkeypatch, tmp_path):
    """A config with secure noise, and a book beside its data."""
    config = {"noise": "secure", "release": {}, "datasets": {"own": {"delta": "1e-5", "unit": "record"}}}
    monkeypatch.setattr(own_study, "read_study", lambda _path: config)
    monkeypatch.setattr(own_study, "unfold", lambda _study: [Cell("own", "pixels", "least-squares", "1")])
    monkeypatch.setattr(own_study, "records_of", lambda _study, _name: "these")
    monkeypatch.setattr(own_study, "books_of", lambda _study, _names: [tmp_path / "book.jsonl"])
    return config


def trained(tmp_path, folder, cell=CELL, records="these", **more):
    events = [Event("sum", "gaussian", 5.0, 1.0)]
    ledger = build_ledger(events, Budget("1", 1e-5), n=1000, unit="record", noise="secure")
    path = tmp_path / folder / BOOK
    path.parent.mkdir(parents=True, exist_ok=True)
    book = Spending(path, shared=[tmp_path / "book.jsonl"])
    book.record("own", cell, [0], ledger, records, files={"model.safetensors": "0" * 64}, **more)


def test_a_cell_that_another_folder_paid_for_is_not_trained_to_be_released(study, tmp_path):
    own_study.check_paid_here("mine.yaml", CELL, tmp_path / "second")  # nobody has: it is trained, as it says
    trained(tmp_path, "first")
    own_study.check_paid_here("mine.yaml", CELL, tmp_path / "first")
    with pytest.raises(StudyError, match=f"{CELL}: no model of it was trained in .*second, and one was in another"):
        own_study.check_paid_here("mine.yaml", CELL, tmp_path / "second")
    study["release"]["spend_again"] = True
    own_study.check_paid_here("mine.yaml", CELL, tmp_path / "second")


def test_a_cell_of_a_folder_that_has_lost_its_budget_log_alone_is_released(study, tmp_path):
    trained(tmp_path, "first")
    (tmp_path / "first" / BOOK).unlink()
    with pytest.raises(StudyError, match="one was in another"):
        own_study.check_paid_here("mine.yaml", CELL, tmp_path / "first")
    store = PaidStore((tmp_path / "first" / BOOK).with_name("paid"))
    (store.place(CELL, [0]) / name_of({"model.safetensors": "0" * 64})).mkdir(parents=True)
    own_study.check_paid_here("mine.yaml", CELL, tmp_path / "first")


@pytest.mark.parametrize("other", [{"cell": "own/pixels/default/eps=1"}, {"records": "those"}])
def test_other_cells_and_other_records_do_not_matter(study, tmp_path, other):
    trained(tmp_path, "first", **other)
    own_study.check_paid_here("mine.yaml", CELL, tmp_path / "second")


def test_of_a_cell_that_the_study_has_not_the_run_says_what_there_is(study, tmp_path):
    other = CELL.replace("eps=1", "eps=3")
    trained(tmp_path, "first", cell=other)
    own_study.check_paid_here("mine.yaml", other, tmp_path / "second")


def test_seeded_noise_costs_nothing_to_draw_again(study, tmp_path):
    trained(tmp_path, "first")
    study["noise"] = "seeded"
    own_study.check_paid_here("mine.yaml", CELL, tmp_path / "second")


def test_a_budget_that_the_models_would_exceed_is_told_before_a_run(study, tmp_path, monkeypatch):
    two = [Cell("own", "pixels", "least-squares", "2"), Cell("own", "pixels", "default", "inf")]
    assert together_mu(study | {"seeds": [0, 1]}, two[:1]) == pytest.approx(2**0.5 * mu_of(2, 1e-5))
    study |= {"seeds": [0], "methods": {}}
    monkeypatch.setattr(own_study, "unfold", lambda _study: two[:1])
    monkeypatch.setattr(own_study, "is_sampled", lambda _options: False)
    monkeypatch.setattr(Cell, "options", lambda _cell, _study: {})
    trained(tmp_path, "first")
    (told,) = own_study.beside_the_book(study, "own")
    assert told.startswith("of own ε = ") and "stands in the budget log already" in told
    for budget, fits in (("1.5", "refuses"), ("3", "allows")):
        study["release"]["budget"] = budget
        *_, last = own_study.beside_the_book(study, "own")
        assert last.endswith(f", which a run {fits}"), last
    assert not list(own_study.beside_the_book(study | {"noise": "seeded"}, "own"))
    study["datasets"]["own"]["unit"] = "subject"
    first, last = own_study.beside_the_book(study, "own")
    assert first.startswith("of own: trainings before it protect single records and bound nothing for persons")
    assert last == "what it would be with the models of own nobody can tell, which a run refuses"


@pytest.fixture
def planned(study, monkeypatch):
    """A function: the last sentence of the plan of some epsilons of least squares, for a budget."""
    study |= {"seeds": [0], "methods": {}}
    sampled = []
    monkeypatch.setattr(own_study, "is_sampled", lambda _options: bool(sampled))
    monkeypatch.setattr(Cell, "options", lambda _cell, _study: {})

    def last(budget, *epsilons, samples=False):
        sampled[:] = [True] * samples
        cells = [Cell("own", "pixels", "least-squares", epsilon) for epsilon in epsilons]
        monkeypatch.setattr(own_study, "unfold", lambda _study: cells)
        study["release"]["budget"] = budget
        return list(own_study.beside_the_book(study, "own"))[-1]

    return last


def test_a_plan_allows_what_a_training_will_not_refuse(planned):
    """Full-batch Gaussian releases add up exactly; of samples accountants say a fifth more, or less."""
    assert planned("2", "2").endswith("would be about 2, which a run allows")
    assert planned("1.99", "2").endswith("which a run refuses")
    for budget, fits in (("1.5", "refuses"), ("1.9", "may refuse"), ("2.4", "may refuse"), ("2.6", "allows")):
        assert planned(budget, "2", samples=True).endswith(f"would be about 2, which a run {fits}"), budget


def test_a_plan_does_not_count_twice_what_the_study_has_trained(planned, tmp_path, monkeypatch):
    due = {epsilon: Due(f"own/pixels/least-squares/eps={epsilon}", [0], "", {}, f"c{epsilon}") for epsilon in "12"}
    monkeypatch.setattr(own_study, "trainings", lambda _study, cell: [due[cell.epsilon]])
    trained(tmp_path, "first", config="c1")
    assert planned("2.3", "1") == (
        "these models stand there already: in the folder where they were trained nothing more is spent"
    )
    whole = upper_bound(epsilon_of((1 / 5**2 + mu_of(2, 1e-5) ** 2) ** 0.5, 1e-5))
    assert planned("2.3", "1", "2") == (
        f"with these models, but for 1 that stand there already, it would be about {whole}, which a run allows"
    )
    due["1"] = Due(CELL, [0], "", {}, "other settings")
    assert planned("2.3", "1", "2").endswith("which a run refuses")


def test_a_log_that_cannot_be_written_is_told_before_a_run(study, tmp_path, monkeypatch):
    """Whatever the budget is: a run refuses to spend what it cannot write down."""
    study |= {"seeds": [0], "methods": {}, "release": {"budget": "30"}}
    monkeypatch.setattr("os.access", lambda _path, _mode: False)
    _, last = own_study.beside_the_book(study, "own")
    assert last.startswith(f"a run refuses: {tmp_path / 'book.jsonl'}: cannot be written, and what secure noise spends")


def test_a_plan_adds_up_data_sets_with_the_same_records(study, tmp_path, monkeypatch):
    """Their models, one of each, are within the budget alone."""
    two = [Cell(name, "pixels", "least-squares", "2") for name in ("own", "again", "other")]
    study |= {"seeds": [0], "methods": {}, "release": {"budget": "2.5"}}
    study["datasets"] |= {"again": {"delta": "1e-6", "unit": "record"}, "other": {"delta": "1e-5", "unit": "record"}}
    names = {"own": "these", "again": "these", "other": "those"}
    monkeypatch.setattr(own_study, "records_of", lambda _study, name: names[name])
    monkeypatch.setattr(own_study, "unfold", lambda _study: two)
    monkeypatch.setattr(own_study, "is_sampled", lambda _options: False)
    monkeypatch.setattr(Cell, "options", lambda _cell, _study: {})
    whole = epsilon_of((mu_of(2, 1e-5) ** 2 + mu_of(2, 1e-6) ** 2) ** 0.5, 1e-6)
    *_, last = own_study.beside_the_book(study, "own")
    assert last == f"with these models and those of again it would be about {upper_bound(whole)}, which a run refuses"
    *_, last = own_study.beside_the_book(study, "other")
    assert last == "with these models it would be about 2, which a run allows"


def test_a_plan_says_what_else_stands_in_the_log(study, tmp_path):
    trained(tmp_path, "first", records="those")
    (told,) = own_study.beside_the_book(study, "own")
    assert told.startswith("of own ε = 0 stands in the budget log already, beside 1 training of 'own' on other records")
