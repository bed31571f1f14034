"""One of the processes that share a pre-training, which torchrun starts."""

import json
import os
from pathlib import Path

from dpstudy.core.job import job
from dpstudy.core.progress import SHOWN


def main(task: str) -> None:
    """Do what the job's script wrote into the file `task`: the arguments of `pretrain`, and the job's `log`."""
    from dpstudy.methods.ranks import joined
    from dpstudy.pretraining.pretrain import pretrain

    content = json.loads(Path(task).read_text(encoding="utf-8"))
    with joined() as ranks, job(content["log"] if ranks.first else f"{task}.{ranks.rank}.log", append=True):
        if not ranks.first:
            os.environ.pop(SHOWN, None)  # progress is told once
        pretrain(**content["arguments"], ranks=ranks)
