"""Instance-level smoothing as published, held against loops over records in float64."""

import math

import numpy as np
import pytest
import torch
from scipy.special import logsumexp
from scipy.stats import chi2

import dpstudy
from dpstudy import methods
from dpstudy.core.arrays import to_numpy
from dpstudy.core.errors import StudyError
from dpstudy.methods import kernel_projection
from dpstudy.methods.kernel_projection import Contrast, point_gradients, projected
from dpstudy.methods.local_sensitivity import Bandwidths, deviations, local_sensitivity, neighbour_distances
from dpstudy.methods.problem import Problem
from dpstudy.methods.records import Records
from dpstudy.methods.smoothing_attacks import attacks
from dpstudy.models import kernel_density
from dpstudy.models.kernel_density import KernelModel
from dpstudy.privacy.budget import Budget
from dpstudy.privacy.noise import NoiseSource

N, DIM, P = 60, 7, 3


def records(seed=0, n=N, classes=3, several=False):
    rng = np.random.default_rng(seed)
    features = rng.standard_normal((n, DIM)).astype(np.float32)
    labels = (rng.random((n, classes)) < 0.3).astype(np.uint8) if several else np.arange(n) % classes
    return features, labels


def points_of(seed=0, n=N):
    return torch.from_numpy(np.random.default_rng(seed).standard_normal((n, P)).astype(np.float32))


def log_kernel(x, y, variance):
    """log of a Gaussian density in p dimensions, from its definition."""
    x, y = np.asarray(x, np.float64), np.asarray(y, np.float64)
    return -len(x) / 2 * math.log(2 * math.pi * variance) - ((x - y) ** 2).sum() / (2 * variance)


def log_density(x, points, variances, chosen):
    return logsumexp([log_kernel(x, points[i], float(variances[i])) for i in chosen]) - math.log(len(chosen))


@pytest.mark.parametrize("values", [1 << 24, 100])
def test_scores_are_log_densities_of_each_class_against_all(values, monkeypatch):
    monkeypatch.setattr(kernel_density, "_BLOCK_VALUES", values)
    features, labels = records()
    rng = np.random.default_rng(1)
    projection = rng.standard_normal((P, DIM)).astype(np.float32)
    points, variances = points_of(1).numpy(), rng.uniform(0.2, 2, N).astype(np.float32)
    found = KernelModel(projection, points, variances, labels.astype(np.int32), 3).scores(features[:9])
    for row in range(9):
        point = projection @ features[row]
        logs = [log_density(point, points, variances, np.flatnonzero(labels == label)) for label in range(3)]
        assert found[row] == pytest.approx(np.array(logs) - logsumexp(logs), rel=1e-5, abs=1e-5)


def test_scores_of_several_labels_are_those_with_it_against_those_without(tmp_path):
    features, labels = records(several=True)
    labels[:, 2] = 0  # nobody bears it
    rng = np.random.default_rng(1)
    projection = rng.standard_normal((P, DIM)).astype(np.float32)
    points, variances = points_of(1).numpy(), rng.uniform(0.2, 2, N).astype(np.float32)
    model = KernelModel(projection, points, variances, labels, 3)
    model.save(tmp_path / "model.safetensors")
    found = KernelModel.load(tmp_path / "model.safetensors").scores(features[:5])
    assert np.array_equal(found, model.scores(features[:5])) and np.isfinite(found).all()
    for row in range(5):
        for label in range(2):
            with_it, without = (
                log_density(projection @ features[row], points, variances, np.flatnonzero(labels[:, label] == sign))
                for sign in (1, 0)
            )
            assert found[row, label] == pytest.approx(with_it - without, rel=1e-4, abs=1e-4)
    assert (found[:, 2] < -1e29).all()


def test_a_point_far_from_all_keeps_its_order_of_classes():
    """In log space nothing underflows."""
    points = np.array([[0.0], [1.0]], np.float32)
    model = KernelModel(np.eye(1, dtype=np.float32), points, np.ones(2, np.float32), np.array([0, 1], np.int32), 2)
    assert list(model.scores(np.array([[500.0], [-500.0]], np.float32)).argmax(1)) == [1, 0]


