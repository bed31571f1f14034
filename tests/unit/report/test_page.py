import base64
import dataclasses
import re
from html.parser import HTMLParser

import pytest

from dpstudy.core.errors import StudyError
from dpstudy.core.files import read_json, write_json
from dpstudy.data import own
from dpstudy.report.claims import judge_paper
from dpstudy.report.page import Making, Privacy, build_report
from dpstudy.tables.words import audit_in_words, bounds_in_words, event_in_words, ledger_in_words, total_in_words

PUBLISHED = {"paper": "tramer2021", "table": "1", "dataset": "MNIST", "model": "linear", "method": "DP-SGD"}
TOTAL = {"delta": 1e-5, "cells": 14, "seeds": 42, "epsilon": None, "accountant": "RDP (dp-accounting)", "unbounded": 4}
TOTAL |= {"epsilon_of_proved": 31.4159}
TABLES = {
    "all": {"caption": "<b>bold</b> & everything"},
    "one": {
        "caption": "Beside the paper",
        "rows": [{"features": "scatternet", "entry": "dp-sgd", "label": "ScatterNet", "published": PUBLISHED}],
    },
}
FIGURES = {"accuracy": {"dataset": "mnist", "title": "Accuracy on MNIST"}}
VOID = {"meta", "img", "br", "link", "input", "path", "line", "circle", "rect"}


class Page(HTMLParser):
    """Collects the elements, and fails on a tag that closes another."""

    def __init__(self, text):
        super().__init__()
        self.open, self.elements, self.text = [], [], []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)


MAKING = Making("abc", "def", {"numpy": "2.4.0"})
GLYPHS = {"drop": "private", "method": "squares", "rule": {}}


def build(study, name="report", graph=None, making=MAKING, **more):
    """The page of a finished study, as text."""
    page = study.folder / f"{name}.html"
    privacy = Privacy(totals={"mnist": TOTAL}, dedup={"glyphs": GLYPHS})
    if graph:
        write_json(study.folder / "benchmarks" / "graph.json", graph)
        times = "s\tmax_rss\tcpu_time\tresources\n2.5\t300\t2\t{'mem_mb': 400}\n"
        (study.folder / "benchmarks" / "train").mkdir(exist_ok=True)
        (study.folder / "benchmarks" / "train" / "a.tsv").write_text(times)
        folder = study.folder / "benchmarks"
        making = dataclasses.replace(making, benchmarks=folder, graph=folder / "graph.json")
    pictures = {"accuracy": study.folder / "accuracy.svg"}
    pictures["accuracy"].write_text('<svg xmlns="http://www.w3.org/2000/svg" width="640" height="360"/>')
    build_report("digits", study.results, TABLES, FIGURES, pictures, page, making=making, privacy=privacy, **more)
    return page.read_text(encoding="utf-8")


def test_it_is_well_formed_and_fetches_nothing(study):
    text = build(study)
    page = Page(text)
    assert not re.search(r"https?:|//[a-z]|@import|url\(", re.sub(r"base64,[^\"]*|^\s*//.*$", "", text, flags=re.M))
    for tag, attributes in page.elements:
        assert tag not in ("link", "iframe", "object", "base")
        assert tag != "script" or not attributes
        for key in ("src", "href"):
            allowed = ("data:image/svg+xml;base64,", "#", *(("../tables/", "../figures/") if tag == "a" else ()))
            assert key not in attributes or attributes[key].startswith(allowed)
    ids = [attributes["id"] for _, attributes in page.elements if "id" in attributes]
    assert len(ids) == len(set(ids))
    links = {attributes["href"] for tag, attributes in page.elements if tag == "a"}
    assert {"../tables/all.csv", "../tables/all.tex"} < links
    assert {link[1:] for link in links if link[0] == "#"} <= set(ids)


def test_it_says_when_and_with_what_it_was_made_and_the_settings_of_each_cell(study):
    for path in study.metrics.values():
        settings = {"steps": 3, "clipping": {"norm": 1.5, "each": True}, "network": "<b>"}
        write_json(path, read_json(path) | {"hyperparameters": settings})
    text = build(study, making=dataclasses.replace(MAKING, date="2026-11-27 08:00", commit="abc123 with changes"))
    assert "<dt>date</dt><dd>2026-11-27 08:00</dd>" in text and "<code>abc123 with changes</code>" in text
    told = "Hyper-parameters: <code>clipping: {each: true, norm: 1.5}, network: &lt;b&gt;, steps: 3</code>"
    assert text.count(told) == len(study.metrics)


