"""Draws the pictures of docs/recipes.md, by the code on that page: `make pictures`. Same code, same bytes."""

from __future__ import annotations

import contextlib
import io
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
PAGE = HERE.parent / "recipes.md"
_BEGIN = re.compile(r"```python\n(.*?)```", re.DOTALL)
_RECIPE = re.compile(
    r"^## (?P<title>[^\n]+)\n.*?```python\n(?P<code>.*?)```.*?!\[(?P<caption>[^\]]+)\]\((?P<file>[^)]+)\)",
    re.MULTILINE | re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class Recipe:
    """A recipe of the page: its title, what is said of its picture, the picture's file, and its names.

    Among the `names` are ``stream``, ``query``, ``answer`` and ``picture``.
    """

    title: str
    caption: str
    file: Path
    names: dict[str, Any]


def recipes() -> Iterator[Recipe]:
    """The recipes of the page, in order, their code run."""
    text = PAGE.read_text(encoding="utf-8")
    first = _BEGIN.search(text)
    for parts in _RECIPE.finditer(text):
        names: dict[str, Any] = {}
        with contextlib.redirect_stdout(io.StringIO()):
            exec(first[1] if first else "", names)  # noqa: S102 (the page of this repository)
            exec(compile(parts["code"], f"recipes.md, {parts['title']}", "exec"), names)  # noqa: S102
        yield Recipe(parts["title"], parts["caption"], PAGE.parent / parts["file"], names)


def main() -> None:
    """Writes a picture for each recipe into recipes/, beside this file."""
    for recipe in recipes():
        recipe.file.parent.mkdir(exist_ok=True)
        recipe.names["picture"].save(recipe.file)


if __name__ == "__main__":
    main()
