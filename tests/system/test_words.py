"""Names in the sources say what they hold."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import estero

SOURCES = Path(estero.__file__).parent
EMPTY = frozenset({"each", "found", "room"})
"""Words that stand for anything: one of several, what was looked for, what fits."""
PUBLIC = {("errors.py", "found"), ("answers/why_not.py", "found")}
"""Fields that users read: beside what is ``expected``, and the number of complex events."""


def names_bound(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """The line and the name of every variable, parameter, attribute, function, class and import."""
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()):
                yield node.lineno, name
            case ast.arg(arg=name) | ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                yield node.lineno, name
            case ast.AsyncFunctionDef(name=name) | ast.ExceptHandler(name=str(name)):
                yield node.lineno, name
            case ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
                yield node.lineno, name
            case ast.alias(asname=str(name)):
                yield 0, name
            case _:
                pass


def empty_names(text: str) -> list[tuple[int, str]]:
    """The names that say nothing, with their lines."""
    bound = names_bound(ast.parse(text))
    return [(line, name) for line, name in bound if name.strip("_").lower() in EMPTY]


@pytest.mark.parametrize(
    "text",
    [
        "each = 1",
        "for each in (): pass",
        "def found(): pass",
        "class Found: pass",
        "f = lambda room: room",
        "[_ for each in ()]",
        "self._found = 1",
        "match 1:\n case found: pass",
        "import os as each",
    ],
)
def test_a_name_that_says_nothing_is_seen(text: str) -> None:
    assert len(empty_names(text)) == 1


def test_names_in_the_sources_say_what_they_hold() -> None:
    files = sorted(SOURCES.rglob("*.py"))
    assert len(files) > 300
    nameless = [
        f"{file.relative_to(SOURCES)}:{line}: {name}"
        for file in files
        for line, name in empty_names(file.read_text(encoding="utf-8"))
        if (file.relative_to(SOURCES).as_posix(), name) not in PUBLIC
    ]
    assert nameless == []
