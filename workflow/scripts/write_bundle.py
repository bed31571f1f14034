"""Write the publishable folder of one cell, or refuse with the reason."""

import os

from this_workflow import job

from dpstudy.cell.bound import check_cells, own_binding
from dpstudy.core.files import read_json
from dpstudy.jobs.certificates import certified, proved_entries
from dpstudy.jobs.replays import replayed
from dpstudy.release.bundle import Origin, write_bundle

if __name__ == "__main__":
    os.environ["DPSTUDY_GPU"] = "0"  # of a replay a few records: no GPU was asked for
    with job(snakemake.log[0]):
        files, params = snakemake.input, snakemake.params
        cell = params.cell | {"ledger": files.ledger, "run": files.run}
        facts, manifest = params.facts, read_json(files.images)
        check_cells([cell["name"]], own_binding())
        height, width, channels = manifest["image_shape"] or (None, None, None)
        proved = proved_entries([cell])
        found = replayed([params.replay] if proved else [], params.noise, params.replays, keep=False)
        origin = Origin(
            certificate=certified([cell], found)[cell["name"]],
            image={"size": [height, width], "channels": channels} | facts["image"],
            classes=manifest["classes"],
            multi_label=manifest["multi_label"],
            audit=next(iter(files.get("audit", [])), None),
            **{key: value for key, value in facts.items() if key != "image"},
        )
        write_bundle(cell["name"], origin, params.accept, snakemake.output[0])
