"""Copies of frozen dataclasses in which some fields are others."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import pytest

from estero.language.syntax.parser import parse_query
from estero.language.tree.query import QueryTree
from estero.language.tree.schema import Schema
from estero.plan.plan import Layout
from estero.system.copies import copied


@dataclass(frozen=True, slots=True)
class _Base:
    first: int
    made: list[int] = field(default_factory=list, init=False, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Derived(_Base):
    second: str = "b"

    def __post_init__(self) -> None:
        self.made.append(self.first)


def test_a_copy_has_all_fields_and_the_others() -> None:
    value = _Derived(first=1)
    other = copied(value, second="c")
    assert other == replace(value, second="c")
    assert (type(other), other.first, value.second) == (_Derived, 1, "b")


def test_nothing_of_its_class_runs_for_a_copy() -> None:
    value = _Derived(first=1)
    assert copied(value, first=2).made is value.made == [1]
    assert copied(value, made=[]).made == []


@pytest.mark.parametrize("value", [parse_query("SELECT a WHERE a ; b WITHIN 5 EVENTS"), Layout(Schema({}))])
def test_trees_and_layouts_are_copied(value: QueryTree | Layout) -> None:
    assert copied(value) == value
    assert copied(value) is not value
