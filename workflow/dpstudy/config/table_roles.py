"""What tables select cell by cell: the roles of a paper's experiments, and the models whose parameters are counted."""

from dpstudy.core.errors import StudyError
from dpstudy.schema.messages import check_known
from dpstudy.tables.claims.names import MODELS, ROLES, roles_of
from dpstudy.tables.printed_layers import table_4
from dpstudy.tables.published import CLAIMS, published_rows

# Keys of a table of claims -> the papers that have such a thing.
_PAPERS_OF = {
    "roles": tuple(ROLES),
    "searches": ("tramer2021",),
    "methods": ("mehta2023",),
    "pretraining": ("mehta2023",),
}

_ANY_METRIC = ("anon_smoothing",)


def check_roles(place: str, spec: dict, config: dict) -> None:
    """Check the roles of a table of claims, and which models its searches are of.

    Raises:
        StudyError: a key of another paper, or an unknown name.
    """
    for key, papers in _PAPERS_OF.items():
        if key in spec and spec.get("paper", papers[0]) not in papers:
            named = " or ".join(papers)
            raise StudyError(f"{place}.{key}: this key goes with the paper {named}, not with {spec['paper']}")
    if spec["style"] == "ceiling" and spec.get("paper", "mehta2023") != "mehta2023":
        raise StudyError(f"{place}.paper: the style 'ceiling' knows mehta2023 only, not {spec['paper']}")
    if spec["style"] == "claims" and spec.get("metric", "top1") != "top1" and spec.get("paper") not in _ANY_METRIC:
        raise StudyError(
            f"{place}.metric: the claims of {spec.get('paper')} are about top1; only those of "
            f"{' or '.join(_ANY_METRIC)} are judged by another metric"
        )
    if "sections" in spec:
        known = dict.fromkeys(row["section"] for row in published_rows(CLAIMS, spec["paper"]))
        for section in spec["sections"]:
            check_known(f"{place}.sections", section, known, f"section of {spec['paper']}")
    paper = spec.get("paper", "tramer2021")
    for dataset, role, features, entry in roles_of(spec):
        where = f"{place}.roles.{dataset}.{role}"
        check_known(f"{place}.roles", dataset, config["datasets"], "data set")
        check_known(f"{place}.roles.{dataset}", role, ROLES[paper], f"role of {paper}")
        check_known(f"{where}.features", features, config["features"], "feature set")
        check_known(f"{where}.entry", entry, config["methods"], "method entry")
    if spec["style"] == "claims":
        for number, row in enumerate(spec.get("searches", [])):
            check_known(f"{place}.searches[{number}].label", row["label"], MODELS, "model of tramer2021")


def check_models(place: str, spec: dict, config: dict) -> None:
    """Check the rows of a table of parameters.

    Raises:
        StudyError: an unknown name.
    """
    for number, row in enumerate(spec.get("models", [])):
        where = f"{place}.models[{number}]"
        if "dataset" in row:
            check_known(f"{where}.dataset", row["dataset"], config["datasets"], "data set")
        check_known(f"{where}.features", row["features"], config["features"], "feature set")
        check_known(f"{where}.entry", row["entry"], config["methods"], "method entry")
        if "published" in row:
            check_known(f"{where}.published", row["published"], table_4(), "model of tramer2021's Table 4")
