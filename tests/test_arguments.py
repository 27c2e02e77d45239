"""Arguments that are not what a public function takes: one clear TypeError, before anything is done."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from xml.etree.ElementTree import fromstring

import numpy as np
import pyarrow as pa
import pytest

import estero
from estero.arguments import checked
from estero.testing import events

QUERY = "SELECT * WHERE A AS a ; B AS b WITHIN 9 EVENTS"
STREAM = events("A(k=1) B(k=1)")

WRONG: dict[str, Callable[[], object]] = {
    'query() takes a string or a pattern such as event("A") as text, not None': lambda: any_of(
        estero.query, None
    ),
    "run() takes a list of strings as order, not None": lambda: any_of(
        estero.query(QUERY).run, STREAM, type="type", order=None
    ),
    "run() takes a string or None as type, not 1": lambda: any_of(estero.query(QUERY).run, STREAM, type=1),
    "limit() takes an integer as n, not '3'": lambda: any_of(answer().limit, "3"),
    "limit() takes an integer as n, not True": lambda: any_of(answer().limit, True),
    "sample() takes an integer as k, not '1'": lambda: any_of(answer().sample, "1"),
    "conjunctive() takes a string as query, not None": lambda: any_of(estero.conjunctive, None),
    "check() takes a string as text, not a Query": lambda: any_of(estero.check, estero.query(QUERY)),
    'missing() takes a query or a pattern such as event("A") or a string as larger, not 1': lambda: any_of(
        estero.missing, 1, QUERY
    ),
    (
        'then() takes a pattern such as event("A") or absent("A").within("1 hour") as others, not \'B\''
    ): lambda: any_of(estero.event("A").then, "B"),
    'where() takes a condition such as var("x").price > 5 or an expression such as var("x").price '
    "as conditions, not 'v > 1'": lambda: any_of(estero.event("A").where, "v > 1"),
    "prev() takes an expression such as var(\"x\").price as value, not 'x.a'": lambda: any_of(
        estero.prev, "x.a"
    ),
    "events() takes a string as text, not a Table": lambda: any_of(events, STREAM),
    "rules() takes a mapping or a string or a path or a list of strings or paths as rules, "
    "not a dict with the key 3 in it": lambda: any_of(estero.rules, {"a": QUERY, 3: QUERY}),
    "rules() takes a mapping or a string or a path or a list of strings or paths as rules, "
    "not a list with a Query in it": lambda: any_of(estero.rules, [estero.query(QUERY)]),
}


def any_of(function: Any, *arguments: Any, **named: Any) -> Any:
    """Calls a function with what its annotations do not allow."""
    return function(*arguments, **named)


def answer() -> estero.Answer:
    return estero.query(QUERY).run(STREAM, type="type")


@pytest.mark.parametrize("said", WRONG)
def test_a_wrong_argument_is_named_with_what_is_taken(said: str) -> None:
    with pytest.raises(TypeError) as caught:
        WRONG[said]()
    assert str(caught.value) == said


def test_what_stands_for_a_value_of_python_is_taken() -> None:
    assert any_of(answer().limit, np.int64(1)).count() == 1
    assert any_of(answer().funnel, by_partition=np.False_).to_arrow().num_rows == 2
    assert estero.query(QUERY).run(STREAM, type="type", order=("k",)).count() == 1
    assert estero.query(QUERY).run(STREAM, type="type", order="k").count() == 1


def test_values_are_shown_shortly_and_without_control_characters() -> None:
    @checked
    def taken(number: int) -> None:
        raise AssertionError(number)

    shown = [
        ("\x1b[31m", r"'\x1b[31m'"),
        ("x" * 99, f"'{'x' * 38}…"),
        (pa.table({}), "a Table"),
        (1.5, "1.5"),
    ]
    for value, text in shown:
        with pytest.raises(TypeError) as caught:
            any_of(taken, value)
        assert str(caught.value) == f"taken() takes an integer as number, not {text}"


def test_words_and_joins_of_the_builder_that_are_none_are_refused_with_those_there_are() -> None:
    built = estero.select(estero.event("A"))
    with pytest.raises(ValueError, match=r"'longst' is not one of ALL, .*LONGEST.*: did you mean LONGEST"):
        built.strategy("longst")
    with pytest.raises(ValueError, match=r"'some' is not one of NONE, ANY, PARTITION"):
        built.consume_by("some")
    with pytest.raises(TypeError) as caught:
        any_of((estero.var("a").k > 1).__and__, 5)
    assert str(caught.value) == (
        "& joins conditions, and 5 is not one: comparisons on both sides of it need parentheses, (…) & (…)"
    )
    with pytest.raises(TypeError) as caught:
        any_of(estero.var("a").__getitem__, 5)
    assert str(caught.value) == "var('a')[…] takes the name of an attribute or a condition, not 5"


def test_parts_of_an_answer_are_numbers() -> None:
    with pytest.raises(TypeError) as caught:
        any_of(answer().__getitem__, "a")
    assert str(caught.value) == (
        "answer[i] is a complex event by its number and answer[i:j] an answer, not 'a': "
        "rows() and to_arrow() have columns"
    )
    with pytest.raises(
        ValueError, match="there are at most 4611686018427387903 shares, not 9223372036854775808"
    ):
        answer().share(0, 2**63)
    assert any_of(answer().__getitem__, np.int64(0)).start == 0


def test_rows_of_too_many_complex_events_are_refused_by_their_count(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = pa.table({"type": ["A"] * 400 + ["B"]})
    found = estero.query("SELECT * WHERE A ; A ; A ; B").run(stream, type="type")
    monkeypatch.setattr("estero.answers.in_memory.memory_limit", lambda: 1 << 29)
    with pytest.raises(estero.LimitExceeded, match="the answer has 10,586,800 complex events"):
        found.rows().to_arrow()


def test_control_characters_of_names_reach_neither_terminals_nor_pictures() -> None:
    asked = estero.query('SELECT * WHERE "a\x1b[31m" AS x ; B')
    recognizer = asked.recognizer(STREAM.schema, type="type")
    for said in (repr(recognizer), asked.explain().svg(), str(asked.automaton()), str(asked.explain())):
        assert "\x1b" not in said
        assert "\\x1b" in said


def test_control_characters_of_values_are_escaped_in_every_picture() -> None:
    """XML has no place for them; labels of an axis are made anew whenever it is drawn."""
    stream = pa.table({"type": ["A", "B\x01", "A"], "k": ["\x1bq", "\x1bq", "r\x02"], "n": [1, 2, 3]})
    asked = estero.query('SELECT * WHERE A AS "a\x07" ; "B\x01" PARTITION BY [k] WITHIN 9 EVENTS')
    found = asked.run(stream, type="type")
    drawn = [found.plot(), found.plot(y="n"), found.funnel().plot(), found.funnel(by_partition=True).plot()]
    for svg in (*(picture.svg() for picture in drawn), asked.explain().svg()):
        assert fromstring(svg).tag.endswith("svg")
        assert r"\x" in svg


def test_queries_that_were_built_are_compared_as_texts_are() -> None:
    built = estero.select(estero.event("A").then(estero.event("B")))
    assert estero.equivalent(built, "SELECT * WHERE A ; B")
