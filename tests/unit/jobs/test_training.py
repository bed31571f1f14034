"""Cells train on train and validation together, with the hyper-parameters that a search chose."""

import json
import logging
from dataclasses import replace

import numpy as np
import pytest

from dpstudy.cell.inputs import CellInputs
from dpstudy.config.tuned import CHOSEN_BEFOREHAND
from dpstudy.core.errors import StudyError
from dpstudy.core.files import write_tensors
from dpstudy.jobs import training
from dpstudy.jobs.rank import help_to_train
from dpstudy.methods import first_order
from dpstudy.methods.sufficient_statistics import Statistics, accumulate
from dpstudy.privacy.paid_store import PaidStore
from dpstudy.privacy.spending import Spending
from dpstudy.tuning.trials import Trial, write_trials
from tests.unit.tuning.conftest import FIRST_ORDER, LEARNING, request_of, trained, tuned, write_split

CAVEAT = (
    "The hyper-parameters were chosen by 4 trials on a validation split of the private records; that search was not "
    "paid for."
)


@pytest.fixture(scope="module")
def folders(rows, tmp_path_factory):
    """The three splits, and a train split that holds the rows of train and validation."""
    root = tmp_path_factory.mktemp("splits")
    for split, (features, labels) in rows.items():
        write_split(root, split, features, labels)
    both = [np.concatenate([rows["train"][i], rows["validation"][i]]) for i in range(2)]
    write_split(root / "both", "train", *both)
    return root


def train(request, inputs, folder):
    trained(request, inputs, folder)
    return tuple(json.loads((folder / f"{name}.json").read_text()) for name in ("metrics", "ledger"))


def of_both(root) -> CellInputs:
    return CellInputs((f"{root}/train", f"{root}/validation"), f"{root}/test")


@pytest.mark.parametrize("epsilon", ["1", "inf"])
def test_two_splits_train_as_one(folders, tmp_path, epsilon):
    request = request_of(FIRST_ORDER | {"learning_rate": 0.1}, epsilon)
    metrics, ledger = train(request, of_both(folders), tmp_path / "a")
    one = CellInputs((f"{folders}/both/train",), f"{folders}/test")
    again, ledger_of_one = train(request, one, tmp_path / "b")
    assert metrics["mean"] == pytest.approx(again["mean"], abs=1.01)
    assert ledger == ledger_of_one and ledger["n"] == 600
    assert sorted(metrics["made_by"]["data"]) == ["test", "train", "validation"]
    assert metrics["tuned_on"] == "nothing" and "tuning" not in metrics


def test_what_a_plan_presumes_stands_in_the_ledger(folders, tmp_path, monkeypatch):
    plan = first_order.plan
    monkeypatch.setattr(first_order, "plan", lambda *given: replace(plan(*given), not_accounted=("Nobody proved it.",)))
    _, ledger = train(request_of(FIRST_ORDER | {"learning_rate": 0.1}), of_both(folders), tmp_path)
    assert "Nobody proved it." in ledger["not_accounted"] and ledger["guarantee"] == "proved"


@pytest.mark.parametrize("forgotten", [0, 1])
def test_a_curve_of_too_small_an_epsilon_ends_the_training(folders, tmp_path, monkeypatch, forgotten):
    def spent(plan, step):
        return tuple(replace(event, count=step - forgotten) for event in plan.events)

    monkeypatch.setattr(first_order, "spent", spent)
    request = request_of(FIRST_ORDER | {"learning_rate": 0.1, "curve_points": 2}, "1")
    if not forgotten:
        train(request, of_both(folders), tmp_path)
        return
    with pytest.raises(RuntimeError, match="`spent` says that step 2 has made .*'gradient': 1.* drew .*'gradient': 2"):
        train(request, of_both(folders), tmp_path)
    assert not list(tmp_path.iterdir())


