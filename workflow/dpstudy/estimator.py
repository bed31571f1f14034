"""`dpstudy.fit` and `predict` as a scikit-learn estimator."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from dpstudy.core import extras
from dpstudy.core.errors import StudyError
from dpstudy.methods import fit, predict

with extras.named("DPClassifier"):
    from sklearn.base import BaseEstimator, ClassifierMixin
    from sklearn.utils.multiclass import check_classification_targets
    from sklearn.utils.validation import check_is_fitted, validate_data


class DPClassifier(ClassifierMixin, BaseEstimator):
    """A scikit-learn classifier under (epsilon, delta)-DP, single-label; `dpstudy.fit` has more options.

    Cross-validation and searches fit many times on the same records: each fit spends epsilon anew, and choosing by
    private scores spends more, which no ledger here counts.

    Args:
        method: of `dpstudy.fit`.
        epsilon, delta: the target; delta must be given, and lies well below 1/n.
        classes: all labels that there may be, which are public. Where None they are read off the private labels, and
            the ledger says so.
        noise: "seeded", for research, or "secure".
        random_state: the seed of seeded noise, an integer.
        options: the method's hyper-parameters and further arguments of `dpstudy.fit`.

    Attributes:
        classes_: (m,) labels, sorted.
        ledger_: what was released and what it costs.
        model_: of `dpstudy.predict`.
        n_features_in_: d.
    """

    classes_: np.ndarray
    ledger_: dict
    model_: Any
    n_features_in_: int

    def __init__(
        self,
        method: str = "least_squares",
        *,
        epsilon: float | str = 1.0,
        delta: float | None = None,
        classes=None,
        noise: str = "seeded",
        random_state: int = 0,
        options: Mapping[str, Any] | None = None,
    ):
        self.method = method
        self.epsilon = epsilon
        self.delta = delta
        self.classes = classes
        self.noise = noise
        self.random_state = random_state
        self.options = options

    def fit(self, X, y) -> DPClassifier:
        """Train on features (n, d) and labels (n,).

        Raises:
            StudyError: as `dpstudy.fit`; no delta; a label that is none of `classes`.
            ValueError: what scikit-learn's estimators refuse.
        """
        X, y = validate_data(self, X, y)
        check_classification_targets(y)
        if self.delta is None:
            raise StudyError(f"DPClassifier: give delta, well below 1/n, such as delta={10 ** -len(str(10 * len(y)))}")
        self.classes_ = np.unique(y if self.classes is None else np.asarray(self.classes))
        places = np.minimum(np.searchsorted(self.classes_, y), len(self.classes_) - 1)
        if unknown := set(y[self.classes_[places] != y].tolist()):
            raise StudyError(f"DPClassifier: label {min(map(repr, unknown))} is none of `classes`")
        if len(self.classes_) < 2:
            raise ValueError("Classifier can't train when only one class is present.")
        given = dict(self.options or {})
        if "classes" in given:  # a number of them, while which they are would be read off the private labels
            raise StudyError("DPClassifier: name the classes, classes=[...], in the place of options={'classes': ...}")
        if self.classes is not None:
            given["classes"] = len(self.classes_)
        done = fit(
            self.method,
            X,
            places,
            epsilon=self.epsilon,
            delta=self.delta,
            seed=self.random_state,
            noise=self.noise,  # type: ignore[arg-type]
            **given,
        )
        self.model_, self.ledger_ = done.model, done.ledger
        return self

    def decision_function(self, X) -> np.ndarray:
        """(n, m) scores; for two classes (n,), by how much the second one's is higher."""
        scores = self._scores(X)
        return scores[:, 1] - scores[:, 0] if len(self.classes_) == 2 else scores

    def predict(self, X) -> np.ndarray:
        """(n,) labels."""
        largest = self._scores(X).argmax(1)
        return self.classes_[largest]

    def predict_proba(self, X) -> np.ndarray:
        """(n, m) the softmax of the scores: probabilities of methods with the softmax loss. Those of others rank
        classes and records as their scores do, and are not calibrated."""
        scores = self._scores(X).astype(float)
        scores = np.exp(scores - scores.max(1, keepdims=True))
        return scores / scores.sum(1, keepdims=True)

    def _scores(self, X) -> np.ndarray:
        check_is_fitted(self, "model_")
        return predict(self.model_, validate_data(self, X, reset=False))
