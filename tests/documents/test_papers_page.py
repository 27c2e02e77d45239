"""The page that leads from the papers to the code names files and definitions that are there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import estero

HOUSE = Path(estero.__file__).parent
PAGE = Path(__file__).parents[2] / "docs" / "papers.md"
ROWS = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("| ")]
PATHS = re.compile(r"`([a-z_/]+\.py)`((?:(?:, |: | )`\w+`)*)")


@pytest.mark.parametrize("row", [row for row in ROWS if PATHS.search(row)])
def test_a_row_names_what_is_there(row: str) -> None:
    for path, names in PATHS.findall(row):
        text = (HOUSE / path).read_text(encoding="utf-8")
        for name in re.findall(r"\w+", names):
            assert re.search(rf"\b{name}\b", text), f"{path} has no {name}"


def test_every_path_of_the_page_exists() -> None:
    text = PAGE.read_text(encoding="utf-8")
    for path in re.findall(r"`([a-z_]+(?:/[a-z_]+)+(?:\.py|/))`", text):
        assert (HOUSE / path).exists(), path
