"""Calibration: what a record adds is bounded as the ledger says, and what comes of it are probabilities."""

import math

import numpy as np
import pytest

from dpstudy import fit, methods
from dpstudy.core.errors import StudyError
from dpstudy.evaluation.metrics import metric_of
from dpstudy.methods import calibrated as module
from dpstudy.methods import first_order, least_squares
from dpstudy.methods.calibrated import ASKED, SCALE, Calibrated, calibrate_scores, check_enough, contributions, releases
from dpstudy.methods.labels import one_hot
from dpstudy.methods.problem import Plan, Problem, check_plan
from dpstudy.models.linear import LinearModel
from dpstudy.models.probabilities import calibration_of
from dpstudy.privacy.accounting import certify
from dpstudy.privacy.budget import Budget
from dpstudy.privacy.gaussian import composed_mu, mu_of
from dpstudy.privacy.noise import NoiseSource

NO_NOISE = Plan((), {}, {})


def problem_of(classes=4, n=2000, epsilon="1", **more):
    return Problem(n, (classes,), classes, Budget(epsilon, 1e-5), **more)


def drawn(problem, n, seed=0):
    """Scores of every size, and labels."""
    random = np.random.default_rng(seed)
    scores = random.standard_normal((n, problem.classes)) * 10.0 ** random.uniform(-3, 3, (n, 1))
    if problem.exclusive:
        return scores.astype(np.float32), random.integers(problem.classes, size=n)
    labels = np.zeros((n, problem.classes), np.int64)
    for row in labels:
        row[random.permutation(problem.classes)[: random.integers(problem.positives + 1)]] = 1
    return scores.astype(np.float32), labels


def sensitivity(problem, name):
    (event,) = (event for event in releases(problem, 1.0) if event.name == name)
    return event.sensitivity


@pytest.mark.parametrize(
    ("classes", "positives", "several"), [(2, 1, None), (10, 1, None), (1, 1, True), (14, 3, True), (6, 6, True)]
)
def test_no_record_adds_more_than_is_accounted_and_some_add_nearly_that(classes, positives, several):
    problem = problem_of(classes, positives=positives, several=several)
    random, longest = np.random.default_rng(1), 0.0
    for trial in range(60):
        scores, labels = drawn(problem, 300, trial)
        shares = np.clip(random.dirichlet(np.ones(max(2, classes)))[:classes], 1e-3, 1 - 1e-3)
        found = contributions(
            scores, labels, 10.0 ** random.uniform(-2, 2), random.normal(size=classes), shares, problem
        )
        assert found.shape == (300, classes + 1)
        longest = max(longest, np.linalg.norm(found, axis=1).max())
    assert 0.8 * sensitivity(problem, ASKED) < longest <= sensitivity(problem, ASKED)


def test_a_person_adds_as_often_as_it_has_records():
    one, five = problem_of(), problem_of(unit_records=5)
    for name in (SCALE, ASKED):
        assert sensitivity(five, name) == 5 * sensitivity(one, name)
    assert sensitivity(one, SCALE) == 1, "one bin for each"


@pytest.mark.parametrize("exclusive", [True, False])
def test_a_record_is_in_one_bin(exclusive):
    scores = drawn(problem_of(), 500)[0]
    counts = module.count_sizes(scores, exclusive)
    assert counts.sum() == 500 and (counts >= 0).all()
    one_less = counts - module.count_sizes(np.delete(scores, 7, 0), exclusive)
    assert sorted(one_less) == [0] * (len(counts) - 1) + [1]
    doubled = module.count_sizes(2 * scores, exclusive)
    np.testing.assert_array_equal(doubled[1:], counts[:-1])


def test_contributions_are_those_of_a_record_alone_and_sums_have_no_rounding():
    problem = problem_of(several=True, positives=2)
    scores, labels = drawn(problem, 400)
    told = 1.7, np.array([0.1, -2.0, 0.3, 0.0]), np.full(4, 0.2), problem
    whole = contributions(scores, labels, *told)
    alone = np.concatenate([contributions(scores[i : i + 1], labels[i : i + 1], *told) for i in range(400)])
    np.testing.assert_array_equal(whole, alone)
    mixed = np.random.default_rng(2).permutation(400)
    np.testing.assert_array_equal(whole.sum(0), whole[mixed].sum(0))


