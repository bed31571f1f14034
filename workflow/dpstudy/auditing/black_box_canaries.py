"""Canaries of de2022's black-box audit (A.2, Table 8): a blank image, noise, or an image with a wrong label."""

import numpy as np

from dpstudy.core.errors import StudyError

BLANK, NOISE, AS = "blank", "noise", "-as-"
_LABEL = 0  # of the images that show nothing; the paper does not say which label they have
_WHITE = 255

Canary = tuple[np.ndarray, int]  # grey levels (d,) uint8, and the class that it is said to be


def make_canary(
    name: str, images: np.ndarray, labels: np.ndarray, classes: tuple[str, ...], rng: np.random.Generator
) -> Canary:
    """The canary (image, label) of a given name.

    Args:
        name: "blank" (black), "noise" (each number uniform over the grey levels), or "7-as-8": the first of `images`
            of class 7, said to be of class 8.
        images: (n, d) uint8, which are not in D.
        labels: (n,) their classes.
        classes: names, in the order of the labels.
        rng: draws the noise.

    Raises:
        StudyError: no class has that name, or no image is of it.
    """
    dim: int = images.shape[1]
    if name == BLANK:
        return np.zeros(dim, np.uint8), _LABEL
    if name == NOISE:
        return rng.integers(0, _WHITE, dim, dtype=np.uint8, endpoint=True), _LABEL
    shown, claimed = _classes_of(name, classes)
    of_class = np.flatnonzero(labels == shown)
    if not len(of_class):
        raise StudyError(f"black_box.space.canaries: {name!r}: no test image is of class {classes[shown]!r}")
    return np.array(images[of_class[0]]), claimed


def _classes_of(name: str, classes: tuple[str, ...]) -> tuple[int, int]:
    """The class that an image is of, and the one that it is said to be of: names may have AS in them too."""
    parts = name.split(AS)
    for cut in range(1, len(parts)):
        shown, claimed = AS.join(parts[:cut]), AS.join(parts[cut:])
        if shown in classes and claimed in classes:
            return classes.index(shown), classes.index(claimed)
    raise StudyError(
        f"black_box.space.canaries: {name!r}: is neither 'blank', 'noise' nor two classes such as "
        f"'{classes[0]}{AS}{classes[1]}'; there are {', '.join(classes)}"
    )
