"""One of the processes of a pre-training that torchrun starts."""

import json
import os
from pathlib import Path

from dpstudy.core.job import job
from dpstudy.core.progress import SHOWN


def main(task: str) -> None:
    """Run `pretrain` with the arguments in the file `task`, logging to the job's `log`."""
    from dpstudy.methods.ranks import joined
    from dpstudy.pretraining.pretrain import pretrain

    content = json.loads(Path(task).read_text(encoding="utf-8"))
    with joined() as ranks, job(content["log"] if ranks.first else f"{task}.{ranks.rank}.log", append=True):
        if not ranks.first:
            os.environ.pop(SHOWN, None)  # only the first process reports progress
        pretrain(**content["arguments"], ranks=ranks)
