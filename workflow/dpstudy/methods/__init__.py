"""The training methods; each is a module with `Parameters`, `plan`, `prepare` and `fit`.

Searches share work between settings. Where `prepare` depends on the parameters, `prepared_by(parameters)` says on what
of them: a search prepares anew where that changes, and for every setting of a method without it. A method that solves
from one noisy release may offer it as `release` and `solve`: settings that plan the same noise share it, unless
`released_by(parameters)` differs.

A method whose releases do not keep features apart (each feature an axis of its own, as a Gram or a gradient does) says
so by AUDITED_DIM: how many features records have in attacks on it, None for as many as the cell's. Where its releases
keep classes apart instead, AUDITED_BY_CLASS says that canaries of different classes may play together.

A method is found by its name: a module of this package, or a Python entry point in the group "dpstudy.methods".
"""

import importlib
import importlib.util
from dataclasses import fields
from types import ModuleType
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from dpstudy.core import extras
from dpstudy.core.entry_points import entry_points
from dpstudy.core.errors import StudyError
from dpstudy.methods.result import Result
from dpstudy.models import Model


def module_name(name: str) -> str:
    """The import path of the method called `name`.

    Raises:
        StudyError: no such method.
    """
    path = f"{__name__}.{name}"
    if str(name).isidentifier() and importlib.util.find_spec(path) is not None:
        return path
    for entry in entry_points():
        if entry.name == name:
            return entry.value
    raise StudyError(
        f"method {name!r}: there is none of that name: no file workflow/dpstudy/methods/{name}.py, and no installed "
        "package that brings it (docs/add-a-method.md)"
    )


def load(name: str) -> ModuleType:
    """The module of the method called `name`.

    Raises:
        StudyError: no such method, or its module lacks a part.
    """
    module = importlib.import_module(module_name(name))
    missing = [part for part in ("Parameters", "plan", "prepare", "fit") if not hasattr(module, part)]
    if missing:
        raise StudyError(f"method {name!r}: {module.__file__} lacks {' and '.join(missing)} (docs/add-a-method.md)")
    return module


def parameters(name: str, options: dict):
    """The `Parameters` of the method called `name`, from a dictionary of plain values.

    Raises:
        StudyError: an unknown hyper-parameter, or one that is missing.
    """
    kind = load(name).Parameters
    known = [field.name for field in fields(kind)]
    for key in options:
        if key not in known:
            raise StudyError(f"method {name!r}: unknown hyper-parameter {key!r}; it has {', '.join(known)}")
    try:
        return kind(**options)
    except TypeError as error:
        raise StudyError(f"method {name!r}: {str(error).split(') ')[-1]}") from None


def fit(
    name: str,
    features: ArrayLike,
    labels: ArrayLike,
    *,
    epsilon: float | str,
    delta: float,
    seed: int = 0,
    noise: Literal["seeded", "secure"] = "seeded",
    **options: Any,
) -> Result:
    """Train a method on arrays, without the workflow.

    >>> import numpy as np
    >>> drawn = np.random.default_rng(0)
    >>> features, labels = drawn.standard_normal((500, 3)), drawn.integers(2, size=500)
    >>> result = fit("least_squares", features, labels, classes=2, epsilon=1.0, delta=1e-5)
    >>> result.ledger["guarantee"], result.ledger["accountant"], predict(result.model, features).shape
    ('proved', 'exact Gaussian DP', (500, 2))

    Args:
        name: a method, such as "least_squares".
        features: (n, d) real numbers; n is taken to be public. A row with a NaN or an infinity takes no part.
        labels: (n,) class indices, or (n, m) zeros and ones.
        epsilon: target, a number or a string such as "0.5" or "inf".
        delta: in (0, 1).
        seed: of the noise in "seeded" mode, an integer.
        noise: "seeded" or "secure".
        options: the method's hyper-parameters, and `classes` (give it: without it the number of classes is read off
            the private labels, and the ledger says so), `positives`, `shape`, `sanitise`, `accounting`, `shared_noise`
            (a control) and `public` (N, d) features for methods that read some, where the defaults do not fit. Where
            the guarantee shall protect persons with all their records: `unit="subject"`, `subjects` (n,), whose each
            record is, and `per_subject`, the most records that anybody has; n is then the number of subjects. With
            `contributions="average"` a subject's records count together as one, and noise is that of one record.
            `class_weights={0: 0.2}` has records of a class count for less, by public numbers.

    Returns:
        Result with `model` and `ledger`.

    Raises:
        StudyError: unknown method or hyper-parameter, an unreachable epsilon, labels out of range; whatever else of the
            arguments is not as said here; a package that the method needs is not installed; or training diverged: its
            noise is spent then, another try spends as much again, and no budget log adds them up here.
    """
    run = importlib.import_module("dpstudy.methods.api").fit  # by name: a cell's code does not include it
    with extras.named(f"method {name!r}"):
        return run(name, features, labels, epsilon=epsilon, delta=delta, seed=seed, noise=noise, **options)


def predict(model: Model, features: ArrayLike) -> np.ndarray:
    """(n, m) scores of (n, d) features; the largest is the predicted class. A row with a NaN has scores of NaN.

    Raises:
        StudyError: no model, or features of another shape than it was trained on.
    """
    return importlib.import_module("dpstudy.methods.api").predict(model, features)