def test_scores_that_cannot_be_kept_end_a_training_before_it_is_paid_for(folders, tmp_path, monkeypatch):
    def broken(*args):
        raise MemoryError

    monkeypatch.setattr(training, "score_table", broken)
    book = tmp_path / "spent.jsonl"
    request = request_of(FIRST_ORDER | {"learning_rate": 0.1}, noise="secure", spent=str(book))
    with pytest.raises(MemoryError):
        train(request, of_both(folders), tmp_path / "cell")
    assert not book.exists() or book.read_text() == "", "nothing came of it, and nothing is owed"
    assert not (tmp_path / "cell").exists()


@pytest.mark.parametrize("tuned_on", ["nothing", "published grid (a paper, Table 1)"])
def test_a_choice_made_beforehand_stands_in_the_ledger(folders, tmp_path, tuned_on):
    request = request_of(FIRST_ORDER | {"learning_rate": 0.1, "tuned_on": tuned_on}, "1")
    metrics, ledger = train(request, of_both(folders), tmp_path)
    said = [sentence for sentence in ledger["not_accounted"] if "chosen beforehand" in sentence]
    assert said == ([] if tuned_on == "nothing" else [CHOSEN_BEFOREHAND.format(tuned_on)])
    assert metrics["tuned_on"] == tuned_on


def test_statistics_of_two_splits_add_up(rows, folders, tmp_path):
    whole = accumulate([rows["train"], rows["validation"]], 3, 0.5, per_class=True)
    paths = tuple(str(tmp_path / f"{split}.safetensors") for split in ("train", "validation"))
    for split, path in zip(("train", "validation"), paths, strict=True):
        accumulate([rows[split]], 3, 0.5, per_class=True).save(path)
    total = Statistics.load(paths[0]) + Statistics.load(paths[1])
    for name in ("gram", "targets", "class_grams"):
        assert np.allclose(getattr(total, name), getattr(whole, name), atol=1e-4)
    assert (total.clipping_norm, total.positives) == (0.5, 1)
    request = request_of({"method": "least_squares", "variant": "published", "clipping_norm": 0.5})
    metrics, ledger = train(request, replace(of_both(folders), statistics=paths), tmp_path / "two")
    whole.save(tmp_path / "whole.safetensors")
    one = replace(of_both(folders), statistics=(str(tmp_path / "whole.safetensors"),))
    again, _ = train(request, one, tmp_path / "one")
    assert ledger["n"] == 600
    assert metrics["mean"] == pytest.approx(again["mean"], abs=2.01)


@pytest.mark.parametrize("other", [{"norm": 1.0}, {"positives": 2}, {"per_class": False}, {"classes": 4}])
def test_statistics_that_differ_do_not_add_up(rows, other):
    features, labels = rows["train"]
    kind = {"classes": 3, "norm": 0.5, "positives": 1, "per_class": True}
    one, two = (
        accumulate([(features, labels)], k["classes"], k["norm"], k["positives"], k["per_class"])
        for k in (kind, kind | other)
    )
    with pytest.raises(ValueError, match="do not add up"):
        one + two


def test_splits_of_different_layouts_are_refused(rows, folders, tmp_path):
    features, labels = rows["validation"]
    write_split(tmp_path, "validation", features[:, :4], labels)
    inputs = CellInputs((f"{folders}/train", f"{tmp_path}/validation"), f"{folders}/test")
    with pytest.raises(StudyError, match=r"validation/manifest.json: its shape is \[4\], that of .*train \[6\]"):
        train(request_of(FIRST_ORDER | {"learning_rate": 0.1}), inputs, tmp_path)


