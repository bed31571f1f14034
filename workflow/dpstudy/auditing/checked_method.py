"""A method under conformance testing: its settings, and a problem of synthetic records."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

import numpy as np

from dpstudy.core.errors import StudyError
from dpstudy.methods.averaging import Subjects
from dpstudy.methods.problem import Fit, Plan, Problem
from dpstudy.privacy.noise import NoiseSource

BASE = 24  # records, where few will do


class NonconformityError(StudyError):
    """A method breaks a rule that every method must keep."""


@dataclass(frozen=True)
class CheckedMethod:
    """A method with settings, on a problem of synthetic records.

    Attributes:
        beside: further arguments of `prepare`.
    """

    name: str
    module: ModuleType
    parameters: Any
    problem: Problem
    beside: Mapping[str, object] = field(default_factory=dict)

    @property
    def plan(self) -> Plan:
        """The method's planned releases on this problem."""
        return self.module.plan(self.parameters, self.problem)

    def rows(self, count: int, key: int, scale: float = 1.0) -> tuple[np.ndarray, np.ndarray]:
        """(features, labels) of `count` synthetic records."""
        rng = np.random.default_rng(key)
        features = scale * rng.uniform(-2, 2, (count, self.problem.dim)).astype(np.float32)
        return features, self.labels(count, rng)

    def labels(self, count: int, rng: np.random.Generator) -> np.ndarray:
        """Random class indices, or (count, m) zeros and ones with the maximum number of positive labels per record."""
        if self.problem.exclusive:
            return rng.integers(self.problem.classes, size=count)
        places = np.argsort(rng.random((count, self.problem.classes)), 1)[:, : self.problem.positives]
        labels = np.zeros((count, self.problem.classes), np.int8)
        np.put_along_axis(labels, places, 1, 1)
        return labels

    def prepared(self, batches: Sequence[tuple], subjects: np.ndarray | None = None):
        """The result of the method's `prepare` on these batches."""
        rows = sum(len(labels) for _, labels in batches)
        whole = Subjects(batches, np.arange(rows) if subjects is None else subjects)
        return self.module.prepare(whole, self.parameters, self.problem, **self.beside)

    def fitted(self, data, source: NoiseSource, plan: Plan | None = None) -> Fit:
        """The result of the method's `fit`."""
        return self.module.fit(data, self.parameters, self.problem, plan or self.plan, source)
