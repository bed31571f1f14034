"""Per-record normalisation of features; it is part of the features and costs no privacy."""

from typing import Literal

import numpy as np

from dpstudy.core.errors import StudyError

_GROUP_NORM_EPSILON = 1e-5  # added to the variance, as in torch


def check_normalise(rule: str | dict, shape: tuple[int, ...]) -> None:
    """Check that `rule` exists and suits features of shape (K, H, W) or (d,).

    Raises:
        StudyError: it does not.
    """
    if rule in ("none", "l2"):
        return
    groups = rule.get("group_norm") if isinstance(rule, dict) and len(rule) == 1 else None
    if type(groups) is not int or groups < 1:
        raise StudyError(f"normalise: {rule!r} does not exist; it is none, l2 or {{group_norm: number of groups}}")
    if shape[0] % groups:
        raise StudyError(f"normalise: {groups} groups do not divide the {shape[0]} feature channels")


def normalise(features: np.ndarray, rule: Literal["none", "l2"] | dict[str, int]) -> np.ndarray:
    """Features (n, K, H, W) or (n, d), float32, each record normalised on its own.

    >>> normalise(np.array([[3.0, 4.0]], np.float32), "l2")
    array([[0.6, 0.8]], dtype=float32)

    Args:
        rule: "none"; "l2", each record divided by its L2 norm (a zero record stays zero); or {"group_norm": G}, each of
            G groups of neighbouring channels brought to mean 0 and variance 1 (Wu and He, 2018), without affine
            parameters, as torch.nn.functional.group_norm does.
    """
    if rule == "none":
        return features
    if rule == "l2":
        flat = features.reshape(len(features), -1)
        norms = np.sqrt((flat.astype(np.float64) ** 2).sum(axis=1))
        return (flat / np.where(norms > 0, norms, 1)[:, None]).astype(np.float32).reshape(features.shape)
    groups = features.reshape(len(features), rule["group_norm"], -1).astype(np.float64)
    centred = groups - groups.mean(axis=2, keepdims=True)
    variance = (centred**2).mean(axis=2, keepdims=True)
    return (centred / np.sqrt(variance + _GROUP_NORM_EPSILON)).astype(np.float32).reshape(features.shape)