def test_what_is_added_is_the_gradient_of_the_log_loss_and_how_bold_it_is():
    """By an independent slow computation, of one label and of several."""
    for problem in (problem_of(), problem_of(several=True, positives=4)):
        scores, labels = (part[:50] for part in drawn(problem, 50))
        scores, offsets, shares = scores / 1000, np.array([0.5, 0.0, -1.0, 0.2]), np.array([0.1, 0.2, 0.3, 0.4])
        found = contributions(scores, labels, 2.0, offsets, shares, problem)
        for score, label, own in zip(scores.astype(float), one_hot(labels, 4, 4), found, strict=True):
            logits = [2.0 * s + o for s, o in zip(score, offsets, strict=True)]
            if problem.exclusive:
                p = [math.exp(v) / sum(map(math.exp, logits)) for v in logits]
                bold = max(p) - label[int(np.argmax(p))]
            else:
                p = [1 / (1 + math.exp(-v)) for v in logits]
                away = [min(1, max(-1, 8 * (v - math.log(s / (1 - s))))) for v, s in zip(logits, shares, strict=True)]
                bold = sum((q - y) * a for q, y, a in zip(p, label, away, strict=True)) / 2
            assert own == pytest.approx([*(q - y for q, y in zip(p, label, strict=True)), bold], abs=2e-6)


@pytest.mark.parametrize("share", [0.02, 0.3])
def test_together_they_spend_the_budget_and_the_share_of_it_is_as_asked(share):
    problem = problem_of(n=50_000)
    whole = Calibrated(least_squares, share, lambda: [])
    plan = whole.plan(least_squares.Parameters(), problem)
    check_plan(plan, problem, "least_squares")
    own = [event for event in plan.events if event.name in (SCALE, ASKED)]
    mu = mu_of(1.0, 1e-5)
    assert composed_mu(plan.events) == pytest.approx(mu, rel=1e-6)
    assert composed_mu(own) ** 2 == pytest.approx(share * mu**2, rel=1e-3)
    assert {event.name: event.count for event in own} == {SCALE: 1, ASKED: 5}
    assert {name: plan.noise[name] for name in (SCALE, ASKED)} == {event.name: event.deviation for event in own}


def test_beside_sampled_batches_the_budget_is_kept_and_used():
    problem = problem_of(n=20_000)
    parameters = first_order.Parameters(learning_rate=1.0, clipping_norm=1.0, steps=50, batch_size=500)
    whole = Calibrated(first_order, 0.02, lambda: [])
    plan = whole.plan(parameters, problem)
    assert 0.99 < certify(plan.events, 1e-5).epsilon <= 1.0
    (spent,) = whole.spent(plan, 10)
    assert (spent.name, spent.count) == ("gradient", 10)


def test_without_noise_nothing_is_released_and_all_is_calibrated():
    problem = problem_of(epsilon="inf", sanitise="none")
    assert Calibrated(least_squares, 0.02, lambda: []).plan(least_squares.Parameters(), problem).events == ()


@pytest.mark.parametrize("slope", [0.01, 1.0, 30.0])
def test_log_odds_are_found_again_without_noise(slope):
    random, problem = np.random.default_rng(3), problem_of(3, n=20_000)
    logits = random.normal(0, 1.5, (20_000, 3)) + [0.7, 0.0, -0.7]
    labels = (logits + random.gumbel(size=logits.shape)).argmax(1)
    scores = (logits - [1.0, 0.0, 0.3]) / slope
    found, offsets, shares, _ = calibrate_scores(
        (scores.astype(np.float32), labels), problem, NO_NOISE, NoiseSource("seeded")
    )
    assert found == pytest.approx(slope, rel=0.25)
    assert shares == pytest.approx(np.bincount(labels) / 20_000, abs=1e-4)
    assert offsets - offsets.mean() == pytest.approx(np.array([0.567, -0.433, -0.133]), abs=0.3)


