"""dpstudy: reproducible studies of differentially private image classification.

The library can be used without the workflow:

    from dpstudy import fit, predict
    result = fit("least_squares", X, y, epsilon=1.0, delta=1e-5)
    scores = predict(result.model, X_test)
"""

import importlib

__version__ = "0.2.0"


def __getattr__(name: str):
    if name in ("fit", "predict"):  # late and by name: the code of a room must not depend on that of the methods
        return getattr(importlib.import_module("dpstudy.methods"), name)
    raise AttributeError(f"module 'dpstudy' has no attribute {name!r}")