def test_neighbour_distances_and_bandwidths_are_those_of_proposition_2():
    points = points_of()
    exact = np.sort(np.linalg.norm(points[:, None].double() - points[None].double(), axis=2), 1)[:, 1:6].mean(1)
    assert neighbour_distances(points, 5).numpy() == pytest.approx(exact, rel=1e-4)
    found = Bandwidths(0.5, 2.0, 5, 75).variances(points).numpy()
    threshold = np.sort(exact)[math.ceil(0.75 * N) - 1]
    density = threshold / exact  # N_r, which is 1 at the threshold
    expected = np.where(density >= 1 - 1e-9, 0.5**2, 0.5**2 + (0.5 * 2.0 / density) ** 2)
    assert found == pytest.approx(expected, rel=1e-4) and (expected > 0.25).sum() == N - math.ceil(0.75 * N)


@pytest.mark.parametrize("values", [1 << 24, 100])
def test_local_sensitivity_is_what_leaving_the_point_out_changes(values, monkeypatch):
    monkeypatch.setattr(kernel_density, "_BLOCK_VALUES", values)
    points = points_of()
    variances = torch.from_numpy(np.random.default_rng(2).uniform(0.2, 2, N).astype(np.float32))
    literal, share = (local_sensitivity(points, variances, reading).numpy() for reading in ("density", "share"))
    for i in range(N):
        kernels = np.array([math.exp(log_kernel(points[i], points[j], float(variances[j]))) for j in range(N)])
        whole, without = kernels.sum() / N, (kernels.sum() - kernels[i]) / (N - 1)
        assert literal[i] == pytest.approx(abs(whole - without), rel=1e-4)
        assert share[i] == pytest.approx(abs(whole - without) / whole * math.sqrt(variances[i]), rel=1e-4)


@pytest.mark.parametrize("reading", ["density", "share"])
def test_copies_have_no_sensitivity_and_are_published_as_they_are(reading):
    copies = points_of(n=1).repeat(33, 1)
    variances = Bandwidths(1.0, 1.0, 5, 50).variances(copies)
    assert (deviations(copies, variances, reading, 1e6) == 0).all()


def test_a_literal_sensitivity_of_too_many_digits_is_refused():
    with pytest.raises(StudyError, match="raise bandwidth"):
        points = torch.randn(5, 64)
        deviations(points, torch.full((5,), 1e-4), "density", 11.0)


def slow_loss(points, variances, labels, batch, references, contrast, classes):
    """Eq. 1, or a margin for each other class, over a record's own class without itself, in float64."""
    total = 0.0
    for b in batch:
        logs = {
            j: -P / 2 * torch.log(2 * torch.pi * variances[j])
            - ((points[b] - points[j]) ** 2).sum() / (2 * variances[j])
            for j in references
            if j != b
        }

        def density(wanted, logs=logs):
            chosen = torch.stack([logs[j] for j in logs if wanted(j)])
            return torch.logsumexp(chosen, 0) - math.log(len(chosen))

        if labels.ndim == 1 and contrast.negatives == "pooled":
            own, others = (
                torch.logsumexp(torch.stack([logs[j] for j in logs if (labels[j] == labels[b]) == same]), 0)
                for same in (True, False)
            )
            gaps = [own - others]
        elif labels.ndim == 1:
            own = density(lambda j, b=b: labels[j] == labels[b])
            others = [label for label in range(classes) if label != labels[b]]
            gaps = [own - density(lambda j, label=label: labels[j] == label) for label in others]
        else:
            gaps = []
            for label in range(classes):
                ours, theirs = (density(lambda j, label=label, s=s: labels[j, label] == s) for s in (1, 0))
                gaps.append(ours - theirs if labels[b, label] else theirs - ours)
        total = total + torch.relu(contrast.margin - torch.stack(gaps)).mean()
    return total / len(batch)


