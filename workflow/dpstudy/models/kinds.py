"""Loading a model from a file: the kinds of model, and the class of each."""

import importlib
import os

from dpstudy.core.errors import StudyError, in_a_sentence
from dpstudy.core.files import read_tensor_metadata

MODELS = {  # kind -> module and class
    "linear": ("dpstudy.models.linear", "LinearModel"),
    "random-features": ("dpstudy.models.random_features", "RandomFeatureModel"),
    "network": ("dpstudy.models.network", "NetworkModel"),
    "kernel-density": ("dpstudy.models.kernel_density", "KernelModel"),
}
HOLDS_RECORDS = "kernel-density"  # a point for each private record


def kind_of(path: str | os.PathLike) -> str:
    """The kind of model in a file.

    Raises:
        StudyError: it is missing or damaged, or holds no model of ours.
    """
    kind = read_tensor_metadata(path).get("kind", "")
    if kind not in MODELS:
        raise StudyError(f"{path}: holds no model of a known kind ({kind!r}); there are {', '.join(MODELS)}")
    return kind


def load_model(path: str | os.PathLike):
    """The model in a file, with its method `scores`.

    Raises:
        StudyError: as `kind_of`, or what the file says of the model is missing or wrong.
    """
    module, name = MODELS[kind := kind_of(path)]
    with in_a_sentence(f"{path}: holds no whole {kind} model"):
        return getattr(importlib.import_module(module), name).load(path)
