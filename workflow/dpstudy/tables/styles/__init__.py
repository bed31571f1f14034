"""Styles of tables and figures: a spec's `style` names a module here, which has an object STYLE.

No list of them is kept in code: a new style is a new file, and makes nothing stale that others have made.
"""

import importlib
import pkgutil
from collections.abc import Mapping
from typing import cast

from dpstudy.schema.messages import check_known
from dpstudy.tables.style import FigureStyle, Style, TableStyle

USUAL = {"tables": "plain", "figures": "epsilons"}  # where a spec names none


def names(kind: str) -> list[str]:
    """The names of all styles of `tables` or `figures`."""
    return sorted(style.name for style in pkgutil.iter_modules(importlib.import_module(f"{__name__}.{kind}").__path__))


def module_of(kind: str, spec: Mapping) -> str:
    """The import path of the style that a spec names."""
    return f"{__name__}.{kind}.{spec.get('style', USUAL[kind])}"


def style_of(kind: str, spec: Mapping, place: str = "") -> Style:
    """The style that a spec names.

    Args:
        kind: tables or figures.
        place: where the spec stands, for the message.

    Raises:
        StudyError: there is none.

    >>> style_of("tables", {"style": "grouped"}).needs
    ('groups', 'rows')
    """
    name = spec.get("style", USUAL[kind])
    check_known(f"{place or kind}.style", name, names(kind), f"style of {kind}")
    return importlib.import_module(f"{__name__}.{kind}.{name}").STYLE


def table_style(spec: Mapping) -> TableStyle:
    """The style of a table's spec."""
    return cast(TableStyle, style_of("tables", spec))


def figure_style(spec: Mapping) -> FigureStyle:
    """The style of a figure's spec."""
    return cast(FigureStyle, style_of("figures", spec))
