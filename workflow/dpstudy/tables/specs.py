"""Specs of tables and figures: filling in defaults, and checks by their styles before anything runs."""

import re
from collections.abc import Mapping

from dpstudy.core.errors import Mistakes, StudyError
from dpstudy.data.bands import group_names
from dpstudy.schema.reading import fill_defaults
from dpstudy.schema.spelling import as_numbers
from dpstudy.schema.validating import validate
from dpstudy.tables.checks import check_selected
from dpstudy.tables.keys import COMMON, rules
from dpstudy.tables.labels import fill_labels
from dpstudy.tables.style import Study, Style
from dpstudy.tables.styles import names, style_of, table_style

KINDS = ("tables", "figures")
EACH = "each"


def fill_specs(config: dict) -> None:
    """Validate every spec of a config against its style's keys, and fill in defaults and labels of lines.

    Raises:
        StudyError: the mistakes: the key, what is wrong with it, what is allowed.
    """
    mistakes = Mistakes()
    for kind in KINDS:
        config[kind] = {full: spec for name in config[kind] for full, spec in _one_a_column(config, kind, name).items()}
        for name, spec in config[kind].items():
            with mistakes.kept():
                _fill(kind, spec, f"{kind}.{name}")
    mistakes.tell()
    fill_labels(config)


def _one_a_column(config: dict, kind: str, name: str) -> dict[str, dict]:
    """A spec by its name; where its column is `each`, one for each column that groups come of, and for the labels where
    there are more than two or records may bear several: of two classes both have the same area.

    Raises:
        StudyError: nobody knows the columns before records are read.
    """
    spec = config[kind][name]
    if not isinstance(spec, dict) or spec.get("column") != EACH:
        return {name: spec}
    data = config["datasets"].get(spec.get("dataset"), {})
    columns = group_names(data) if data else None
    if columns is None:
        raise StudyError(f"{kind}.{name}.column: {EACH} needs a `dataset` whose config names the columns; name one")
    classes = data["classes"] if isinstance(data.get("classes"), list) else ()
    several = data.get("positives", 1) > 1 or len(data.get("label_columns", ())) > 1 or len(classes) > 2
    columns = [*columns, *(["label"] if config["evaluation"]["per_label"] and several else [])]
    texts = {key: spec[key] for key in ("caption", "title") if key in spec}
    named = {column: f"{name}-{re.sub('[^A-Za-z0-9_.-]', '-', column)}" for column in columns}
    taken = [full for full in named.values() if full in config[kind] or [*named.values()].count(full) > 1]
    if taken:
        raise StudyError(f"{kind}.{name}.column: {EACH} makes two of the name {taken[0]!r}; write them one by one")
    return {
        named[column]: spec
        | {"column": column}
        | {key: text.replace("{column}", "finding" if column == "label" else column) for key, text in texts.items()}
        for column in columns
    }


def _fill(kind: str, spec: dict, place: str) -> None:
    style = style_of(kind, spec, place)
    for key in spec:
        if key not in COMMON[kind] | dict(style.keys) and any(
            key in style_of(kind, {"style": other}).keys for other in names(kind)
        ):
            takes = ", ".join(style.keys) or "none of its own"
            raise StudyError(f"{place}.{key}: the style {spec['style']!r} does not take this key; it takes {takes}")
    shape = rules(kind, style.keys)
    spec |= as_numbers(spec, shape)
    validate(spec, shape, place)
    for key in style.needs:
        if key not in spec:
            raise StudyError(f"{place}: the key {key!r} is missing; the style {spec['style']!r} needs it")
    fill_defaults(spec, shape, shape)


def check_specs(study: Study) -> None:
    """Check the specs of a study: names that exist, cells that are there, published numbers that can be told.

    Raises:
        StudyError: the mistakes.
    """
    mistakes = Mistakes()
    for kind in KINDS:
        for name, spec in study.config[kind].items():
            with mistakes.kept():
                _check(f"{kind}.{name}", spec, style_of(kind, spec), study)
    with mistakes.kept():
        _check_judges(study.config["tables"])
    mistakes.tell()


def _check_judges(tables: Mapping[str, dict]) -> None:
    """Refuse two tables of one paper's claims, of which reports and recorded verdicts would have the first alone.

    Raises:
        StudyError: there are two.
    """
    first: dict[str, str] = {}
    for name, spec in tables.items():
        if table_style(spec).judges and first.setdefault(spec["paper"], name) != name:
            raise StudyError(
                f"tables.{name}: the claims of {spec['paper']} are judged by tables.{first[spec['paper']]} already; "
                "name the data sets of both in one"
            )


def _check(place: str, spec: dict, style: Style, study: Study) -> None:
    if place == "tables.all":
        raise StudyError(f"{place}: results/tables/all.tex is the document with every table; choose another name")
    check_selected(place, spec, style, study)
    style.check_spec(place, spec, study)
