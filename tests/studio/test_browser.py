"""The studio in a real browser: what a person does, what is seen, and that everybody can use it.

Screenshots are kept in build/studio, to be looked at.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from chromium import AXE, PICTURES, chromium, studio, why_not_here
from studio.stream import BILLIONS

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.skipif(bool(why_not_here()), reason=why_not_here() or "all is here")

WRONG = """SELECT *
WHERE Wind AS calm ; Temperature AS frost
FILTER calm[valeu < 0.5] AND frost[value < 0]
PARTITION BY [station]
WITHIN 20 MINUTES"""

DONE = """() => {
  const shown = document.querySelector("[role=tabpanel]:not([hidden])").textContent;
  return shown && !shown.includes("Asking…");
}"""
"""Whether the tab that is shown has been answered."""


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    directory = tmp_path_factory.mktemp("queries")
    with studio(directory=directory) as address:
        yield address


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as browser:
        yield browser


def opened(browser: Browser, address: str, *, scheme: Any = "light", width: int = 1360) -> Page:
    page = browser.new_page(viewport={"width": width, "height": 1000}, color_scheme=scheme)
    page.set_default_timeout(60_000)
    complaints: list[str] = []
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("console", lambda said: complaints.append(said.text) if said.type == "error" else None)
    page.goto(address)
    page.wait_for_selector(".answer table, .answer .empty")
    page.wait_for_selector("svg.automaton")
    assert complaints == []
    return page


@pytest.fixture
def page(browser: Browser, address: str) -> Iterator[Page]:
    page = opened(browser, address)
    yield page
    page.close()


def write(page: Page, text: str) -> None:
    page.locator(".cm-content").click()
    page.keyboard.press("ControlOrMeta+a")
    page.keyboard.insert_text(text)


def status(page: Page, said: str) -> None:
    page.locator(".status", has_text=said).wait_for()


def kept(page: Page, name: str) -> None:
    PICTURES.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=PICTURES / f"{name}.png", full_page=True)


def test_a_mistake_is_seen_under_the_text_and_mended_by_a_click(page: Page) -> None:
    write(page, WRONG)
    page.locator(".mistake", has_text="has no attribute valeu").wait_for()
    assert "did you mean value?" in page.locator(".mistake").inner_text()
    assert page.locator(".cm-lintRange-error").inner_text() == "valeu"
    kept(page, "mistake")
    page.locator(".mistake button").click()
    status(page, "complex events")
    assert page.locator(".mistake").count() == 0
    assert "calm[value < 0.5]" in page.locator(".cm-content").inner_text()
    assert page.locator(".answer tbody tr").count() > 3
    kept(page, "answer")


def test_what_is_typed_is_completed(page: Page) -> None:
    write(page, "SELECT * WHERE Wind AS calm FILTER calm[")
    page.keyboard.type("va")
    page.locator(".cm-tooltip-autocomplete li", has_text="value").wait_for()
    page.keyboard.press("Enter")
    assert "calm[value" in page.locator(".cm-content").inner_text()


def test_complex_event_number_a_billion_is_a_page_away(page: Page) -> None:
    write(page, BILLIONS)
    page.locator(".status b", has_text=re.compile(r"\d,\d{3},\d{3},\d{3} complex events")).wait_for()
    page.locator(".paging input").fill("1,000,000,000")
    page.locator(".paging input").press("Enter")
    page.get_by_role("button", name="Complex event 1,000,000,000:").wait_for()
    kept(page, "billion")
    page.get_by_role("button", name="Next page").click()
    page.get_by_role("button", name="Complex event 1,000,000,050:").wait_for()
    page.get_by_role("button", name="Last page").click()
    page.locator(".paging [role=status]", has_text="of").wait_for()


def test_a_complex_event_is_seen_in_the_automaton_and_its_event_told(page: Page) -> None:
    page.get_by_role("button", name="Complex event 4:").click()
    page.locator(".way", has_text="0 → 1").wait_for()
    assert page.locator(".state.on").count() >= 3
    page.locator(".answer tr.on .event-link").first.click()
    page.locator(".event", has_text="Wind").wait_for()
    kept(page, "chosen")


def test_why_an_answer_is_empty_is_found_out_by_leaving_out(page: Page) -> None:
    page.get_by_role("button", name="Nothing: why?").click()
    status(page, "0 complex events")
    page.locator(".empty button").click()
    page.locator(".why h3", has_text="No complex events").wait_for()
    kept(page, "why-not")
    without = page.locator(".reasons li", has_text="frost[value < -9]").get_by_role("button")
    without.click()
    page.locator(".answer table").wait_for()
    assert "-9" not in page.locator(".cm-content").inner_text()
    status(page, "complex event")


@pytest.mark.parametrize("tab", ["Funnel", "Partial matches", "Plan", "Code"])
def test_each_tab_shows_what_its_name_says(page: Page, tab: str) -> None:
    page.get_by_role("tab", name=tab).click()
    said = {
        "Funnel": "Humidity+ AS damp",
        "Partial matches": "partial matches",
        "Plan": "Predicates",
        "Code": "query.run(events",
    }
    page.locator("[role=tabpanel]:visible", has_text=said[tab]).wait_for()
    kept(page, f"tab-{tab.split(maxsplit=1)[0].lower()}")


def test_all_of_it_works_by_keyboard(page: Page) -> None:
    page.get_by_role("tab", name="Answer").focus()
    page.keyboard.press("ArrowRight")
    page.locator(".funnel li").first.wait_for()
    canvas = page.locator(".timeline canvas")
    canvas.focus()
    for key in ("+", "+", "ArrowRight", "n"):
        page.keyboard.press(key)
    page.locator(".event h3").wait_for()
    before = page.locator(".event h3").inner_text()
    page.keyboard.press("n")
    page.wait_for_function("before => document.querySelector('.event h3').textContent !== before", arg=before)


def test_a_query_is_saved_and_opened(page: Page) -> None:
    page.locator(".files summary").click()
    page.get_by_role("textbox", name="File to save").fill("frost")
    page.get_by_role("button", name="Save").click()
    page.locator(".menu li", has_text="frost.ceql").wait_for()
    page.locator(".cm-content").click()
    write(page, "SELECT * WHERE Wind")
    page.locator(".menu li button", has_text="frost.ceql").click()
    page.locator(".cm-content", has_text="PARTITION BY").wait_for()


def test_nothing_is_asked_of_the_network(browser: Browser, address: str) -> None:
    hosts: set[str] = set()
    page = browser.new_page()
    page.on("request", lambda request: hosts.add(request.url.split("/")[2]))
    page.goto(address)
    page.wait_for_selector(".answer table")
    assert hosts == {address.split("/")[2]}
    page.close()


@pytest.mark.skipif(not AXE.is_file(), reason="axe-core is not installed (npm ci in studio)")
@pytest.mark.parametrize(("scheme", "width"), [("light", 1360), ("dark", 1360), ("light", 700)])
def test_axe_finds_no_obstacles(browser: Browser, address: str, scheme: str, width: int) -> None:
    page = opened(browser, address, scheme=scheme, width=width)
    page.evaluate(AXE.read_text(encoding="utf-8"))
    page.get_by_role("button", name="Complex event 2:").click()
    page.locator(".way").wait_for()
    for tab in ("Answer", "Funnel", "Partial matches", "Why not?", "Plan", "Code"):
        page.get_by_role("tab", name=tab).click()
        page.wait_for_function(DONE)
        assert violations(page) == [], tab
    kept(page, f"page-{scheme}-{width}")
    write(page, WRONG)
    page.locator(".mistake").wait_for()
    assert violations(page) == []
    page.close()


def violations(page: Page) -> list[str]:
    """What axe complains of, rule by rule, with the elements."""
    found = page.evaluate("axe.run()")["violations"]
    return [f"{one['id']}: {[node['html'][:120] for node in one['nodes'][:3]]}" for one in found]


def test_files_are_given_by_their_names(browser: Browser, tmp_path: Path) -> None:
    import pyarrow.parquet

    from estero import demo

    pyarrow.parquet.write_table(demo.events(), tmp_path / "night.parquet")
    (tmp_path / "wind.ceql").write_text(
        "SELECT * WHERE Wind AS w FILTER w[value > $least]\n", encoding="utf-8"
    )
    arguments = ["night.parquet", "--type", "kind", "--time", "time", "--order", "id", "--query", "wind.ceql"]
    with studio(*arguments, directory=tmp_path) as address:
        page = browser.new_page()
        page.goto(address)
        status(page, "waits for values")
        page.get_by_role("textbox", name="$least").fill("3.5")
        status(page, "complex events")
        assert "night.parquet" in page.locator(".top").inner_text()
        page.close()
