"""dpstudy: reproducible studies of differentially private image classification.

The library can be used without the workflow:

    from dpstudy import fit, predict
    result = fit("least_squares", X, y, epsilon=1.0, delta=1e-5)
    scores = predict(result.model, X_test)
"""

__version__ = "0.1.0"


def __getattr__(name: str):
    if name in ("fit", "predict"):  # late, so that importing a room does not import the methods
        from dpstudy import methods

        return getattr(methods, name)
    raise AttributeError(f"module 'dpstudy' has no attribute {name!r}")
