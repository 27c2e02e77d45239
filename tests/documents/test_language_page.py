"""The pictures of the language reference: what the engine finds, as the reference says, drawn by the code."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

import pyarrow as pa
import pytest

from estero.language.syntax.parser import parse_query
from estero.language.tree.functions import SCALAR_FUNCTIONS
from estero.reference.queries import ComplexEvent, Event, evaluate_query
from repository import REPOSITORY


def _drawing() -> ModuleType:
    path = REPOSITORY / "docs" / "pictures" / "language.py"
    spec = importlib.util.spec_from_file_location("language_pictures", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


DRAWING = _drawing()
SHOWN = DRAWING.shown_queries()
_EACH = pytest.mark.parametrize("shown", SHOWN, ids=lambda shown: shown.file.stem)
_MICROSECOND = 1000


def farm() -> list[Event]:
    """The farm stream as the reference reads it, with times in microseconds."""
    rows = DRAWING.FARM.to_pylist()
    return [Event(row.pop("type"), row, int(row["time"].timestamp()) * 10**6) for row in rows]


def on_tuples(predicate: Callable[..., bool]) -> Callable[..., bool]:
    """A predicate on Arrow arrays as the reference calls it: with tuples of values."""

    def called(*arguments: Any) -> bool:
        return predicate(*(pa.array(each) if isinstance(each, tuple) else each for each in arguments))

    return called


def by_reference(text: str) -> list[ComplexEvent]:
    """What the reference finds on the farm stream."""
    predicates = {name: on_tuples(own) for name, own in DRAWING.own_predicates().items()}
    found = evaluate_query(parse_query(text), farm(), tick=_MICROSECOND, predicates=predicates)
    in_order: list[ComplexEvent] = DRAWING.in_order(each for together in found.values() for each in together)
    return in_order


@_EACH
def test_the_answers_shown_are_those_of_the_reference(shown: Any) -> None:
    DRAWING.own_predicates()
    assert DRAWING.answer(shown.text) == by_reference(shown.text)


@_EACH
def test_a_picture_is_what_the_code_draws(shown: Any) -> None:
    found = by_reference(shown.text)
    drawn = DRAWING.drawn(shown.text, found)
    assert shown.file.read_text(encoding="utf-8") == drawn, "draw it anew: make pictures"
    assert shown.caption == DRAWING.caption(found)


def test_every_picture_is_on_the_page() -> None:
    files = {path.name for path in (REPOSITORY / "docs" / "pictures" / "language").glob("*.svg")}
    assert files == {shown.file.name for shown in SHOWN}
    assert len(SHOWN) == len(files) >= 35


def test_the_page_says_what_every_function_takes_and_means() -> None:
    rows = [f"| `{function.example}` | {function.meaning} |" for function in SCALAR_FUNCTIONS.values()]
    assert "\n".join(rows) in (REPOSITORY / "docs" / "language.md").read_text(encoding="utf-8")
