"""Write the folder of one cell that may be published, or say why there is none."""

import os

from this_workflow import job

from dpstudy.cell.bound import Binding, PaidHashes, check_cells
from dpstudy.core.files import read_json
from dpstudy.jobs.certificates import certified, proved_entries
from dpstudy.jobs.replays import replayed
from dpstudy.privacy.spending import BOOK, Spending
from dpstudy.release.bundle import Origin, write_bundle

if __name__ == "__main__":
    os.environ["DPSTUDY_GPU"] = "0"  # of a replay a few records: no GPU was asked for
    with job(snakemake.log[0]):
        files, params = snakemake.input, snakemake.params
        check_cells([params.cell], Binding(PaidHashes(Spending(BOOK))))
        manifest = read_json(files.images)
        cell = {"name": params.cell, "ledger": files.ledger, "run": files.run, "unnamed": params.unnamed}
        cell["stated"] = params.stated
        height, width, channels = manifest["image_shape"] or (None, None, None)
        # No input of the rule: all other cells of the data set would have to be there.
        kept = f"results/privacy/replays/{snakemake.wildcards.dataset}.json"
        proved = proved_entries([cell])
        found = replayed([params.replay] if proved else [], params.noise, kept, keep=False)
        origin = Origin(
            cell=os.path.dirname(files.metrics),
            certificate=certified([cell], found)[params.cell],
            image={"size": [height, width], "channels": channels, "crop": params.crop},
            classes=manifest["classes"],
            multi_label=manifest["multi_label"],
            features=params.features,
            backbone=params.backbone,
            fit=params.fit,
            weights=next(iter(files.get("weights", [])), None),
            audit=next(iter(files.get("audit", [])), None),
            unmatched=params.unmatched,
            chosen=params.chosen,
            planted=params.planted,
            test_public=params.test_public,
        )
        write_bundle(params.cell, origin, params.accept, snakemake.output[0])
