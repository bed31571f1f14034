"""One table of the study, in the style that its spec names."""

import os
from collections.abc import Callable

from dpstudy.core.errors import StudyError
from dpstudy.tables.adjacencies import adjacencies_sheet, build_adjacencies_table
from dpstudy.tables.best import best_sheet, build_best_table
from dpstudy.tables.ceiling_table import build_ceiling_table, ceiling_sheet
from dpstudy.tables.claims_table import build_claims_table, claims_sheet
from dpstudy.tables.disparity import build_disparity_table, disparity_sheet
from dpstudy.tables.grouped import build_grouped_table
from dpstudy.tables.latex import build_table
from dpstudy.tables.membership import build_membership_table, membership_sheet
from dpstudy.tables.parameters import build_parameters_table, parameters_sheet
from dpstudy.tables.pilot import build_pilot_table, pilot_sheet
from dpstudy.tables.results import Results
from dpstudy.tables.searches import build_search_table, search_sheet
from dpstudy.tables.sheet import Sheet
from dpstudy.tables.side_by_side import build_side_by_side, side_by_side_sheet
from dpstudy.tables.splits import build_splits_table, splits_sheet

STYLES: dict[str, Callable[..., None]] = {
    "plain": build_table,
    "grouped": build_grouped_table,
    "best": build_best_table,
    "ceiling": build_ceiling_table,
    "claims": build_claims_table,
    "search": build_search_table,
    "parameters": build_parameters_table,
    "membership": build_membership_table,
    "disparity": build_disparity_table,
    "side_by_side": build_side_by_side,
    "adjacencies": build_adjacencies_table,
    "pilot": build_pilot_table,
    "splits": build_splits_table,
}


# What the report prints as text; "plain" and "grouped" lay accuracies out by epsilon, which it prints itself.
SHEETS: dict[str, Callable[..., Sheet]] = {
    "best": best_sheet,
    "ceiling": ceiling_sheet,
    "claims": claims_sheet,
    "search": search_sheet,
    "parameters": parameters_sheet,
    "membership": membership_sheet,
    "disparity": disparity_sheet,
    "side_by_side": side_by_side_sheet,
    "adjacencies": adjacencies_sheet,
    "pilot": pilot_sheet,
    "splits": splits_sheet,
}


def build(name: str, spec: dict, results: Results, tex_path: str | os.PathLike, csv_path: str | os.PathLike) -> None:
    """Write one table as .tex (to be \\input) and as .csv.

    Args:
        name: its key under `tables`.
        spec: its value there; `style` chooses among STYLES.
        results: the finished study.

    Raises:
        StudyError: an unknown style, or as the style's own function.
    """
    style = spec.get("style", "plain")
    if style not in STYLES:
        raise StudyError(f"table {name}: style {style!r} is unknown; there are {', '.join(STYLES)}")
    STYLES[style](name, spec, results, tex_path, csv_path)