def test_of_several_labels_too():
    random, problem = np.random.default_rng(4), problem_of(3, n=40_000, several=True, positives=3)
    logits = random.normal(0, 1.5, (40_000, 3)) + [-3.0, 0.0, -1.0]
    labels = (random.random(logits.shape) < 1 / (1 + np.exp(-logits))).astype(np.int64)
    slope, offsets, shares, _ = calibrate_scores(
        ((logits / 5).astype(np.float32), labels), problem, NO_NOISE, NoiseSource("seeded")
    )
    p = 1 / (1 + np.exp(-(slope * logits / 5 + offsets)))
    assert shares == pytest.approx(labels.mean(0), abs=1e-4)
    assert slope == pytest.approx(5, rel=0.2) and p.mean(0) == pytest.approx(labels.mean(0), abs=0.03)


@pytest.fixture(scope="module")
def overlapping():
    """5,000 records of four classes that features tell apart not quite, and as many for a test."""
    random = np.random.default_rng(5)
    means = random.normal(size=(4, 20)) * 0.8
    labels = random.choice(4, 10_000, p=[0.5, 0.25, 0.15, 0.1])
    features = (means[labels] + random.normal(size=(10_000, 20))).astype(np.float32)
    features /= np.linalg.norm(features, axis=1, keepdims=True)
    return (features[:5000], labels[:5000]), (features[5000:], labels[5000:])


@pytest.mark.parametrize("noise", ["seeded", "secure"])
@pytest.mark.parametrize("name", ["least_squares", "feature_covariance", "kernel_mean"])
def test_probabilities_are_right_as_often_as_they_say(overlapping, name, noise):
    (features, labels), test = overlapping
    error = metric_of("ece")
    given = {"classes": 4, "epsilon": 2.0, "delta": 1e-5, "noise": noise}
    if noise == "secure":
        features, labels = features[:3000], labels[:3000]
    raw, found = (fit(name, features, labels, **given, **more) for more in ({}, {"calibration": 0.02}))
    classes = [str(number) for number in range(4)]
    before, after = (error.value(result.model.scores(test[0]), test[1], classes) for result in (raw, found))
    assert after < 10 and after <= before + 2
    assert found.ledger["epsilon"] <= 2 and found.ledger["epsilon"] == pytest.approx(2, rel=1e-4)
    assert [(e["name"], e["count"]) for e in found.ledger["events"][-2:]] == [(SCALE, 1), (ASKED, 5)]


def test_of_few_units_it_is_refused_with_what_would_do():
    problem = problem_of(n=300)
    with pytest.raises(StudyError, match=r"calibration 0\.02: with 300 units at epsilon 1 .* a share of 0\.14 would"):
        check_enough(problem, 0.02)
    check_enough(problem, 0.14)
    with pytest.raises(StudyError, match=r"it takes 792 units; leave it out"):
        check_enough(problem_of(n=30), 0.02)
    check_enough(problem_of(n=810), 0.02)


def test_records_without_a_finite_score_take_no_part():
    problem = problem_of(2, epsilon="inf", sanitise="none")
    features, labels = np.array([[1.0], [np.nan], [2.0]], np.float32), np.array([0, 1, 1])
    model = LinearModel(np.ones((2, 1), np.float32), np.zeros(2, np.float32))
    whole = Calibrated(least_squares, 0.02, lambda: [(features, labels)])
    scores, told, _ = whole._scored(model, problem)
    assert scores.shape == (2, 2) and told.tolist() == [0, 1]


def test_a_model_without_metadata_is_refused():
    class Odd:
        def scores(self, features):
            return np.ones((len(features), 2), np.float32)

    with pytest.raises(StudyError, match="a model of type Odd keeps no metadata"):
        module.calibrated(Odd(), 1.0, np.zeros(2), np.full(2, 0.5), 0.0)


