"""Automata given directly: what they find, how they print, and what is said of those that cannot be."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import estero

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

EVENTS = pa.table(
    {
        "kind": ["SELL", "HALT", "BUY", "SELL", "BUY", "BUY"],
        "ts": [10, 15, 20, 30, 35, 45],
        "name": ["INTC", "INTC", "RIMM", "INTC", "RIMM", "QQQ"],
        "price": [1.0, None, 12.5, 3.0, None, 40.0],
    }
)
WAIT = ("q1", "*", (), "q1")
PAIRS = [("q0", "SELL[name = 'INTC']", {"a"}, "q1"), WAIT, ("q1", "BUY[price > 10]", {"b"}, "q2")]


def pairs(**clauses: Any) -> estero.Query:
    return estero.automaton(PAIRS, initial="q0", final={"q2"}, **clauses)


def marks(
    query: estero.Query, events: pa.Table = EVENTS
) -> list[tuple[int, int, dict[str, tuple[int, ...]]]]:
    return [(each.start, each.end, each.positions) for each in query.run(events, type="kind", time="ts")]


# ------------------------------------------------------------------------------------------ running


def test_an_automaton_runs_and_prints_as_a_query_that_finds_the_same() -> None:
    query = pairs(within="20 [ts]")
    assert str(query) == (
        "SELECT * WHERE SELL AS a ; BUY AS b FILTER a[name = 'INTC'] AND b[price > 10] KEEP [a, b] "
        "WITHIN 20 [ts]"
    )
    assert marks(query) == [(0, 2, {"a": (0,), "b": (2,)}), (3, 5, {"a": (3,), "b": (5,)})]
    assert sorted(map(str, marks(estero.query(str(query))))) == sorted(map(str, marks(query)))


def test_the_clauses_are_those_of_a_query() -> None:
    query = pairs(
        select="MAX a[price], b",
        partition_by=["name", ("kind", "ts")],
        consume_by="ANY",
        limit=3,
        within="2 HOURS",
    )
    assert str(query) == (
        "SELECT MAX a[price], b WHERE SELL AS a ; BUY AS b FILTER a[name = 'INTC'] AND b[price > 10] "
        "KEEP [a, b] PARTITION BY [name], [kind, ts] WITHIN 2 HOURS CONSUME BY ANY LIMIT 3 PER END"
    )
    assert str(pairs(partition_by="name")).endswith("PARTITION BY [name]")


def test_an_event_without_a_label_is_read_and_not_reported() -> None:
    query = estero.automaton(
        [("a", "SELL", "s", "b"), ("b", "HALT", (), "c"), ("c", "BUY", None, "d")], initial="a", final="d"
    )
    assert str(query) == "SELECT * WHERE SELL AS s : HALT : BUY KEEP [s]"
    assert marks(query) == [(0, 2, {"s": (0,)})]


def test_final_states_may_go_on_and_initial_ones_be_entered_again() -> None:
    query = estero.automaton(
        [(0, "SELL", "s", 1), (1, "NOT SELL", (), 1), (1, "BUY", "b", 0)],
        initial=0,
        final=[0, 1],
        types=["SELL", "BUY", "HALT"],
    )
    found = marks(query)
    assert (0, 0, {"s": (0,), "b": ()}) in found
    assert (0, 1, {"s": (0,), "b": ()}) in found
    assert (0, 4, {"s": (0, 3), "b": (2, 4)}) in found
    assert len(found) == len(set(map(str, found)))


def test_any_event_can_be_marked_where_the_types_are_said() -> None:
    query = estero.automaton([(0, "*", "x", 1)], initial=0, final=1, types=["SELL", "BUY", "HALT"])
    assert str(query) == "SELECT * WHERE (SELL OR BUY OR HALT) AS x KEEP [x]"
    assert query.run(EVENTS, type="kind").count() == 6
    dear = estero.automaton([(0, " *[price > 5]", "x", 1)], initial=0, final=1, types=["SELL", "BUY"])
    assert [found.positions["x"] for found in dear.run(EVENTS, type="kind")] == [(2,), (5,)]


def test_a_strategy_chooses_among_what_an_automaton_finds() -> None:
    steps = [(0, "BUY", "b", 1), (1, "*", (), 1), (1, "BUY", "b", 1)]
    every = estero.automaton(steps, initial=0, final=1, types=["BUY", "SELL", "HALT"])
    strict = estero.automaton(steps, initial=0, final=1, types=["BUY", "SELL", "HALT"], select="STRICT *")
    chosen = [each for each in marks(every) if each[2]["b"] in [(2,), (4,), (5,), (4, 5)]]
    assert sorted(map(str, marks(strict))) == sorted(map(str, chosen))


def test_states_may_have_any_names() -> None:
    query = estero.automaton(
        [(("q", 0), "SELL", "a", ("q", 1)), (("q", 1), "BUY", "b", None)], initial=("q", 0), final=None
    )
    assert str(query) == "SELECT * WHERE SELL AS a : BUY AS b KEEP [a, b]"


def test_a_query_of_an_automaton_is_a_value() -> None:
    query = pairs()
    assert pickle.loads(pickle.dumps(query)) == query
    assert query == pairs()
    assert query != estero.query(str(query))
    assert len({query, pairs()}) == 1


def test_it_explains_the_automaton_that_was_given() -> None:
    text = str(pairs().explain())
    assert "b0  SELL[name = 'INTC']" in text
    assert "3 states; a run begins in 0 and accepts in 2" in text


def test_an_automaton_too_tangled_for_a_pattern_runs_and_prints_as_its_transitions() -> None:
    tangle = [(i, "A", {f"x{i}", f"y{j}"}, j) for i in range(12) for j in range(1, 13) if i != j]
    query = estero.automaton(tangle, initial=0, final=12)
    first, *others = str(query).splitlines()
    assert first.startswith("-- the pattern of this automaton has ")
    assert others[0] == "-- 13 states; a run begins in 0 and accepts in 12"
    assert query.run(pa.table({"kind": ["A", "A"]}), type="kind").count() == 2 + 11
    with pytest.raises(estero.QueryError):
        estero.query(str(query))


@pytest.mark.spark
def test_it_runs_on_spark(spark: SparkSession) -> None:
    from estero.spark import recognize

    rows = recognize(spark.createDataFrame(EVENTS), pairs(), type="kind", time="ts", positions=True).collect()
    assert sorted((row["start"], row["end"]) for row in rows) == [(0, 2), (0, 5), (3, 5)]


# ------------------------------------------------------------------------------------------- errors


def build(*steps: Any, initial: object = "q0", final: object = "q1", **others: Any) -> estero.Query:
    return estero.automaton(list(steps), initial=initial, final=final, **others)


A1, Z = ("q0", "A", "a", "q1"), ("q2", "A", "a", "q3")
HERE = "the transition from 'q0' to 'q1'"


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (build, "an automaton needs at least one transition"),
        (
            lambda: build(("q0", "A", "q1")),
            "a transition is (state, event, labels, state), not ('q0', 'A', 'q1')",
        ),
        (lambda: build(({"q0": 1}, "A", "a", "q1")), "a state is a hashable value, not {'q0': 1}"),
        (lambda: build(("q0", None, "a", "q1")), f"{HERE} takes its event as a text, not None"),
        (lambda: build(("q0", "A", {1}, "q1")), f"{HERE} has a label that is not a name: 1"),
        (lambda: build(A1, initial="q9"), "the initial state 'q9' is in no transition; there are 'q0', 'q1'"),
        (
            lambda: build(A1, final=["q1", "q9"]),
            "the final state 'q9' is in no transition; there are 'q0', 'q1'",
        ),
        (lambda: build(A1, final=[]), "an automaton needs at least one final state"),
        (
            lambda: build(A1, Z, final="q3"),
            "the final state 'q3' cannot be reached from the initial state 'q0'",
        ),
        (
            lambda: build(A1, Z, initial=["q0", "q1"], final="q3"),
            "the final state 'q3' cannot be reached from any initial state",
        ),
        (lambda: build(A1, final="q0"), "the final state 'q0' cannot be reached from the initial state 'q0'"),
        (
            lambda: build(("q0", "A", (), "q1")),
            "no run marks an event: a transition between an initial and a final state needs a label",
        ),
        (
            lambda: build(("q0", "*", "a", "q1")),
            f"{HERE} reads events of any type: say with types=[…] which types there are",
        ),
        (
            lambda: build(("q0", "NOT A", "a", "q1")),
            f"{HERE} reads events of any type: say with types=[…] which types there are",
        ),
    ],
)
def test_what_does_not_fit_together_is_said_with_the_names_of_the_states(
    make: Callable[[], object], message: str
) -> None:
    with pytest.raises(ValueError) as caught:  # noqa: PT011
        make()
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("event", "message"),
    [
        (
            "SELL[name = ]",
            """\
