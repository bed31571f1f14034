"""Which cells of the shipped studies correspond to which printed numbers."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from dpstudy.config.cells import Cell, unfold
from dpstudy.tables.attacked import FOUND
from dpstudy.tables.checks import parts_of
from dpstudy.tables.published import all_lines, combine
from dpstudy.tables.trials import STATISTICS

CERTIFIED, PRINTED, NONE = "at the same certified ε", "at the printed noise", "without noise"


@dataclass(frozen=True)
class Place:
    """A cell that a table or figure puts beside a printed number, and its metric.

    Attributes:
        noise: what is the same as printed: NONE of it, where both have none; PRINTED, the noise itself, by the paper's
            accountant; or CERTIFIED, the epsilon that it certifies.
    """

    study: str
    dataset: str
    features: str
    entry: str
    epsilon: str
    metric: str
    noise: str = CERTIFIED

    @property
    def key(self) -> tuple[str, ...]:
        """The key of its measured line (`Measured.key`)."""
        return self.study, self.dataset, self.features, self.entry, self.epsilon, self.metric


def places(studies: Iterable[dict]) -> dict[int, list[Place]]:
    """Line number of results.csv -> the cells that correspond to it, in the order of the studies."""
    by_line: dict[int, dict[Place, None]] = defaultdict(dict)
    for study in studies:
        cells = {(cell.dataset, cell.features, cell.entry, cell.epsilon): cell for cell in unfold(study)}
        for spec in (*study["tables"].values(), *study["figures"].values()):
            for line, key, metric in _of_spec(spec, study):
                if key in cells:
                    by_line[line][Place(study["study"], *key, metric, _noise(cells[key], study))] = None
    return {line: list(of_line) for line, of_line in by_line.items()}


def _noise(cell: Cell, study: dict) -> str:
    if cell.epsilon == "inf":
        return NONE
    return CERTIFIED if cell.options(study).get("accounting", CERTIFIED) == "certified" else PRINTED


def _of_spec(spec: dict, study: dict) -> Iterator[tuple[int, tuple[str, str, str, str], str]]:
    metric = spec.get("metric", "top1")
    for dataset in spec.get("datasets", [spec["dataset"]] if "dataset" in spec else list(study["datasets"])):
        for parts in parts_of(spec, dataset):
            if spec.get("style") == "best":  # of all rows of a group, whatever the table names there
                if combine(spec, dataset) is None:
                    continue
                parts = (parts[0], *({"published": {}} | part for part in parts[1:]))
            filters = combine(spec, dataset, *parts)
            options = {key: part[key] for part in parts for key in ("features", "entry", "epsilon") if key in part}
            if filters is None or not {"features", "entry"} <= options.keys():
                continue
            for epsilon in [options["epsilon"]] if "epsilon" in options else spec.get("epsilons", study["epsilons"]):
                for name in FOUND.values() if spec.get("style") == "membership" else [filters.get("metric", metric)]:
                    for line in _lines({**filters, "metric": name}, epsilon):
                        yield line, (dataset, options["features"], options["entry"], epsilon), name
    for row in spec.get("searches", []):
        for statistic in STATISTICS if "published" in row else ():
            for line in _lines({**row["published"], "statistic": statistic}, row["epsilon"]):
                for cell in row["cells"]:
                    yield line, (row["dataset"], cell["features"], cell["entry"], row["epsilon"]), metric


def _lines(where: dict[str, str], epsilon: str) -> Iterator[int]:
    """The lines whose columns equal `where`, at `epsilon`; a paper may print nothing of that."""
    for line, row in all_lines().items():
        if row["epsilon"] and float(row["epsilon"]) == float(epsilon):
            if all(row[key] == str(value) for key, value in where.items()):
                yield line