def test_a_cell_takes_the_best_trial_and_says_what_it_cost(folders, tmp_path):
    request = request_of(tuned(FIRST_ORDER))
    trials = [
        Trial({"learning_rate": 1e-9, "loss": "sigmoid"}, 30.0, 0.1),
        Trial({"learning_rate": 0.1, "loss": "softmax"}, 80.0, 0.1),
        Trial({"learning_rate": 0.2, "loss": "softmax"}, 80.0, 0.1),
        Trial({"learning_rate": 1e9, "loss": "softmax"}, 0.0, 0.1, "diverged"),
    ]
    write_trials(tmp_path / "trials.parquet", trials, LEARNING)
    inputs = replace(of_both(folders), trials=str(tmp_path / "trials.parquet"))
    metrics, ledger = train(request, inputs, tmp_path / "tuned")
    assert metrics["tuning"] == {"trials": 4, "failed": 1, "value": 80.0}
    assert metrics["tuned_on"] == "validation"
    assert metrics["hyperparameters"]["learning_rate"] == 0.1 and metrics["hyperparameters"]["loss"] == "softmax"
    assert ledger["not_accounted"][0] == CAVEAT
    fixed, its_ledger = train(
        request_of(FIRST_ORDER | {"learning_rate": 0.1, "loss": "softmax"}), of_both(folders), tmp_path / "fixed"
    )
    assert fixed["mean"] == metrics["mean"]
    assert CAVEAT not in its_ledger["not_accounted"]
    assert ledger["epsilon"] == its_ledger["epsilon"] and ledger["guarantee"] == "proved"
    request = request_of(tuned(FIRST_ORDER | {"tuned_on": "published"}))  # what the search does not look for
    metrics, ledger = train(request, inputs, tmp_path / "both")
    assert metrics["tuned_on"] == "published; the rest on validation"
    assert ledger["not_accounted"][:2] == [CAVEAT, CHOSEN_BEFOREHAND.format("published")]


def test_a_training_that_may_not_be_kept_leaves_nothing(folders, tmp_path, monkeypatch, caplog):
    """Another job has spent the rest meanwhile: no model, no checkpoint, which is one too, and no score in the log."""
    options, book = FIRST_ORDER | {"learning_rate": 0.1}, tmp_path / "spent.jsonl"
    _, ledger = train(request_of(options), of_both(folders), tmp_path / "other")

    def keep(request, *_):
        write_checkpoint("lost")
        Spending(book).record("toy", "toy/pixels/other/eps=1", 0, ledger)

    monkeypatch.setattr(training, "keeper_of", keep)
    request = request_of(options, noise="secure", spent=str(book), ceiling="1.2", checkpoint="unused")
    store = PaidStore(tmp_path / "paid")
    checkpoint = store.checkpoint(request.cell.path, [0])

    data = of_both(folders).hashes()

    def write_checkpoint(name, data=data):
        made_by = {"config": request.fingerprint, "library": request.library, "data": data, "seed": 0}
        told = {"training": name, "made_by": json.dumps(made_by)}
        write_tensors(checkpoint, {"weights": np.zeros(1)}, told)

    with caplog.at_level(logging.INFO, "dpstudy"), pytest.raises(StudyError, match="beyond release"):
        train(request, of_both(folders), tmp_path / "kept")
    assert not list((tmp_path / "kept").glob("*")) and not store.trainings(request.cell.path, [0])
    with pytest.raises(StudyError, match="beyond release"):  # killed before it was written down, and no budget is left
        train(request, of_both(folders), tmp_path / "kept")
    assert not checkpoint.exists()
    checkpoint.write_bytes(b"weights")
    with pytest.raises(StudyError, match="beyond release"):
        train(request, of_both(folders), tmp_path / "kept")
    assert not checkpoint.exists()
    write_checkpoint("booked", data={})
    kept = book.read_text()
    Spending(book).record("toy", request.cell.path, 0, ledger, training="booked")
    with pytest.raises(StudyError, match="what it learned from"):
        train(request, of_both(folders), tmp_path / "kept")
    assert checkpoint.exists(), "what it holds has been spent"
    book.write_text("damaged\n" + kept)  # which says nothing about the training
    with pytest.raises(StudyError, match="line 1 is damaged"):
        train(request, of_both(folders), tmp_path / "kept")
    assert checkpoint.exists()
    assert "trained in" in caplog.text and "top1" not in caplog.text