def test_it_serves_phones_dark_mode_print_and_screen_readers(study):
    text = build(study)
    page = Page(text)
    assert ("html", {"lang": "en"}) in page.elements
    assert any(attributes.get("name") == "viewport" for _, attributes in page.elements)
    assert all(needle in text for needle in ("prefers-color-scheme: dark", "@media print", "overflow-x: auto"))
    images = [attributes for tag, attributes in page.elements if tag == "img"]
    assert len(images) == 1 and "Accuracy on MNIST" in images[0]["alt"]
    assert all("aria-labelledby" in attributes for tag, attributes in page.elements if tag == "section")


def test_a_figure_of_another_style_is_its_picture(study):
    (study.folder / "a.svg").write_bytes(b"picture")
    figures = {"a": {"style": "curve", "title": "Training"}}
    page = study.folder / "p.html"
    build_report("s", study.results, {}, figures, {"a": study.folder / "a.svg"}, page, making=MAKING)
    (image,) = [attributes for tag, attributes in Page(page.read_text()).elements if tag == "img"]
    assert base64.b64decode(image["src"].partition(",")[2]) == b"picture" and image["alt"].startswith("Training: top-1")


def test_below_a_figure_stand_its_bars_once_and_the_facts_of_its_cells(study):
    text = build(study, cells={"accuracy": list(study.metrics)})
    (caption,) = re.findall("<figcaption>(.*)</figcaption>", text)
    assert caption == (
        "Accuracy on MNIST: top-1 accuracy (%) against the target ε; mean over seeds, bars are 95 % intervals over "
        "seeds and test records (of a single seed: over these alone), where there is none one standard deviation over "
        "seeds. mnist: n = 60,000 records to learn from; ε at δ = 1e-5 is about adding or removing one record "
        "(accountant: pld); 3 seeds."
    )


def test_what_a_user_writes_is_escaped(study):
    text = build(study)
    assert "&lt;b&gt;bold&lt;/b&gt; &amp; everything" in text and "<b>" not in text


def test_it_says_the_numbers_the_guarantees_and_the_spend(study):
    words = re.sub(r"\s+", " ", "".join(Page(build(study)).text))
    assert "97.1 ± 0.4 published 98.1 (−1.0)" in words
    assert "≤ 1.199 proved" in words and "no guarantee" in words
    assert (
        "cut to a length and added up): gaussian mechanism, noise multiplier 1.25 (sensitivity 0.1), released 375 times"
        in words
    )
    assert "Poisson sample with rate 0.06827" in words
    assert "4 of the cells have no proved guarantee; without those, ε is at most 31.42" in words
    assert "Private records that match a fixed public set are dropped" in words
    assert "numpy2.4.0" in words.replace(" ", "")


def test_a_second_build_gives_the_same_bytes(study):
    assert build(study, "a") == build(study, "b")


def test_a_missing_figure_is_named(study):
    figures = {"shares": {"style": "disparity", "dataset": "mnist", "column": "sex"}}
    with pytest.raises(StudyError, match="figure shares: its SVG is missing"):
        build_report("digits", study.results, {}, figures, {}, study.folder / "x.html", making=MAKING)
    assert not (study.folder / "x.html").exists()


def test_every_style_of_table_is_on_the_page(paper_study):
    paper = {"groups": paper_study.GROUPS, "rows": paper_study.ROWS, "published": {"paper": "mehta2023"}}
    paper |= {"counterparts": {"cifar10": {"table": "3", "dataset": "CIFAR-10"}}}
    best = paper | {"style": "best", "published": {"paper": "mehta2023", "table": "1"}, "caption": "The best"}
    tables = {"t3": paper | {"style": "grouped", "dataset": "cifar10"}, "t1": best}
    page = paper_study.folder / "report.html"
    build_report("paper", paper_study.results, tables, {}, {}, page, making=MAKING)
    parsed = Page(page.read_text(encoding="utf-8"))
    words = re.sub(r"\s+", " ", " ".join(parsed.text))
    assert "DP-FC, epochs: 10 ImageNet-1k 82.0 ± 0.3" in words and "published 91.1 (+0.9)" in words
    assert "The best" in words and "Bu et al. (2022a)" in words and "98.8 (−2.3)" in words
    assert sum(tag == "table" for tag, _ in parsed.elements) == 2


