"""Parameters: bound as values, wherever a constant stands; a query with values is the one that has them."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import estero
from estero import call, event, param, select, var
from estero.cli.inputs import with_values
from estero.language.syntax.parser import parse_condition
from estero.language.tree import expressions as e
from estero.language.tree.functions import SCALAR_FUNCTIONS
from estero.language.tree.query import QueryTree
from estero.queries.parameters import value_in
from estero.reference.queries import Event, evaluate_query
from laws.evaluators import in_process
from strategies.full import full_queries
from strategies.parameters import with_parameters
from strategies.patterns import TICK, queries, streams
from strategies.selections import with_measures
from strategies.steps import stepped_queries

EVENTS = pa.table(
    {
        "type": ["A", "B", "A", "B", "C"],
        "time": pa.array([0, 60, 120, 180, 240], pa.timestamp("s")),
        "k": [1, 2, 3, None, 5],
        "x": [0.5, 1.0, float("nan"), -0.0, 2.5],
        "s": ["a", "b'", "c", None, "é"],
    }
)
LAYOUT: dict[str, Any] = {"type": "type", "time": "time"}
LONG = range(10, 3_000)


def starts(query: estero.Query) -> list[int]:
    return [each.start for each in query.run(EVENTS, **LAYOUT)]


def test_values_stand_where_constants_stand() -> None:
    query = estero.query(
        "SELECT count(a) * $by AS n WHERE A+ AS a ;[<= $gap] B AS b FILTER a.k IN $keys "
        "AND b.k IN {$one, 3..$top} AND a.s LIKE $like AND a.s ~ $regex AND a.k + $more > 0 "
        "WITHIN $length LIMIT $most PER $pause"
    )
    assert sorted(query.parameters) == sorted(
        ["by", "gap", "keys", "one", "top", "like", "regex", "more", "length", "most", "pause"]
    )
    bound = query.bind(by=2, gap="1 min", keys=[1, 3], one=2, top=9, like="%", regex="^[ac]", more=1)
    assert bound.parameters == ("length", "most", "pause")
    whole = bound.bind({"length": timedelta(hours=1), "most": 3, "pause": "1 day"})
    assert whole.parameters == ()
    assert str(whole) == (
        "SELECT count(a) * 2 AS n WHERE A+ AS a ;[<= 1 MINUTES] B AS b FILTER a.k IN {1, 3} "
        "AND b.k IN {2, 3..9} AND a.s LIKE '%' AND a.s ~ '^[ac]' AND a.k + 1 > 0 "
        "WITHIN 1 HOURS LIMIT 3 PER 1 DAYS"
    )
    assert estero.query(str(whole)) == whole
    assert whole.run(EVENTS, **LAYOUT).to_arrow().column("n").to_pylist() == [2]


def test_numbers_count_events_ticks_and_units() -> None:
    for text in ("WITHIN $n EVENTS", "WITHIN $n [time]", "WITHIN $n HOURS 5 MINUTES", "LIMIT $n"):
        query = estero.query(f"SELECT * WHERE A {text}")
        assert text in str(query)
        assert str(query.bind(n=7)) == str(estero.query(str(query).replace("$n", "7")))


def test_a_query_that_lacks_values_does_not_run() -> None:
    query = estero.query("SELECT * WHERE A FILTER A[k > $least] WITHIN $length")
    for ask in (query.run, query.explain, lambda _: query.explain(), query.automaton):
        with pytest.raises(
            estero.QueryError, match=r"2 parameters have no value: \$least and \$length"
        ) as error:
            ask(EVENTS)
        assert "query.bind(least=…, length=…)" in str(error.value)
        assert "--param least=… --param length=…" in str(error.value)
    found = query.check(EVENTS, **LAYOUT)
    assert [each.message for each in found] == ["2 parameters have no value: $least and $length"]
    assert estero.check(str(query)) == []
    with pytest.raises(estero.QueryError, match="have no value"):
        query.recognizer(EVENTS.schema, **LAYOUT)
    with pytest.raises(estero.QueryError, match="has no value"):
        estero.equivalent(query.bind(length="1 h"), query.bind(length="1 h"))


@pytest.mark.parametrize(
    ("text", "values", "message"),
    [
        ("FILTER A[k > $v]", {"w": 1}, "the query has no parameter w"),
        ("", {"w": 1}, "the query has no parameter w"),
        ("FILTER A[k > $v]", {"v": None}, "cannot be None here"),
        ("FILTER A[k > $v]", {"v": float("nan")}, "cannot be nan here"),
        ("FILTER A[k > $v]", {"v": np.inf}, "cannot be inf here"),
        ("FILTER A[k > $v]", {"v": [1]}, r"cannot be \[1\] here"),
        ("FILTER A[k > $v]", {"v": b"1"}, "cannot be b'1' here"),
        ("FILTER A[k > $v]", {"v": object}, "cannot be <class 'object'> here"),
        ("FILTER A[k > $v]", {"v": 2**70}, "does not fit in 64 bits"),
        ("FILTER A[time > $v]", {"v": pd.Timestamp(1)}, "cannot be finer than that here"),
        ("FILTER A[time > $v]", {"v": np.datetime64(1, "ns")}, "cannot be finer than that here"),
        ("FILTER A[time > $v]", {"v": pd.NaT}, "cannot be NaT here"),
        (
            "FILTER A[time > $v]",
            {"v": np.datetime64(300_000, "Y")},
            r"cannot be np.datetime64\('301970'\) here",
        ),
        ("FILTER A[time > $v]", {"v": np.timedelta64(1, "Y")}, "cannot be .*here"),
        ("FILTER A[k > $v]", {"v": np.timedelta64(2**62, "D")}, "does not fit in 64 bits"),
        ("FILTER A[s LIKE $v]", {"v": 5}, "cannot be 5 here"),
        ("FILTER A[s ~ $v]", {"v": "("}, "ends too early"),
        ("FILTER A[k IN $v]", {"v": 5}, "cannot be 5 here"),
        ("FILTER A[k IN $v]", {"v": "12"}, "cannot be '12' here"),
        ("FILTER A[k IN $v]", {"v": [1, "a"]}, "a list that mixes"),
        ("FILTER A[k IN $v]", {"v": [[1]]}, r"a list with \[1\]"),
        ("WITHIN $v", {"v": 5}, "cannot be 5 here"),
        ("WITHIN $v", {"v": "five minutes"}, "is not a duration"),
        ("WITHIN $v", {"v": timedelta(seconds=-1)}, "cannot be negative"),
        ("WITHIN $v EVENTS", {"v": 1.5}, "cannot be 1.5 here"),
        ("WITHIN $v EVENTS", {"v": True}, "cannot be True here"),
        ("WITHIN $v EVENTS", {"v": 0}, "a window must be longer than 0 events"),
        ("LIMIT $v", {"v": -1}, "LIMIT keeps at least one"),
    ],
)
def test_what_does_not_fit_is_said_where_it_stands(text: str, values: dict[str, Any], message: str) -> None:
    with pytest.raises(estero.QueryError) as error:
        estero.query(f"SELECT * WHERE A {text}").bind(values)
    said = str(error.value)
    assert re.search(message, said), said
    assert "^" in said


def test_kinds_are_those_of_constants() -> None:
    for text, value in (("A[k > $v]", "5"), ("A[k IN $v]", list(map(str, range(5_000))))):
        query = estero.query(f"SELECT * WHERE A FILTER {text}").bind(v=value)
        with pytest.raises(estero.QueryError, match="an integer cannot be compared with a string"):
            query.run(EVENTS, **LAYOUT)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (np.int8(5), "5"),
        (np.float32(0.5), "0.5"),
        (np.bool_(1), "TRUE"),
        (np.array(7), "7"),
        (Decimal(2), "2"),
        (Decimal("2.5"), "2.5"),
        (np.str_("it's"), "'it''s'"),
        ("'); DROP", "'''); DROP'"),
        (datetime(2024, 1, 2, 3, tzinfo=UTC), "TIMESTAMP '2024-01-02T03:00:00Z'"),
        (datetime(2024, 1, 2), "TIMESTAMP '2024-01-02T00:00:00Z'"),  # noqa: DTZ001
        (date(2024, 1, 2), "TIMESTAMP '2024-01-02T00:00:00Z'"),
        (pd.Timestamp("2024-01-02 00:00", tz="Europe/Paris"), "TIMESTAMP '2024-01-01T23:00:00Z'"),
        (np.datetime64("2024-01-02"), "TIMESTAMP '2024-01-02T00:00:00Z'"),
        (timedelta(minutes=90), "1 HOUR 30 MINUTES"),
        (pd.Timedelta(1, "ns"), "1 NANOSECOND"),
        (np.timedelta64(2, "h"), "2 HOURS"),
        (np.timedelta64(300_000, "D"), "300000 DAYS"),
        (np.datetime64("9999-12"), "TIMESTAMP '9999-12-01T00:00:00Z'"),
    ],
)
def test_values_of_python_numpy_and_pandas(value: object, text: str) -> None:
    query = estero.query("SELECT * WHERE A FILTER A[a = $v]").bind(v=value)
    assert str(query) == f"SELECT * WHERE A FILTER A[a = {text}]"


@pytest.mark.parametrize(
    ("attribute", "values", "expected"),
    [
        ("k", [1, 5], [0]),
        ("k", {1, 3}, [0, 2]),
        ("k", [1, *LONG], [0]),
        ("k", [1, None, *LONG], [0]),
        ("k", np.array([1, 3, *LONG]), [0, 2]),
        ("k", pa.array([1, 3, *LONG]), [0, 2]),
        ("k", pa.chunked_array([[1, None], [3, *LONG]]), [0, 2]),
        ("k", pd.Series([1.0, 3.0, np.nan, *LONG]), [0, 2]),
        ("k", pl.Series([1, 3, *LONG]), [0, 2]),
        ("k", [1.5, 3.0, *LONG], [2]),
        ("x", [0.5, *LONG], [0]),
        ("x", [0, 1, 2, *LONG], []),
        ("s", ["a", *map(str, LONG)], [0]),
        ("s", {"c", *map(str, LONG)}, [2]),
        ("time", [np.datetime64(each * 120, "s") for each in (1, *LONG)], [2]),
        ("k", [], []),
        ("k", iter([1, 3]), [0, 2]),
    ],
)
def test_lists_of_any_length(attribute: str, values: Any, expected: list[int]) -> None:
    query = estero.query(f"SELECT * WHERE A FILTER A[{attribute} IN $v]").bind(v=values)
    assert starts(query) == expected


def test_a_null_is_in_no_list_and_not_outside_of_one() -> None:
    for values in ([1, 2], [1, 2, *LONG]):
        inside = estero.query("SELECT * WHERE (A OR B) FILTER B[k IN $v]").bind(v=values)
        outside = estero.query("SELECT * WHERE (A OR B) FILTER B[k NOT IN $v]").bind(v=values)
        assert (starts(inside), starts(outside)) == ([0, 1, 2], [0, 2])


def test_long_lists_print_by_name_and_differ_by_their_values() -> None:
    query = estero.query("SELECT * WHERE A FILTER A[k IN $v]")
    one, same, other = (query.bind(v=values) for values in (LONG, list(LONG), [*LONG, 5]))
    assert str(one) == "SELECT * WHERE A FILTER A[k IN $v]"
    assert one == same
    assert one not in (other, query)
    assert hash(one) == hash(same)


def test_single_events_are_looked_up_in_long_lists() -> None:
    query = estero.query("SELECT * WHERE A AS a ; B AS b FILTER a.k IN $v AND b.s NOT IN $t")
    bound = query.bind(v=[1, *LONG], t=list(map(str, LONG)))
    recognizer = bound.recognizer(EVENTS.schema, **LAYOUT)
    assert recognizer.why_slow is None
    found = [each for row in EVENTS.to_pylist() for each in recognizer.push(row)]
    assert [(each.start, each.end) for each in found] == [(0, 1)]


def test_the_builder_has_parameters() -> None:
    a, b = var("a"), var("b")
    pattern = event("A").named("a").then(event("B").named("b"), within=param("gap"))
    condition = (a.k > param("least")) & b.s.is_in(param("names")) & b.k.is_in(1, param("key"))
    query = select(pattern.where(condition)).within(events=param("n"))
    query = query.limit(param("most"), per=param("pause"))
    assert str(query) == (
        "SELECT * WHERE A AS a ;[<= $gap] B AS b FILTER a[k > $least] AND b[s IN $names] "
        "AND b[k IN {1, $key}] WITHIN $n EVENTS LIMIT $most PER $pause"
    )
    bound = query.bind(gap="1 h", least=0, names=["b'"], key=2, n=9, most=1, pause="1 h")
    assert starts(bound) == [0]
    texts = select(event("A").where(a.s.like(param("p")) & a.s.matches(param("q")))).within(param("w"))
    assert str(texts) == "SELECT * WHERE A FILTER a[s LIKE $p] AND a[s ~ $q] WITHIN $w"
    with pytest.raises(ValueError, match="not a parameter name"):
        param("a b")


def test_conjunctive_queries_have_parameters() -> None:
    query = estero.conjunctive("Q(x) <- A(k: x), C(k: x, s: $s) WITHIN $w")
    assert query.parameters == ("s", "w")
    assert str(query.bind(s="é", w="5 min")) == "Q(x) <- A(k: x), C(k: x, s: 'é') WITHIN 5 MINUTES"
    with pytest.raises(estero.QueryError, match="2 parameters have no value"):
        query.run(EVENTS, **LAYOUT)


def test_values_of_the_command_line() -> None:
    written = {
        "5": 5,
        "-2": -2,
        "0.5": 0.5,
        "true": True,
        "INTC": "INTC",
        "'5'": "5",
        "[1, 2]": [1, 2],
        "": "",
    }
    assert {text: value_in(text) for text in written} == written
    assert value_in("TIMESTAMP '2024-01-31'") == datetime(2024, 1, 31, tzinfo=UTC)
    query = estero.query("SELECT * WHERE A FILTER A[k IN $v] WITHIN $w")
    bound = with_values(query, ["v=[1, 2]", "$w=5 minutes"])
    assert str(bound) == "SELECT * WHERE A FILTER A[k IN {1, 2}] WITHIN 5 MINUTES"


# ------------------------------------------------------------------------- repetitions and durations


@pytest.mark.parametrize(
    ("text", "values", "bound"),
    [
        ("a{$n,} ; b", {"n": 2}, "a{2,} ; b"),
        ("a{$n,} ; b", {"n": 1}, "a+ ; b"),
        ("a{$n,} ; b", {"n": 0}, "a* ; b"),
        ("a{$n} ; b", {"n": 3}, "a{3} ; b"),
        ("a :{$n,$m} ; b", {"n": 2, "m": 4}, "a :{2,4} ; b"),
        ("a{2,$n} ; b", {"n": 2}, "a{2} ; b"),
        ("a{$n,$m}[<= $d] AS x ; b", {"n": 0, "m": 3, "d": "2 h"}, "a{0,3}[<= 2 HOURS] AS x ; b"),
    ],
)
def test_repetitions_have_parameters(text: str, values: dict[str, object], bound: str) -> None:
    query = estero.query(f"SELECT * WHERE {text}")
    assert query.parameters == tuple(values)
    assert str(query) == f"SELECT * WHERE {text}"
    assert query.bind(values) == estero.query(f"SELECT * WHERE {bound}")
    assert str(query.bind(values)) == f"SELECT * WHERE {bound}"


@pytest.mark.parametrize(
    ("text", "value", "message"),
    [
        ("a{$n,}", -1, "a repetition happens at least once"),
        ("a{$n}", 0, "a repetition happens at least once"),
        ("a{3,$n}", 2, "the bounds of this repetition are reversed"),
        ("a{$n,}", "x", "$n cannot be 'x' here"),
        ("a{$n,}", 2.5, "$n cannot be 2.5 here"),
    ],
)
def test_a_number_that_no_repetition_has_is_refused(text: str, value: object, message: str) -> None:
    with pytest.raises(estero.QueryError) as error:
        estero.query(f"SELECT * WHERE {text} ; b").bind(n=value)
    assert error.value.message == message


def test_the_builder_has_parameters_in_repetitions() -> None:
    built = select(event("a").repeated(param("n"), param("m")).then(event("b")))
    assert estero.query(built) == estero.query("SELECT * WHERE a{$n,$m} ; b")


@pytest.mark.parametrize(
    ("condition", "bound"),
    [
        ("b.t - a.t <= $span", "b.t - a.t <= 1 MINUTE"),
        ("$span >= abs(b.t - a.t)", "1 MINUTE >= abs(b.t - a.t)"),
        ("b.t <= a.t + $span", "b.t <= a.t + 1 MINUTE"),
        ("b.t - a.t BETWEEN $span AND 2 HOURS", "b.t - a.t BETWEEN 1 MINUTE AND 2 HOURS"),
        ("duration > $span", "duration > 1 MINUTE"),
        ("b.name = $span", "b.name = '1 minute'"),
        ("b.name > $span AND duration < 2 HOURS", "b.name > '1 minute' AND duration < 2 HOURS"),
    ],
)
def test_a_text_is_a_duration_where_no_text_can_be(condition: str, bound: str) -> None:
    query = estero.query(f"SELECT * WHERE a ; b FILTER {condition}").bind(span="1 minute")
    assert query == estero.query(f"SELECT * WHERE a ; b FILTER {bound}")


def test_a_text_that_is_no_duration_is_refused_there() -> None:
    with pytest.raises(estero.QueryError, match="cannot be 'soon' here") as error:
        estero.query("SELECT * WHERE a ; b FILTER b.t - a.t <= $span").bind(span="soon")
    assert error.value.expected == "a duration, such as '5 minutes' or a timedelta"


# ------------------------------------------------------------- constants of functions, and of automata


@pytest.mark.parametrize("name", SCALAR_FUNCTIONS)
def test_arguments_of_functions_have_parameters(name: str) -> None:
    called = parse_condition(SCALAR_FUNCTIONS[name].example)
    assert isinstance(called, e.Call)
    numbered = [(f"p{place}", each) for place, each in enumerate(called.arguments)]
    values = {key: each.value for key, each in numbered if isinstance(each, e.Literal)}
    arguments = [f"${key}" if key in values else f"x.{each}" for key, each in numbered]
    constants = [str(each) if key in values else f"x.{each}" for key, each in numbered]
    for text in ("SELECT {} AS c WHERE A AS x", "SELECT x WHERE A AS x FILTER {} IS NULL"):
        query = estero.query(text.format(f"{name}({', '.join(arguments)})"))
        assert query.parameters == tuple(values)
        assert query.bind(values) == estero.query(text.format(f"{name}({', '.join(constants)})"))


@pytest.mark.parametrize(
    ("condition", "value", "message", "expected"),
    [
        ("round(x.x, $v) > 1", 16, "round cannot take 16 here", "a whole number from 0 to 15"),
        ("round(x.x, $v) > 1", "a", "round cannot take 'a' here", "a whole number from 0 to 15"),
        ("split_part(x.s, $v, 1) = ''", "", "split_part cannot take '' here", "a string that is not"),
        ("split_part(x.s, '-', $v) = ''", 0, "split_part cannot take 0 here", "a whole number from 1"),
        ("date_trunc($v, x.time) = x.time", "min", "date_trunc cannot take 'min' here", "'year', "),
        ("substring(x.s, $v) = ''", "a", "substring takes an integer, and $v is a string", "an integer"),
        ("seconds($v) > x.x", 5, "seconds takes a duration, and $v is an integer", "a duration"),
    ],
)
def test_a_constant_that_a_function_does_not_take_is_said_with_its_parameter(
    condition: str, value: object, message: str, expected: str
) -> None:
    with pytest.raises(estero.QueryError) as error:
        estero.query(f"SELECT * WHERE A AS x FILTER {condition}").bind(v=value)
    message += ", the value of $v" if message.endswith("here") else ""
    assert (error.value.message, error.value.found, error.value.others) == (message, "$v", ())
    assert error.value.expected.startswith(expected)


def test_functions_with_parameters_find_what_they_find_with_constants() -> None:
    a = var("a")
    conditions = (call("round", a.x, param("digits")) == param("x")) & (
        call("date_trunc", param("unit"), a.time) == a.time
    )
    query = select(event("A").named("a").where(conditions))
    values: dict[str, object] = {"digits": 1, "x": 0.5, "unit": "minute"}
    assert estero.query(query).parameters == ("digits", "x", "unit")
    assert starts(query.bind(values)) == [0]
    bound = estero.query("SELECT $c AS c, round(x.x, $digits) AS r WHERE A AS x FILTER x.k = $k")
    assert sorted(bound.parameters) == ["c", "digits", "k"]
    answer = bound.bind(c="said", digits=0, k=1).run(EVENTS, **LAYOUT).to_arrow()
    assert answer.select(["c", "r"]).to_pylist() == [{"c": "said", "r": 1.0}]
    recognizer = bound.bind(c="said", digits=0, k=1).recognizer(EVENTS.schema, **LAYOUT)
    assert recognizer.why_slow is None
    assert [each.measures["c"] for row in EVENTS.to_pylist() for each in recognizer.push(row)] == ["said"]
    assert "seconds(1 MINUTE)" in str(estero.query("SELECT seconds($d) AS c WHERE A").bind(d="1 minute"))


@pytest.mark.parametrize(
    ("transitions", "values"),
    [
        (
            [("p", "A[k >= $p]", "a", "q"), ("q", "*", (), "q"), ("q", "B[round(x, $d) < 2]", "b", "r")],
            {"p": 1, "d": 0},
        ),
        (
            [("p", "A[k >= $p]", "a", "q"), ("q", "B[x < $d]", "b", "r", "before.k + $q < k")],
            {"p": 1, "d": 2, "q": 0},
        ),
        ([("p", "A[k IN $p]", "a", "q"), ("q", "B", "b", "r", "[<= $d]")], {"p": [1, 3], "d": "1 minute"}),
        (
            [
                ([], "A[k = $p]", "a", "p"),
                ([], "A[k = $q]", "c", "q"),
                (["p", "q"], "B", "b", "r", "p.k + $d = x + 2 AND q.k = x + 3"),
            ],
            {"p": 1, "q": 3, "d": 1},
        ),
    ],
)
def test_automata_have_parameters(transitions: list[tuple[Any, ...]], values: dict[str, object]) -> None:
    def made(of: list[tuple[Any, ...]]) -> estero.Query:
        return estero.automaton(of, initial=None if of[0][0] == [] else "p", final="r", types=["A", "B"])

    def written(text: object) -> Any:
        for name, value in values.items():
            said = "{1, 3}" if value == [1, 3] else "1 MINUTES" if value == "1 minute" else repr(value)
            text = text.replace(f"${name}", said) if isinstance(text, str) else text
        return text

    query, constant = made(transitions), made([tuple(map(written, each)) for each in transitions])
    assert set(query.parameters) == set(values)
    with pytest.raises(estero.QueryError, match="no value"):
        query.run(EVENTS, **LAYOUT)
    bound = query.bind(values)
    assert bound.parameters == ()
    assert starts(bound) == starts(constant) != []


def test_an_automaton_whose_values_make_it_ambiguous_is_refused_when_they_are_bound() -> None:
    transitions: list[tuple[Any, ...]] = [([], "A[k > 0]", "a", "p"), ([], "A[k > $v]", "a", "q")]
    ends = [([each], "B[k = 0]", "b", "r") for each in ("p", "q")]
    gathers = (["p", "q"], "C", "b", "r", "p.k = k AND q.k = k")
    query = estero.automaton([*transitions, *ends, gathers], final="r", types=["A", "B", "C"])
    with pytest.raises(ValueError, match="two runs of this automaton mark the same events alike"):
        query.bind(v=0)


# ---------------------------------------------------------------------------------- random queries


@settings(max_examples=150)
@given(st.one_of(queries(), full_queries(), stepped_queries(full=True)), streams(max_size=9))
def test_with_values_a_query_finds_what_it_finds_with_constants(tree: QueryTree, events: list[Event]) -> None:
    text, values = with_parameters(replace(tree, select=None, limit=None))
    query = estero.Query(text)
    assert set(query.parameters) == set(values)
    bound = query.bind(values)
    assert bound.parameters == ()
    assert in_process(bound.tree, events) == evaluate_query(replace(tree, limit=None), events, tick=TICK)


@settings(max_examples=100)
@given(with_measures(queries()))
def test_values_of_select_are_what_constants_are(tree: QueryTree) -> None:
    text, values = with_parameters(tree)
    query = estero.Query(text)
    assert set(query.parameters) == set(values)
    assert query.bind(values) == estero.Query(str(tree))