def test_processes_that_share_a_training_train_with_what_the_search_chose(folders, tmp_path, monkeypatch):
    """A helper at another rate would add gradients of another model, and nobody would see."""
    write_trials(tmp_path / "trials.parquet", [Trial({"learning_rate": 0.1, "loss": "softmax"}, 80.0, 0.1)], LEARNING)
    inputs = replace(of_both(folders), trials=str(tmp_path / "trials.parquet"))
    request, asked = request_of(tuned(FIRST_ORDER)), []

    def fit(data, parameters, *_, **__):
        asked.append((parameters.learning_rate, parameters.loss))

    monkeypatch.setattr(first_order, "fit", fit)
    help_to_train(request, inputs)
    assert asked == [(0.1, "softmax")]


@pytest.mark.parametrize("chosen", ["poisson", "shuffle"])
def test_a_search_may_choose_what_certifies_more_than_its_target(folders, tmp_path, chosen, monkeypatch):
    """Whether a target may be missed is asked of what was chosen, not of what the config leaves open."""
    space = {"sampling": {"choices": ["poisson", "shuffle"]}}
    options = {"method": "first_order", "clipping_norm": 1.0, "learning_rate": 0.1, "batch_size": 60, "epochs": 1}
    write_trials(tmp_path / "trials.parquet", [Trial({"sampling": chosen}, 80.0, 0.1)], space)
    inputs = replace(of_both(folders), trials=str(tmp_path / "trials.parquet"))
    _, ledger = train(request_of(tuned(options, space)), inputs, tmp_path / "tuned")
    assert (ledger["epsilon"] > 1) == (chosen == "shuffle")
    plan = first_order.plan
    monkeypatch.setattr(first_order, "plan", lambda *args: _louder(plan(*args)))
    if chosen == "poisson":
        with pytest.raises(StudyError, match="is certified for epsilon .* beyond the target 1; calibrate"):
            train(request_of(tuned(options, space)), inputs, tmp_path / "louder")


def _louder(plan):
    return replace(plan, events=tuple(event.scaled(0.5) for event in plan.events))


def test_a_search_at_infinite_epsilon_is_named_too(folders, tmp_path):
    trials = [Trial({"learning_rate": 0.1, "loss": "softmax"}, 80.0, 0.1)] * 4
    write_trials(tmp_path / "trials.parquet", trials, LEARNING)
    inputs = replace(of_both(folders), trials=str(tmp_path / "trials.parquet"))
    _, ledger = train(request_of(tuned(FIRST_ORDER), "inf"), inputs, tmp_path / "tuned")
    assert CAVEAT in ledger["not_accounted"] and ledger["guarantee"] == "none"


def test_seeds_are_trained_anew_only_where_they_can_differ(folders, tmp_path, monkeypatch):
    """Full batches without noise give every seed the same: trained once. Sampled batches, or noise, do not."""
    import pyarrow.parquet as parquet

    from dpstudy.methods import first_order

    trained, fit = [], first_order.fit
    monkeypatch.setattr(first_order, "fit", lambda *args, **kw: trained.append(args[4].key[-1]) or fit(*args, **kw))
    full = FIRST_ORDER | {"learning_rate": 0.1}
    for name, options, epsilon, count in (
        ("full", full, "inf", 1),
        ("sampled", full | {"batch_size": 50}, "inf", 3),
        ("noised", full, "1", 3),
    ):
        trained.clear()
        request = request_of(options, epsilon, seeds=[4, 5, 6])
        metrics, _ = train(request, of_both(folders), tmp_path / name)
        assert len(trained) == count, name
        assert [row["seed"] for row in metrics["seeds"]] == [4, 5, 6]
        curve = parquet.read_table(tmp_path / name / "curve.parquet").to_pydict()
        assert [curve["seed"].count(seed) for seed in (4, 5, 6)] == [10, 10, 10]  # two metrics at five steps
        same = len({tuple(curve["value"][place : place + 10]) for place in (0, 10, 20)}) == 1
        assert same == (count == 1), name
