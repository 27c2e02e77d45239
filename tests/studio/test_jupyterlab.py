"""The widget in a real JupyterLab: a query is typed, its answer seen, and one that takes too long stopped."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from chromium import PICTURES, chromium
from jupyterlab import jupyterlab, why_not_here
from studio.stream import BILLIONS

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.skipif(bool(why_not_here()), reason=why_not_here() or "all is here")

CELLS = [
    """import estero
from estero import demo
widget = estero.query(demo.QUERY).explore(demo.events(), type="kind", time="time", order=["id"])
widget""",
    "print(widget.text.split()[-1], 6 * 7)",
]
ENDLESS = f"{BILLIONS} FILTER a.value + b.value + c.value + d.value < -99"
TYPED = "SELECT * WHERE Wind AS calm FILTER calm[value < 0.5] WITHIN 7 MINUTES"


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as browser:
        yield browser


def write(page: Page, text: str) -> None:
    page.locator(".estero-studio .cm-content").click()
    page.keyboard.press("ControlOrMeta+a")
    page.keyboard.insert_text(text)


def kept(page: Page, name: str) -> None:
    PICTURES.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=PICTURES / f"{name}.png")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_query_is_typed_answered_and_stopped_in_jupyterlab(
    browser: Browser, tmp_path: Path, scheme: str
) -> None:
    theme = f"JupyterLab {scheme.capitalize()}"
    with jupyterlab(tmp_path, CELLS, theme=theme) as address:
        page = browser.new_page(viewport={"width": 1500, "height": 1700})
        page.set_default_timeout(60_000)
        complaints: list[str] = []
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.goto(address)
        page.locator(".jp-Cell .cm-content").first.click()
        page.keyboard.press("Shift+Enter")
        studio = page.locator(".estero-studio")
        status = studio.locator(".status")
        status.filter(has_text="45 complex events").wait_for()
        assert studio.get_attribute("data-scheme") == scheme
        studio.locator("svg.automaton").wait_for()
        kept(page, f"jupyterlab-{scheme}")

        write(page, ENDLESS)
        studio.get_by_role("button", name="Stop").click()
        status.filter(has_text="cancelled").wait_for()
        write(page, TYPED)
        status.filter(has_text="complex events").wait_for()

        # The kernel is free, and has the text; keys on the timeline are not those of the notebook.
        canvas = studio.locator(".timeline canvas")
        canvas.focus()
        for key in ("0", "0", "n"):
            page.keyboard.press(key)
        studio.locator(".event h3").wait_for()
        assert page.locator(".jp-Dialog").count() == 0
        page.locator(".jp-CodeCell .jp-InputArea .cm-content").last.click()
        page.keyboard.press("Shift+Enter")
        page.locator(".jp-OutputArea-output", has_text="MINUTES 42").wait_for()
        kept(page, f"jupyterlab-{scheme}-typed")
        assert complaints == []
        page.close()