def test_audits_whose_records_are_scored_and_what_nobody_can_repeat_are_told(study):
    audit = {
        "audits": [
            {
                "bound": "clopper-pearson",
                "adjacency": "replace-one",
                "statistic": "likelihood ratio of a point",
                "runs": 1000,
                "confidence": 0.999,
                "epsilon_lower": 4.8736,
            }
        ],
        "epsilon_certified": None,
        "verdict": "refuted: epsilon is at least 4.87, and 2 is claimed.",
    }
    name = next(iter(study.ledgers))
    write_json(study.folder / "audit.json", audit)
    write_json(study.folder / "secure.json", study.ledger("2", 1.9) | {"noise": "secure"})
    ledgers = study.ledgers | {name: study.folder / "secure.json"}
    results = dataclasses.replace(study.results, ledgers=ledgers, audits={name: study.folder / "audit.json"})
    page = study.folder / "page.html"
    build_report(
        *("digits", results, {}, {}, {}, page),
        making=MAKING,
        privacy=Privacy(public_tests={"mnist": True, "clinic": False}),
    )
    words = re.sub(r"\s+", " ", " ".join(Page(page.read_text(encoding="utf-8")).text))
    assert words.count("Audit: refuted: epsilon is at least 4.87, and 2 is claimed.") == 1
    attack = "(likelihood ratio of a point; replace-one, 1000 runs, confidence 0.999)."
    assert f"ε ≥ 4.87, from the rates of its two errors alone, by Clopper-Pearson {attack}" in words
    repeatable, gone = "the same config, seeds and versions give the same numbers", "another run gives other numbers"
    assert gone in words and repeatable not in words
    assert "Not for publication" in words and "Not for publication" not in build(study)
    assert repeatable in build(study) and gone not in build(study)
    assert "mnist The test split is public" in words and "clinic The test split holds private records" in words


@pytest.mark.parametrize(
    ("options", "public"),
    [
        ({"reader": "cifar"}, True),
        ({"reader": "image_table"}, False),
        ({"reader": "image_table", "test_split": "public"}, True),
        ({"reader": "chexpert", "test_split": "private"}, False),
    ],
)
def test_a_users_own_test_records_are_taken_for_private(options, public):
    assert own.test_is_public(options) is public


def test_a_claimed_guarantee_is_not_told_as_a_proof(study):
    words = ledger_in_words(study.ledger("2", 1.9) | {"guarantee": "claimed"})
    assert "not proved" in words["summary"]
    assert ledger_in_words(study.ledger("inf", None))["summary"] == "No privacy guarantee."


def test_events_within_events():
    inner = {"name": "fit", "mechanism": "gaussian", "noise_multiplier": 2, "sensitivity": 1, "count": 1}
    inner |= {"sampling": "none", "sampling_rate": 1}
    text = event_in_words(
        {"name": "pick", "mechanism": "repeat-and-select", "count": 1, "sampling": "none", "events": [inner]}
    )
    assert "It repeats: fit: gaussian mechanism, noise multiplier 2 (sensitivity 1), released once" in text


def test_groups_that_take_turns_are_told():
    event = {"name": "gradient", "mechanism": "gaussian", "noise_multiplier": 2, "sensitivity": 1, "count": 3}
    event |= {"sampling": "poisson", "sampling_rate": 0.4, "params": {"bands": 4}}
    said = "3 times, each time in 4 steps on Poisson samples with rate 0.4, of 4 groups of units in turn"
    assert said in event_in_words(event)


def test_a_bounded_total():
    total = TOTAL | {"unbounded": 0, "epsilon": 12.3}
    assert total_in_words(total | {"epsilon_of_proved": 12.3}).startswith(
        "14 cells, 42 trained models: ε is at most 12.3"
    )


def test_where_a_column_mixes_guarantees_the_weaker_cells_are_marked(study):
    assert '<span class="badge mixed">' not in build(study)
    write_json(study.ledgers["mnist/pixels/ls/eps=2"], study.ledger("2", None))
    text = build(study)
    assert '<span class="badge mixed">mixed</span>' in text
    assert re.search(r'92\.1 ± 0\.4 *<span class="badge none">no guarantee</span>', text.replace("\n", " "))


