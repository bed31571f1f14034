"""Copies of private images planted in a public set, to demonstrate that de-duplication finds them.

A demonstration only: it makes the public set depend on private records. A real study plants nothing.
"""

from dataclasses import replace

import numpy as np

from dpstudy.core.errors import StudyError
from dpstudy.data.records import Records, concatenate

_BRIGHTNESS, _NOISE = 0.08, 5.0  # relative range of the gain, and standard deviation in grey levels


def plant(records: Records, private_images: Records, count: int, seed: int) -> Records:
    """The rows with the last `count` replaced by copies of private images, with ids "planted-00000", ...

    By turns a copy is exact, has another brightness and some noise, or is shifted by a pixel (every other one of
    these is mirrored instead).

    Raises:
        StudyError: either side has too few rows, no images, or the two differ in image shape or kind of label.
    """
    if records.images is None or private_images.images is None:
        raise StudyError("plant: both the public and the private data set need images")
    if records.images.shape[1:] != private_images.images.shape[1:]:
        shapes = records.images.shape[1:], private_images.images.shape[1:]
        raise StudyError(f"plant: public images are {shapes[0]}, private ones {shapes[1]}; they must have one shape")
    if records.labels.shape[1:] != private_images.labels.shape[1:]:
        raise StudyError("plant: the public and the private data set have different kinds of label")
    if count > min(len(records), len(private_images)):
        raise StudyError(
            f"plant: count is {count}, but there are {len(records)} public, {len(private_images)} private rows"
        )
    random = np.random.default_rng(seed)
    chosen = random.choice(len(private_images), size=count, replace=False)
    copies = np.stack([_copy(private_images.images[row], turn, random) for turn, row in enumerate(chosen)])
    ids = np.array([f"planted-{turn:05d}" for turn in range(count)], dtype=object)
    kept, replaced = np.split(np.arange(len(records)), [len(records) - count])
    planted = replace(records.take(replaced), ids=ids, images=copies, labels=private_images.labels[chosen])
    return concatenate([records.take(kept), planted])


def _copy(image: np.ndarray, turn: int, random: np.random.Generator) -> np.ndarray:
    kind = turn % 3
    if kind == 0:
        return image
    if kind == 1:
        gain = 1 + random.uniform(-_BRIGHTNESS, _BRIGHTNESS)
        return np.clip(np.rint(image * gain + random.normal(0, _NOISE, image.shape)), 0, 255).astype(np.uint8)
    if turn % 2:
        return image[:, ::-1]
    return np.concatenate([image[:, :1], image[:, :-1]], axis=1)