the transition from 'q0' to 'q1': there is no value before this ]
  1 | SELL[name = ]
    |             ^
    expected: a value
    hint: write what the = needs: a number, a string in single quotes, an attribute or a condition""",
        ),
        (
            "price > 10",
            """\
the transition from 'q0' to 'q1': this does not say which events are read
  1 | price > 10
    | ^^^^^^^^^^
    expected: TYPE, TYPE[condition], these with AND, OR and NOT, or * for any event
    hint: write TYPE[price > 10] with the type of the events""",
        ),
        (
            "* AND NOT SELL",
            """\
the transition from 'q0' to 'q1': this does not say which events are read
  1 | * AND NOT SELL
    | ^
    expected: TYPE, TYPE[condition], these with AND, OR and NOT, or * for any event""",
        ),
        (
            "SELL OR *[price > 10]",
            """\
the transition from 'q0' to 'q1': '*' is not expected here
  1 | SELL OR *[price > 10]
    |         ^
    expected: a condition
    hint: something is missing before it, or it is one too many""",
        ),
        (
            "*[price > 10]",
            """\
the transition from 'q0' to 'q1': this reads events of any type
  1 | *[price > 10]
    | ^
    expected: the name of a type
    hint: or say with types=[…] which types there are""",
        ),
        (
            "BUY[price > prev(a.price)]",
            """\