def test_what_bounds_a_contribution_and_what_attacks_looked_at_is_told(study):
    bounds = {"records": 3, "positives": 1, "beyond": "truncate"}
    told = ledger_in_words(study.ledger("2", 1.9) | {"bounds": bounds})["noise"]
    assert "Of a person at most 3 records were learned from. A record counts with at most 1 label; those" in told
    assert "cut down" in told
    assert "would have been refused" in bounds_in_words({"positives": 2, "beyond": "refuse"})[0]
    attack = {
        "epsilon_lower": 1.0,
        "bound": "clopper-pearson",
        "statistic": "s",
        "adjacency": "replace-one",
        "runs": 9,
        "confidence": 0.9,
    }
    audit = {"audits": [attack], "verdict": "refuted"}
    assert "statistics of those that no ledger accounts for" in audit_in_words(audit, "claimed")[-1]
    assert len(audit_in_words(audit, "proved")) == 2


def test_rules_are_drawn_with_what_their_jobs_took(study):
    words = re.sub(r"\s+", " ", " ".join(Page(build(study, graph={"edges": [["train", "build_report", 1]]})).text))
    assert "train 1 job, 2.5 s" in words and "train 1 2.5 s 2.5 s 2.0 s 300 400" in words
    assert "no ledger accounts for" in words
    assert "Time and memory" not in "".join(Page(build(study)).text)


def test_claims_are_on_the_page_with_verdicts(study):
    judged = judge_paper("anon_smoothing")
    text = build(study, claims=[judged])
    words = re.sub(r"\s+", " ", " ".join(Page(text).text))
    assert len(judged["rows"]) == sum(judged["counts"].values()) == 20
    assert f"anon_smoothing: {judged['counts']['holds']} hold" in words.replace("holds,", "hold,")
    assert "No cell of this study stands beside its experiments." in words
    assert text.count('<span class="badge fails">does not hold') == judged["counts"]["does not hold"] > 0
    assert 'href="#claims"' in text and 'href="#claims"' not in build(study)


def test_how_duplicates_are_found_is_told_but_not_how_many(study):
    aligned = {"drop": "public", "method": "aligned", "rule": {"possible": 0.9}}
    page = study.folder / "p.html"
    privacy = Privacy(dedup={"a": aligned, "b": GLYPHS})
    build_report("s", study.results, {}, {}, {}, page, making=MAKING, privacy=privacy)
    words = re.sub(r"\s+", " ", " ".join(Page(page.read_text()).text))
    assert (
        "which no ledger accounts for. Two images match if, laid on each other, they correlate by 0.997 or more"
        in words
    )
    assert "For the owner alone" not in words
    for public, told in ((True, False), (False, True)):
        counted = {"drop": "private", "sets": [], "calibration": []}
        counted["sets"] = [{"side": "private", "dataset": "own", "split": "train", "rows": 1560, "dropped": 456}]
        holes, tests = {"own": (3, 1560)}, {"own": public}
        privacy = Privacy(dedup={"b": GLYPHS}, counted={"b": counted}, public_tests=tests, unreadable=holes)
        build_report("s", study.results, {}, {}, {}, page, making=MAKING, privacy=privacy)
        text = re.sub(r"\s+", " ", " ".join(Page(page.read_text()).text))
        assert ("456 of 1,560 private records of own/train (29 %)" in text) == ("Not for publication" in text) == told
        assert ("and how many private records matched" in text) == told
        assert ("Of its 1,560 images 3 cannot be read" in text) == told
    assert "or by 0.9 where they stand out" in words and "small grey squares of them correlate by 0.99 or more" in words


def test_two_bounds_of_one_attack_are_told_apart():
    entry = {"statistic": "s", "adjacency": "a", "runs": 10, "confidence": 0.9, "epsilon_lower": 1.0}
    audits = [entry | {"bound": bound} for bound in ("clopper-pearson", "gaussian-dp", "one-run")]
    said = audit_in_words({"verdict": "consistent", "audits": audits})
    assert len(set(said)) == 4 and said[2].startswith(
        "ε ≥ 1.00, from the same, knowing that the noise is Gaussian (s; a"
    )