@pytest.mark.parametrize(("several", "negatives"), [(False, "pooled"), (False, "each"), (True, "pooled")])
@pytest.mark.parametrize("values", [1 << 24, 200])
def test_gradients_of_the_contrast_are_those_of_a_loop(several, negatives, values, monkeypatch):
    monkeypatch.setattr(kernel_density, "_BLOCK_VALUES", values)
    labels = torch.from_numpy(records(several=several)[1].astype(np.int64))
    points = points_of().double()
    variances = torch.from_numpy(np.random.default_rng(2).uniform(0.5, 2, N))
    batch, references = torch.arange(0, 40, 3), torch.arange(5, N - 4)
    contrast = Contrast(2.0, 1, 20, 0.1, None, negatives)
    found = point_gradients(points, variances, labels, batch, references, contrast, 3)
    exact = points.clone().requires_grad_()
    slow_loss(exact, variances, labels, batch.tolist(), references.tolist(), contrast, 3).backward()
    assert found.numpy() == pytest.approx(exact.grad.numpy(), rel=1e-8, abs=1e-10) and float(found.abs().max()) > 1e-3


@pytest.mark.parametrize("negatives", ["pooled", "each"])
def test_a_class_without_other_points_pulls_nothing(negatives):
    labels = torch.tensor([0, 1, 1, 1])
    points = torch.randn(4, P, dtype=torch.float64)
    contrast = Contrast(2.0, 1, 20, 0.1, None, negatives)
    found = point_gradients(points, torch.ones(4).double(), labels, torch.tensor([0]), torch.arange(4), contrast, 3)
    assert (found == 0).all()


def test_training_moves_classes_apart():
    features, labels = records(n=300)
    features[:, :3] += 2 * np.eye(3, dtype=np.float32)[labels]
    data = Records.read([(features, labels)], 3, tensors=True)
    generator = np.random.default_rng(0)
    start = kernel_projection.first_projection(data, P, generator)
    assert float(projected(data, start).var(0).mean()) == pytest.approx(1, rel=1e-3)

    def smoothed(points):
        return torch.zeros_like(points), torch.ones_like(points[:, 0])

    def accuracy(projection):
        arrays = to_numpy(projection), to_numpy(projected(data, projection)), np.ones(300, np.float32)
        held, own = records(seed=5, n=300)
        held[:, :3] += 2 * np.eye(3, dtype=np.float32)[own]
        return (KernelModel(*arrays, labels.astype(np.int32), 3).scores(held).argmax(1) == own).mean()

    for part, negatives in ((None, "pooled"), (100, "pooled"), (None, "each")):
        contrast = Contrast(10.0, 12, 50, 0.1, part, negatives)
        *_, last = kernel_projection.train(data, data.place.array(labels), start, contrast, smoothed, generator)
        assert accuracy(last) > accuracy(start) + 0.05


def problem_of(epsilon="3", **changes):
    return Problem(N, (DIM,), 3, Budget(epsilon, 1e-5), **changes)


def set_up(epsilon="3", **options):
    method = methods.load("instance_smoothing")
    parameters = method.Parameters(**{"projected_dim": P, "epochs": 2, "batch_size": 20, "attack_runs": 400} | options)
    problem = problem_of(epsilon)
    return method, parameters, problem, method.plan(parameters, problem)


@pytest.mark.parametrize(("epsilon", "rho", "error"), [("2", 0.080, None), ("3", 0.173, 1.37), ("8", 1.049, 0.20)])
def test_the_numbers_of_the_theorems_are_the_papers(epsilon, rho, error):
    _, _, _, plan = set_up(epsilon)
    assert plan.facts["rho"] == pytest.approx(rho, abs=5e-4)
    assert plan.noise["points"] == pytest.approx(math.sqrt(2 * math.log(1e5) / plan.facts["rho"]), rel=1e-9)
    if error:
        assert plan.facts["error_bound"] == pytest.approx(error, abs=5e-3)
    assert plan.facts["smallest_n"] == pytest.approx(1 / math.sqrt(2 * math.pi) / plan.facts["rho"])
    appendix = set_up(epsilon, constant="appendix", bandwidth=0.5, order=3.0)[3]
    assert appendix.facts["smallest_n"] == pytest.approx(4 / math.sqrt(2 * math.pi) / (2 * plan.facts["rho"]))