def test_noise_is_fresh_for_every_query_and_as_large_as_planned(monkeypatch):
    problem = problem_of(n=5000)
    plan = Plan(events := releases(problem, 0.5), {event.name: event.deviation for event in events})
    source, empty = NoiseSource("seeded", "a"), (np.empty((0, 4), np.float32), np.empty(0, np.int64))
    told, release = [], module.released
    monkeypatch.setattr(module, "released", lambda *given: told.append(release(*given)) or told[-1])
    for seed in range(200):
        calibrate_scores(empty, problem, plan, NoiseSource("seeded", seed))
    queries = np.array([one for one in told if one.shape == (5,)])
    assert queries.std() == pytest.approx(plan.noise[ASKED], rel=0.03)
    assert len(np.unique(queries)) == queries.size
    sizes = np.array([one for one in told if one.shape != (5,)])
    assert sizes.std() == pytest.approx(plan.noise[SCALE], rel=0.03)
    calibrate_scores(empty, problem, plan, source)
    assert dict(source.drawn) == {SCALE: 1, ASKED: 5}


@pytest.mark.parametrize("several", [None, True])
def test_what_comes_of_it_is_made_of_releases_alone(monkeypatch, several):
    """Of other records, more of them and other scores, the same releases give the same."""
    problem = problem_of(n=500, several=several, positives=2 if several else 1)
    plan = Plan(events := releases(problem, 5.0), {event.name: event.deviation for event in events})
    kept = {}

    def release(name, total, std, source, step=0):
        return kept.setdefault((name, step), total + np.random.default_rng(step).normal(0, std, total.shape))

    monkeypatch.setattr(module, "released", release)
    first = calibrate_scores(drawn(problem, 500), problem, plan, NoiseSource("seeded"))
    assert len(kept) == 6
    for seed, count in ((1, 500), (2, 300), (3, 900)):
        scores, labels = drawn(problem, count, seed)
        again = calibrate_scores((100 * scores, labels), problem, plan, NoiseSource("seeded"))
        for one, other in zip(first, again, strict=True):
            np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("several", [None, True])
@pytest.mark.parametrize("left", [1.0, 0.6])
def test_shares_are_of_the_records_that_there_are_and_not_of_the_public_number(several, left):
    problem = problem_of(n=20_000, epsilon="8", several=several)
    random, count = np.random.default_rng(6), int(20_000 * left)
    plan = Plan(events := releases(problem, 1.0), {event.name: event.deviation for event in events})
    likely = np.array([0.6, 0.25, 0.1, 0.05])
    if several:
        labels = np.zeros((count, 4), np.int64)
        labels[np.arange(count), random.choice(4, count, p=likely)] = 1
    else:
        labels = random.choice(4, count, p=likely)
    scores = random.normal(size=(count, 4)).astype(np.float32)
    *_, shares, noise = calibrate_scores((scores, labels), problem, plan, NoiseSource("seeded"))
    assert shares == pytest.approx(likely, abs=0.01 + 4 * noise) and noise < 0.005


def test_persons_with_more_records_need_more_of_them():
    assert module.needed_share(problem_of(unit_records=3)) == pytest.approx(9 * module.needed_share(problem_of()))
    labels = module.needed_share(problem_of(14, several=True, positives=5))
    assert labels == pytest.approx(4 * module.needed_share(problem_of(14)))
    assert module.share_of(problem_of(n=100), "auto") == 0 and module.share_of(problem_of(n=10**6), "auto") == 0.02


def test_auto_leaves_scores_as_they_are_where_units_are_too_few():
    features, labels = np.eye(4, dtype=np.float32)[np.arange(80) % 4], np.arange(80) % 4
    given = {"classes": 4, "epsilon": 1, "delta": 1e-3}
    plain, found = (fit("least_squares", features, labels, **given, **more) for more in ({}, {"calibration": "auto"}))
    assert "calibration_slope" not in found.model.metadata and len(found.ledger["events"]) == 2
    assert not np.array_equal(plain.model.weights, found.model.weights), "noise of its own"


