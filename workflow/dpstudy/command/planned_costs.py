"""Estimates of the time and memory of feature extraction before it runs, measured on random images."""

import math
import time
from collections.abc import Iterator, Sequence

import numpy as np

from dpstudy.config.cells import Cell
from dpstudy.config.locations import data_root
from dpstudy.core.errors import StudyError
from dpstudy.data.prepare import Sizes
from dpstudy.features import NOT_COMPUTED, open_extractor
from dpstudy.plan.data_resources import extraction_mb

_FIRST, _TIMED = 4, 16  # images
_MB = 4e-6  # of a number


def feature_costs(study: dict, name: str, known: Sizes, cells: Sequence[Cell]) -> Iterator[str]:
    """A line with the estimated cost of each feature set that is extracted from a data set's images."""
    entry = study["datasets"][name]
    if "size" not in entry:
        return
    shape = (*entry["size"], entry.get("channels", 3))
    images = np.random.default_rng(0).integers(0, 256, (_TIMED, *shape), dtype=np.uint8)
    for features in dict.fromkeys(cell.features for cell in cells):
        options = study["features"][features]
        if options["extractor"] in NOT_COMPUTED:
            continue
        try:
            extractor = open_extractor(options, data_root=data_root(study))
            dim = math.prod(extractor.shape(shape))
            extractor(images[:_FIRST])
            started = time.monotonic()
            extractor(images)
            seconds = (time.monotonic() - started) / _TIMED * (known.records + known.tested)
        except (StudyError, OSError, TypeError):  # a network that is still to be made, or fetched
            yield f"  features {features}: the rehearsal tells how long they take, once their network is there"
            continue
        shard = max(known.records, known.tested) / entry.get("shards", 1)
        memory = extraction_mb(options, _MB * shard * math.prod(shape), _MB * shard * dim, 0.0)
        yield (
            f"  features {features}: about {_time(seconds)} by as many threads as there are here, {memory:,} MB a job; "
            "models take less (`make rehearse` measures both)"
        )


def _time(seconds: float) -> str:
    """
    >>> _time(0.2), _time(75), _time(7300)
    ('1 s', '75 s', '122 minutes')
    """
    return f"{max(1, math.ceil(seconds))} s" if seconds < 120 else f"{math.ceil(seconds / 60)} minutes"