@pytest.mark.parametrize("reading", ["density", "share"])
@pytest.mark.parametrize("noised", ["training", "release"])
def test_published_points_have_noise_of_their_own_sensitivity(reading, noised):
    """A standard deviation twice or half as large would be seen."""
    method, parameters, problem, plan = set_up(sensitivity=reading, noised=noised, bandwidth=0.7)
    data = method.prepare([records()], parameters, problem)
    total = count = 0
    for seed in range(6):
        model = method.fit(data, parameters, problem, plan, NoiseSource("secure", seed)).model
        points = projected(data.records, data.records.place.array(model.projection))
        variances = parameters.bandwidths.variances(points)
        assert model.variances == pytest.approx(to_numpy(variances), rel=1e-5)
        std = to_numpy(local_sensitivity(points, variances, reading)) * plan.noise["points"]
        total += (((model.points - to_numpy(points)) / std[:, None]) ** 2).sum()
        count += model.points.size
    assert chi2.ppf(1e-6, count) < total < chi2.ppf(1 - 1e-6, count)


def test_the_ledger_says_claimed_and_why():
    features, labels = records()
    options = {"projected_dim": P, "epochs": 1, "classes": 3}
    ledger = dpstudy.fit("instance_smoothing", features, labels, epsilon=3, delta=1e-5, **options).ledger
    assert (ledger["guarantee"], ledger["epsilon"], ledger["accountant"]) == ("claimed", None, "none")
    assert ledger["not_accounted"][0].startswith("The authors claim rho-zCDP, which does not hold")
    (event,) = ledger["events"]
    assert event["sensitivity"] is None and event["mechanism"] == "local-sensitivity-gaussian"
    free = dpstudy.fit("instance_smoothing", features, labels, epsilon="inf", delta=1e-5, **options)
    assert free.ledger["guarantee"] == "none" and free.ledger["events"] == []
    points = features @ free.model.projection.T
    assert free.model.points == pytest.approx(points, abs=1e-5)


@pytest.mark.parametrize(
    ("options", "changes", "message"),
    [
        ({"projected_dim": 8}, {}, "projected_dim 8: records have 7 features only"),
        ({}, {"unit_records": 2}, "no bound for subjects with several records"),
        ({"percentile": 100.0}, {}, "percentile 100.0: must lie between 0 and 100"),
        ({"sensitivity": "peak"}, {}, "sensitivity 'peak': one of 'density', 'share'"),
    ],
)
def test_what_it_cannot_do_is_said(options, changes, message):
    method = methods.load("instance_smoothing")
    with pytest.raises(StudyError, match=message):
        method.plan(method.Parameters(**{"projected_dim": P} | options), problem_of(**changes))
    with pytest.raises(StudyError, match="it clips nothing"):
        method.plan(method.Parameters(projected_dim=P), problem_of("inf", sanitise="clip"))


def test_attacks_are_reported_as_they_come_out():
    """Nothing where much noise, the same in both places, hides a point; everything of a copied record, even then."""
    angles = 2 * math.pi * torch.arange(400) / 400
    points = torch.stack([angles.cos(), angles.sin()], 1)
    narrow, claim = Bandwidths(1.0, 1e-6, 5, 50), Budget("3", 1e-5)
    for sigma, low, high in ((1e7, 0, 0.5), (0.01, 5, 99)):
        found = attacks(points, narrow, sigma, claim, "share", 3000, NoiseSource("secure", sigma))
        lower = {
            (target, reading): entry["epsilon_lower"]
            for entry in found
            for target in ("typical", "outlying", "copies")
            for reading in ("literally", "share")
            if target in entry["statistic"] and reading in entry["statistic"]
        }
        assert len(lower) == len(found) == 6
        for reading in ("literally", "share"):
            assert lower["copies", reading] > 5
            assert low <= lower["outlying", reading] <= high
        assert all(("without any noise" in e["statistic"]) == ("copies" in e["statistic"]) for e in found)
