"""Which labels and attributes an answer shows."""

from __future__ import annotations

from estero.language.tree.expressions import Literal
from estero.language.tree.pattern import (
    As,
    EventType,
    Filter,
    Iteration,
    Keep,
    Link,
    Pattern,
    Rename,
    Sequence,
    Unless,
)
from estero.language.tree.query import QueryTree, SelectItem
from estero.language.tree.schema import Kind, Schema
from estero.language.tree.selection import Shown, label_types, shown_labels

SELL, BUY = EventType("SELL"), EventType("BUY")
SELL_THEN_BUYS = Sequence((As(SELL, "a"), Iteration(As(BUY, "b"))), (Link(),))
SHARED = Schema(shared={"kind": Kind.STRING, "price": Kind.FLOAT})
OWN = Schema(
    types={"SELL": {"id": Kind.INT, "price": Kind.FLOAT}, "BUY": {"id": Kind.INT, "volume": Kind.INT}},
    closed=True,
)


def labels(pattern: Pattern) -> list[str]:
    return list(label_types(pattern))


def test_star_is_every_label_in_order_of_appearance() -> None:
    shown = shown_labels(QueryTree(SELL_THEN_BUYS), SHARED)
    assert [each.label for each in shown] == ["SELL", "a", "BUY", "b"]
    assert {each.attributes for each in shown} == {("kind", "price")}


def test_none_shows_no_label() -> None:
    assert shown_labels(QueryTree(SELL_THEN_BUYS, select=()), SHARED) == ()


def test_a_list_shows_its_labels_with_the_chosen_attributes() -> None:
    select = (SelectItem("b", ("price",)), SelectItem("a"), SelectItem("b", ("kind", "price")))
    shown = shown_labels(QueryTree(SELL_THEN_BUYS, select=select), SHARED)
    assert shown == (Shown("b", ("price", "kind")), Shown("a", ("kind", "price")))


def test_each_label_shows_the_attributes_of_the_types_that_it_may_mark() -> None:
    tree = QueryTree(Sequence((As(SELL_THEN_BUYS, "both"), As(BUY, "c")), (Link(),)))
    shown = {each.label: each.attributes for each in shown_labels(tree, OWN)}
    assert shown["a"] == shown["SELL"] == ("id", "price")
    assert shown["c"] == shown["BUY"] == ("id", "volume")
    assert shown["both"] == ("id", "price", "volume")


def test_a_type_of_a_stream_is_looked_up_under_its_full_name_first() -> None:
    schema = Schema(types={"S>SELL": {"x": Kind.INT}, "SELL": {"y": Kind.INT}})
    assert shown_labels(QueryTree(EventType("SELL", "S")), schema) == (Shown("SELL", ("x",)),)
    assert shown_labels(QueryTree(EventType("SELL", "T")), schema) == (Shown("SELL", ("y",)),)


def test_a_type_is_looked_up_in_the_streams_that_are_read() -> None:
    schema = Schema(
        types={"S>SELL": {"x": Kind.INT}, "T>SELL": {"y": Kind.INT, "x": Kind.FLOAT}}, closed=True
    )
    assert shown_labels(QueryTree(SELL, streams=("S",)), schema) == (Shown("SELL", ("x",)),)
    assert shown_labels(QueryTree(SELL, streams=("S", "T")), schema) == (Shown("SELL", ("x", "y")),)


def test_events_that_must_be_absent_give_no_label() -> None:
    absent = Sequence((As(SELL, "a"), As(BUY, "b")), (Link(absent=(As(EventType("HALT"), "h"),)),))
    assert labels(absent) == ["SELL", "a", "BUY", "b"]
    assert labels(Unless(As(SELL, "a"), As(EventType("HALT"), "h"))) == ["SELL", "a"]


def test_keep_and_rename_change_the_labels() -> None:
    assert labels(Keep(SELL_THEN_BUYS, ("b", "a"))) == ["a", "b"]
    assert label_types(Rename(SELL_THEN_BUYS, "a", "b")) == {"SELL": (SELL,), "b": (SELL, BUY), "BUY": (BUY,)}
    assert labels(Filter(As(SELL, "a"), Literal(True))) == ["SELL", "a"]
