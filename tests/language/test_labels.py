"""What labels can mark, and which names are near."""

from __future__ import annotations

from estero.language.check.known_types import KnownTypes
from estero.language.syntax.parser import parse_pattern
from estero.language.tree.names import nearest, some, suggestion
from estero.language.tree.pattern import EventType, Pattern
from estero.language.tree.schema import Kind, type_names
from estero.language.tree.selection import bound_names, label_types
from language.schemas import SCHEMAS


def labels_of(pattern: Pattern, streams: tuple[str, ...] = ()) -> dict[str, set[str]]:
    return {
        label: {name for each in types for name in type_names(each, streams)}
        for label, types in label_types(pattern).items()
    }


def test_a_label_marks_the_types_of_what_it_is_put_on() -> None:
    found = labels_of(parse_pattern("(A OR B) AS x ; C AS x ; NOT(D) ; E"))
    assert found == {"A": {"A"}, "B": {"B"}, "C": {"C"}, "E": {"E"}, "x": {"A", "B", "C"}}


def test_streams_qualify_the_names_of_types() -> None:
    assert labels_of(parse_pattern("A ; S>B"), ("S", "T")) == {"A": {"A", "S>A", "T>A"}, "B": {"S>B"}}
    assert labels_of(parse_pattern("S>B"), ("S",)) == {"B": {"S>B", "B"}}


def test_a_dropped_label_was_bound_all_the_same() -> None:
    pattern = parse_pattern("((A AS x ; B) KEEP [B]) [B -> z]")
    assert set(bound_names(pattern)) == {"A", "x", "B", "z"}
    assert set(labels_of(pattern)) == {"z"}


def test_attributes_are_those_of_all_types_together() -> None:
    known = KnownTypes(SCHEMAS["trades"])
    kinds = known.together([EventType("SELL"), EventType("BUY")])
    assert kinds is not None
    assert kinds["price"] == {Kind.FLOAT, Kind.INT}
    assert kinds["broker"] == {Kind.STRING}
    assert KnownTypes(None).together([EventType("SELL")]) is None


def test_the_nearest_names_come_first_and_keep_their_case() -> None:
    assert nearest("Pric", ["volume", "Price", "pride"]) == ("Price", "pride")
    assert suggestion("x", ["volume"]) == ""
    assert some([]) == ""
