"""One cell in a process of its own, for cell_cost.py: prints as JSON when each stage was reached."""

import json
import sys
import time

request = json.loads(sys.argv[1])
seconds = {}


def reached(stage: str) -> None:
    """Note the seconds since the process was started."""
    seconds[stage] = time.monotonic() - request["started"]


def main() -> None:
    """The imports of a rule's script, then the cell, with the method's entries watched."""
    reached("interpreter")
    from snakemake.iocontainers import Snakemake  # noqa: F401
    from snakemake.logging import logger  # noqa: F401

    reached("Snakemake")
    import dpstudy.core.job  # noqa: F401
    from dpstudy import methods
    from dpstudy.cell.inputs import CellInputs, CellRequest
    from dpstudy.config.cells import Cell
    from dpstudy.jobs.training import train_cell
    from dpstudy.provenance.hashes import library_hash

    reached("dpstudy")
    options = request["options"]
    method = methods.load(options["method"])
    reached("method")
    plan, fit = method.plan, method.fit

    def watched_plan(*arguments, **named):
        result = plan(*arguments, **named)
        reached("calibrated")
        return result

    def watched_fit(*arguments, **named):
        reached("first arithmetic")
        return fit(*arguments, **named)

    method.plan, method.fit = watched_plan, watched_fit
    folder = request["folder"]
    asked = CellRequest(
        cell=Cell("synthetic", "synthetic", "entry", "1"),
        options=options,
        dataset={"reader": "digits", "delta": "1e-4", "unit": "record", "positives": 1},
        seeds=[0],
        noise="seeded",
        metrics=["top1"],
        not_accounted=[],
        code=[],
        library=library_hash([]),
    )
    statistics = (f"{folder}/statistics.safetensors",) if options["method"] == "least_squares" else ()
    outputs = {"model": "model.safetensors", "run": "run.json", "scores": "scores.parquet", "ledger": "ledger.json"}
    if options["method"] != "least_squares":
        outputs["curve"] = "curve.parquet"
    inputs = CellInputs((f"{folder}/train",), f"{folder}/test", statistics=statistics)
    train_cell(asked, inputs, {name: f"{folder}/{file}" for name, file in outputs.items()})
    reached("written")
    print(json.dumps({"seconds": seconds, "loaded": [name for name in request["watch"] if name in sys.modules]}))


if __name__ == "__main__":
    main()
