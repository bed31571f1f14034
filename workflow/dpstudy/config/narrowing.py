"""A part of a study: some of its tables and figures, and only the cells that they need."""

from collections.abc import Mapping

from dpstudy.config.cells import AXES, unfold
from dpstudy.schema.messages import check_known
from dpstudy.tables.selecting import listed
from dpstudy.tables.style import Study
from dpstudy.tables.styles import style_of, table_style


def narrow(config: dict) -> dict:
    """The config with only the tables and figures that its key `only` names, and the cells that they need.

    Nothing else of the study changes, so that what is made for a part is made for the whole: its cells are found there.

    Args:
        config: checked and filled in.

    Raises:
        StudyError: `only` names what is neither a table nor a figure.
    """
    if "only" not in config:
        return config
    names, known = listed(config["only"]), {**config["tables"], **config["figures"]}
    for name in names:
        check_known("only", name, known, "table or figure")
    part = {key: value for key, value in config.items() if key != "only"}
    for kind in ("tables", "figures"):
        part[kind] = {name: spec for name, spec in config[kind].items() if name in names}
    study = study_of(config)
    specs = [(kind, spec) for kind in ("tables", "figures") for spec in part[kind].values()]
    wanted = {cell for kind, spec in specs for cell in style_of(kind, spec).cells(spec, study)}
    cells = [cell for name, cell in study.cells.items() if name in wanted]
    part["cells"] = [{key: [getattr(cell, axis)] for axis, key, _, _ in AXES} for cell in cells]
    papers = [paper for paper in config["report"]["claims"] if paper in judged_papers(part["tables"])]
    return part | {"report": config["report"] | {"claims": papers}}


def study_of(config: dict) -> Study:
    """A checked config with its cells, as table and figure styles take it."""
    return Study(config, {cell.path: cell for cell in unfold(config)})


def judged_papers(tables: Mapping[str, Mapping]) -> list[str]:
    """The papers whose claims some tables judge by the study's cells."""
    return list(dict.fromkeys(spec["paper"] for spec in tables.values() if table_style(spec).judges))
