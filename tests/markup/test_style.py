"""The style sheet: its colours are those of pictures and studio, and it is about nothing else on a page."""

from __future__ import annotations

import re

from estero.markup.colours import DARK_PALETTE, PALETTE
from estero.markup.style import shown
from repository import REPOSITORY

SHEET = shown().split("<style>")[1].split("</style>")[0]


def palettes(sheet: str) -> list[tuple[str, ...]]:
    colours = re.findall(r"--c\d: (#[0-9a-f]{6})", sheet)
    return [tuple(colours[i : i + len(PALETTE)]) for i in range(0, len(colours), len(PALETTE))]


def luminance(colour: str) -> float:
    """The relative luminance of WCAG 2."""
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def test_light_is_the_rule_and_both_can_be_chosen() -> None:
    assert palettes(SHEET) == [PALETTE, DARK_PALETTE, PALETTE, DARK_PALETTE]
    assert "@media (prefers-color-scheme: dark) { .estero {" in SHEET
    assert '[data-jp-theme-light="false"] .estero, .vscode-dark .estero' in SHEET


def test_the_studio_has_the_same_colours() -> None:
    studio = (REPOSITORY / "studio" / "src" / "style.css").read_text(encoding="utf-8")
    assert palettes(studio) == [PALETTE, DARK_PALETTE]


def test_every_rule_is_about_what_estero_shows() -> None:
    rules = SHEET.split("*/", 1)[1]
    for selectors in re.findall(r"([^{}]+)\{", rules):
        assert all(selector.strip().startswith(".estero.estero") for selector in selectors.split(","))
    assert SHEET.count("{") == SHEET.count("}")


def test_texts_can_be_read_on_their_ground() -> None:
    light, dark = (re.findall(r"\.estero \{ (color-scheme.*?) \}", SHEET))[:2]
    for scheme in (light, dark):
        colours = dict(re.findall(r"--(\w+): [^;]*?(#[0-9a-f]{6})\)*;", scheme))
        for ground in ("panel", "band"):
            for ink in ("ink", "quiet", "keyword", "string", "digits", "function", "accent"):
                assert contrast(colours[ink], colours[ground]) >= 4.5, (ink, ground)
