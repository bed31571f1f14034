"""dpstudy: reproducible studies of differentially private image classification.

The library can be used without the workflow:

    from dpstudy import fit, predict
    result = fit("least_squares", X, y, epsilon=1.0, delta=1e-5)
    scores = predict(result.model, X_test)

Scikit-learn's users find the same as an estimator, `DPClassifier`.
"""

import importlib

__version__ = "0.2.0"

_PLACES = {
    "DPClassifier": "dpstudy.estimator",
    "Result": "dpstudy.methods.result",
    "StudyError": "dpstudy.core.errors",
    "fit": "dpstudy.methods",
    "predict": "dpstudy.methods",
}
__all__ = ["__version__", *_PLACES]


def __getattr__(name: str):
    if name in _PLACES:  # late and by name: the code of a room must not depend on that of the methods
        return getattr(importlib.import_module(_PLACES[name]), name)
    raise AttributeError(f"module 'dpstudy' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
