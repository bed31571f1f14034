"""The page in a real browser, where there is one: layout, console, links, sorting, unfolding, printing, dark mode."""

import os
import shutil

import pytest

from dpstudy.core.files import read_json, write_json
from dpstudy.report.claims import judge_paper
from tests.unit.report.test_page import build

sync_api = pytest.importorskip("playwright.sync_api")
BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
pytestmark = pytest.mark.skipif(BROWSER is None, reason="no Chromium or Chrome on the path")
PHONE, DESK = {"width": 360, "height": 740}, {"width": 1280, "height": 900}


@pytest.fixture(scope="module")
def browser():
    with sync_api.sync_playwright() as playwright:
        # Root in a container has no sandbox of its own; the page is ours.
        arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
        browser = playwright.chromium.launch(executable_path=BROWSER, args=arguments)
        yield browser
        browser.close()


@pytest.fixture
def page(browser, study, tmp_path):
    """open_page(**context options): the page of a study with groups and claims; the console must stay silent."""
    said, contexts = [], []
    for path in study.metrics.values():
        content = read_json(path)
        for row in content["seeds"]:
            row |= {"top1_low": row["top1"] - 2, "top1_high": row["top1"] + 2}
            row["groups"] = {"sex=F": {"n": 50, "top1": row["top1"] + 1}, "sex=M": {"n": 50, "top1": row["top1"] - 1}}
        write_json(path, content)
    build(
        study,
        claims=[judge_paper("anon_smoothing")],
        graph={"edges": [["prepare", "train", 2], ["train", "report", 1]]},
    )

    def open_page(**options):
        context = browser.new_context(offline=True, **options)
        contexts.append(context)
        opened = context.new_page()
        opened.on("console", lambda message: said.append(message.text))
        opened.on("pageerror", lambda error: said.append(str(error)))
        opened.on("request", lambda request: said.append(request.url) if request.url.startswith("http") else None)
        opened.goto((study.folder / "report.html").as_uri())
        return opened

    yield open_page
    for context in contexts:
        context.close()
    assert said == []


@pytest.mark.parametrize("viewport", [PHONE, DESK])
def test_nothing_is_wider_than_the_screen(page, viewport):
    opened = page(viewport=viewport)
    assert opened.evaluate("document.documentElement.scrollWidth") <= viewport["width"]
    for summary in opened.locator("summary").all():
        summary.click()
    assert opened.evaluate("document.documentElement.scrollWidth") <= viewport["width"]


def test_links_lead_to_sections_that_are_there(page):
    opened = page(viewport=DESK)
    links = opened.locator("nav a").all()
    assert len(links) == 7
    for link in links:
        link.click()
        target = opened.locator(link.get_attribute("href"))
        assert abs(target.bounding_box()["y"]) < DESK["height"], "scrolled to"


def test_a_click_on_a_head_sorts_and_another_sorts_the_other_way(page):
    opened = page(viewport=DESK)
    table = opened.locator("table.sortable").first
    column = "[...document.querySelector('table.sortable').tBodies[0].rows].map(row => row.cells[{}].dataset.order)"
    head = table.locator("thead th").nth(4)
    for direction in ("descending", "ascending"):
        head.locator("button").click()
        values = [float(value) for value in opened.evaluate(column.format(4))]
        assert values == sorted(values, reverse=direction == "descending") and len(set(values)) > 1
        assert head.get_attribute("aria-sort") == direction
    table.locator("thead th").nth(1).locator("button").click()
    values = opened.evaluate(column.format(1))
    assert values[-2:] == ["", ""] and "" not in values[:-2], "a missing cell comes last"
    table.locator("thead th").nth(0).locator("button").press("Enter")
    names = opened.evaluate(column.format(0))
    assert names == sorted(names) and table.locator("th[aria-sort]").count() == 1


def test_verdicts_sort_as_words(page):
    opened = page(viewport=DESK)
    opened.locator("#claims-anon_smoothing summary").click()
    table = opened.locator("#claims-anon_smoothing table")
    table.locator("thead button").nth(1).click()
    verdicts = table.locator("tbody td:nth-child(2)").all_inner_texts()
    assert len(verdicts) == 20 and verdicts == sorted(verdicts) and len(set(verdicts)) > 1


def test_a_figure_is_drawn_inside_the_window_and_its_numbers_unfold_below(page):
    opened = page(viewport=PHONE)
    picture = opened.locator("figure img").first
    picture.scroll_into_view_if_needed()
    assert picture.evaluate("image => image.complete && image.naturalWidth") > 0, "the SVG loads"
    box = picture.bounding_box()
    assert box["x"] >= 0 and box["x"] + box["width"] <= PHONE["width"]
    numbers = opened.locator("details", has_text="The numbers of this figure").first
    assert numbers.locator("table").is_hidden()
    numbers.locator("summary").click()
    assert numbers.locator("tbody tr").count() == 14
    for row in numbers.locator("tbody tr").all():
        cells = row.locator("td").all_inner_texts()
        assert " ± " in cells[3] and "–" in cells[4], "mean, standard deviation and interval"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_texts_can_be_read_in_both_schemes(page, scheme):
    axe = pytest.importorskip("axe_playwright_python.sync_playwright")
    opened = page(viewport=DESK, color_scheme=scheme)
    for summary in opened.locator("summary").all():
        summary.click()
    ground = opened.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (sum(map(int, ground[4:-1].split(","))) < 200) == (scheme == "dark")
    found = axe.Axe().run(opened)
    assert found.violations_count == 0, found.generate_report()
    assert "color-contrast" in {rule["id"] for rule in found.response["passes"]}, (
        "axe gives up on colours it cannot read"
    )


def test_print_unfolds_everything_and_hides_what_is_for_the_screen(page):
    opened = page(viewport=DESK)
    assert opened.pdf()[:4] == b"%PDF"
    assert opened.evaluate("[...document.querySelectorAll('details')].every(part => part.open)")
    opened.emulate_media(media="print")
    assert opened.locator("nav").is_hidden()