the transition from 'q0' to 'q1': a transition looks at one event
  1 | BUY[price > prev(a.price)]
    |             ^^^^^^^^^^^^^
    expected: a condition on the attributes of the event that is read
    hint: conditions on several events are for queries: FILTER x.a < y.a""",
        ),
    ],
)
def test_a_wrong_text_is_shown_with_the_place(event: str, message: str) -> None:
    with pytest.raises(estero.QueryError) as caught:
        build(("q0", event, "a", "q1"))
    assert str(caught.value) == message


def test_there_is_a_type_at_least() -> None:
    with pytest.raises(
        ValueError, match=r"^types is an empty list: name one type of events at least, or leave it out$"
    ):
        build(("q0", "*", "a", "q1"), types=[])


def test_a_type_that_is_not_among_those_said_is_an_error() -> None:
    with pytest.raises(estero.QueryError) as caught:
        build(("q0", "NOT (SEL OR BUY)", "a", "q1"), types=["SELL", "BUY"])
    assert str(caught.value) == (
        "the transition from 'q0' to 'q1': there are no events of type SEL\n"
        "  1 | NOT (SEL OR BUY)\n"
        "    |      ^^^\n"
        "    expected: SELL or BUY\n"
        "    hint: did you mean SELL?"
    )


def test_too_many_alternatives_in_one_text_are_refused() -> None:
    text = " AND ".join(f"(A[n = {i}] OR A[n = {i + 1}])" for i in range(9))
    with pytest.raises(estero.QueryError, match=r"^the transition from 'q0' to 'q1': this has more than 256"):
        build(("q0", text, "a", "q1"))


def test_a_wrong_clause_is_shown_in_the_query() -> None:
    with pytest.raises(estero.QueryError, match="no event is marked c"):
        pairs(select="a, c")
    with pytest.raises(estero.QueryError, match="a window must be longer than 0 events"):
        pairs(within="0 EVENTS")


def test_an_anchored_run_begins_at_the_first_event_of_the_stream_or_of_its_partition() -> None:
    query = pairs(anchored=True)
    assert "START(SELL AS a)" in str(query)
    assert marks(query) == [(0, 2, {"a": (0,), "b": (2,)}), (0, 5, {"a": (0,), "b": (5,)})]
    assert marks(estero.query(str(query))) == marks(query)
    assert marks(query, EVENTS.slice(1)) == []
    assert marks(pairs(anchored=True, partition_by="name")) == []


def test_an_anchored_run_may_pass_over_what_comes_first() -> None:
    steps = [(0, "*", (), 0), (0, "SELL", "a", 1)]
    types = ["SELL", "BUY", "HALT"]
    query = estero.automaton(steps, initial=0, final=1, types=types, anchored=True)
    assert marks(query) == [(0, 0, {"a": (0,)}), (0, 3, {"a": (3,)})]


def test_what_an_automaton_leaves_to_ages_and_registers_is_a_filter_beside_it() -> None:
    shown = estero.query("SELECT * WHERE a ;[<= 5 EVENTS] b").automaton()
    assert shown.filters == ("[<= 5 EVENTS], from the end of the part before to the start of the part after",)