def test_two_shares_have_noise_of_their_own():
    """The same noise, scaled, would tell the sums apart from it."""
    features, labels = np.eye(4, dtype=np.float32)[np.arange(4000) % 4], np.arange(4000) % 4
    one, other = (
        fit("least_squares", features, labels, classes=4, epsilon=8, delta=1e-5, calibration=share).model.weights
        for share in (0.02, 0.0200001)
    )
    assert np.abs(one - other).max() > 1e-3


def test_noise_that_is_given_is_not_topped_up():
    problem = problem_of(n=20_000)
    for batch in ("full", 500):
        parameters = first_order.Parameters(
            learning_rate=1.0, clipping_norm=1.0, steps=10, batch_size=batch, noise_multiplier=100.0
        )
        plan = Calibrated(first_order, 0.02, lambda: []).plan(parameters, problem)
        own = [event for event in plan.events if event.name in (SCALE, ASKED)]
        assert composed_mu(own) <= 1.26 * math.sqrt(0.02) * mu_of(1.0, 1e-5)


def test_a_mechanism_that_is_no_gaussian_one_and_a_papers_conversion_are_planned():
    problem = problem_of(n=2000)
    parameters = methods.load("iterated_sgd").Parameters(
        learning_rate=0.1, clipping_norm=1.0, epochs=3, batch_size=200, order="secret"
    )
    plan = Calibrated(methods.load("iterated_sgd"), 0.02, lambda: []).plan(parameters, problem)
    assert 0.9 < certify(plan.events, 1e-5).epsilon <= 1.0
    papers = Problem(2000, (4,), 4, Budget("1", 1e-5, "mehta2023"))
    plan = Calibrated(least_squares, 0.02, lambda: []).plan(least_squares.Parameters(), papers)
    own = [event for event in plan.events if event.name in (SCALE, ASKED)]
    assert composed_mu(own) == pytest.approx(math.sqrt(0.02) * mu_of(1.0, 1e-5))


class Crowded:
    """A model whose scores are those of whoever stands beside a record, too."""

    metadata: dict = {}

    def scores(self, features):
        return np.repeat(features.sum() + features[:, :1], 2, 1).astype(np.float32)


def test_exact_sums_are_of_scores_that_a_record_has_alone():
    features, labels = np.arange(6.0).reshape(6, 1), np.zeros(6, np.int64)
    whole = Calibrated(least_squares, 0.02, lambda: [(features, labels)])
    alone, *_ = whole._scored(Crowded(), problem_of(2, secure=True))
    np.testing.assert_array_equal(alone[:, 0], 2 * features[:, 0])
    together, *_ = whole._scored(Crowded(), problem_of(2))
    assert together[0, 0] == 15


def test_records_raise_no_warning(recwarn):
    features = np.array([[np.inf, -np.inf], [3e38, 3e38], [1, 1]], np.float32)
    model = LinearModel(np.full((2, 2), 3e38, np.float32), np.zeros(2, np.float32))
    whole = Calibrated(least_squares, 0.02, lambda: [(features, np.zeros(3, np.int64))])
    for secure in (False, True):
        whole._scored(model, problem_of(2, secure=secure))
    assert not recwarn.list


def test_methods_without_it_are_as_they_were():
    assert "calibration" not in methods.parameters("least_squares", {}).__dict__
    features, labels = np.eye(4, dtype=np.float32)[np.arange(80) % 4], np.arange(80) % 4
    model = fit("least_squares", features, labels, classes=4, epsilon=8, delta=1e-3).model
    assert "calibration_slope" not in model.metadata
    with pytest.raises(StudyError, match=r"calibration 2: must be 'auto', or a number between 0 and 1"):
        fit("least_squares", features, labels, classes=4, epsilon=8, delta=1e-3, calibration=2)
    found = fit("least_squares", features, labels, classes=4, epsilon="inf", delta=1e-3, calibration=0.02).model
    told = calibration_of(found)
    assert told["slope"] > 0 and len(told["offsets"]) == 4 and told["shares"] == pytest.approx(4 * [0.25])
