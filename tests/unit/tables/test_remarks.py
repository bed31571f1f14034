"""Tables and figures say which of their cells come from a search that nobody paid for, and which are about another
adjacency."""

import pytest

from dpstudy.config.loading import load
from dpstudy.config.tuned import unpaid_searches
from dpstudy.core.files import read_json, write_json
from dpstudy.tables.accuracies import notes
from dpstudy.tables.layout import lay_out
from dpstudy.tables.remarks import remarks
from dpstudy.tables.styles import figure_style
from dpstudy.tables.styles.tables.grouped import notes as grouped_notes
from dpstudy.tables.styles.tables.plain import to_latex

SPEC = {"dataset": "mnist", "epsilons": ["1.2", "inf"]}
SEARCHED = "Hyper-parameters were searched on validation records of the private data, which no ledger accounts for"
ZEROED = "ε is about leaving one place empty (zero-out), not about adding or removing"


def tune(study, entry, epsilon="1.2", **more):
    for features in study.axes["features"]:
        path = study.metrics[f"mnist/{features}/{entry}/eps={epsilon}"]
        write_json(path, read_json(path) | {"tuning": {"trials": 10} | more})


def zero_out(study, cell):
    path = study.ledgers[cell]
    write_json(path, read_json(path) | {"adjacency": "zero-out"})


def test_a_table_without_either_has_no_such_note(study):
    assert remarks(lay_out("t", SPEC, study.results)) == []


def test_rows_that_were_searched_are_named(study):
    tune(study, "dp-sgd")
    table = lay_out("t", SPEC, study.results)
    assert remarks(table) == [f"{SEARCHED}: dp-sgd, pixels; dp-sgd, scatternet."]
    assert remarks(table)[0] in notes(table) and remarks(table)[0] in grouped_notes(table)
    assert "which no ledger accounts for: dp-sgd, pixels" in to_latex(table)


def test_where_all_were_searched_no_row_is_named(study):
    tune(study, "dp-sgd")
    tune(study, "ls")
    assert remarks(lay_out("t", SPEC, study.results)) == [f"{SEARCHED}."]


@pytest.mark.parametrize(("epsilon", "more"), [("inf", {}), ("1.2", {"pay": {"how": "choice"}})])
def test_a_search_that_is_paid_for_or_of_a_cell_without_privacy_is_none(study, epsilon, more):
    tune(study, "dp-sgd", epsilon, **more)
    assert remarks(lay_out("t", SPEC, study.results)) == []


def test_rows_about_another_adjacency_are_named(study):
    zero_out(study, "mnist/pixels/ls/eps=1.2")
    spec = SPEC | {"rows": [{"features": "pixels", "entry": "ls", "label": "shuffled & all"}]}
    assert remarks(lay_out("t", SPEC, study.results)) == [f"{ZEROED}: ls, pixels."]
    assert remarks(lay_out("t", spec, study.results)) == [f"{ZEROED}."]
    spec["rows"].append({"features": "pixels", "entry": "dp-sgd"})
    table = lay_out("t", spec, study.results)
    assert remarks(table) == [f"{ZEROED}: shuffled & all."]
    assert r"shuffled \& all." in to_latex(table) and r"shuffled \& all." in " ".join(grouped_notes(table))


LINES = [{"dataset": "mnist", "features": "f", "epsilon": "1", "entry": entry} for entry in ("a", "c")]


@pytest.mark.parametrize(
    ("spec", "named"),
    [
        ({}, "a, b"),
        ({"entries": ["b", "c"]}, "b"),
        ({"entries": ["c"]}, None),
        ({"style": "curve", "panels": [{"lines": LINES}]}, "a"),
        ({"style": "search", "searches": [{"cells": LINES}]}, None),
        ({"style": "size", "panels": [{"lines": [{"entries": ["c"]}]}]}, None),
    ],
)
def test_a_figure_names_the_entries_that_it_draws(spec, named):
    axes = {"datasets": ["mnist"], "features": ["f"], "entries": ["a", "b", "c"], "searched": ["a", "b"]}
    caption = figure_style(spec).caption(spec, axes, "the numbers stand below")[0]
    assert ("searched on validation records" in caption) == (named is not None)
    if named:
        assert f" The hyper-parameters of {named} were searched on" in caption


def test_which_entries_of_a_study_are_searched_and_do_not_pay():
    space = {"learning_rate": {"low": 0.1, "high": 1.0}}
    entry = {"method": "first_order", "learning_rate": 1.0, "clipping_norm": 1.0, "batch_size": 10, "epochs": 1}
    config = {
        "study": "s",
        "data_root": "data",
        "datasets": {"toy": {"reader": "digits", "splits": {"validation": 0.2}, "delta": "1e-4"}},
        "features": {"pixels": {"extractor": "pixels"}},
        "methods": {
            "paid": entry | {"tuning": {"trials": 2, "space": space, "pay": "repeats", "sampler": "random"}},
            "free": entry | {"tuning": {"trials": 2, "space": space}},
            "fixed": entry,
            "control": entry | {"tuning": {"trials": 2, "space": space}, "sanitise": "none"},
            "overridden": entry,
        },
        "overrides": [{"match": {"entry": "overridden"}, "set": {"tuning": {"trials": 2, "space": space}}}],
        "epsilons": ["1", "inf"],
        "seeds": [0],
    }
    assert unpaid_searches(load(config)) == ["free", "overridden"]


def test_scores_of_private_test_records_are_told_in_tables_and_figures(study):
    said = "Scores on mnist are statistics of private test records, which no ledger accounts for."
    assert said not in notes(lay_out("t", SPEC, study.results))
    study.axes = study.axes | {"private_tests": ["mnist", "another"]}
    assert said in notes(lay_out("t", SPEC, study.results))
    assert said in to_latex(lay_out("t", SPEC, study.results))
    axes = {"datasets": ["mnist", "open"], "features": ["f"], "entries": ["a"], "private_tests": ["mnist"]}
    for spec, told in (({}, True), ({"dataset": "open"}, False), ({"datasets": ["open", "mnist"]}, True)):
        assert (said in figure_style(spec).caption(spec, axes, "below")[0]) == told
    lines = {"style": "curve", "panels": [{"lines": [{"dataset": "open", "entry": "a"}]}]}
    assert said not in figure_style(lines).caption(lines, axes, "below")[0]
    by_group = {"style": "disparity", "dataset": "mnist", "column": "sex"}
    assert said in figure_style(by_group).caption(by_group, axes, "below")[0]
