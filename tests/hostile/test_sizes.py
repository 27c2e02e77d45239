"""Texts and patterns that are large or deep: an answer, or an error that says what is too large; no hang."""

from __future__ import annotations

import operator
from collections.abc import Callable
from functools import reduce

import pyarrow as pa
import pytest

import estero
from automata.hierarchical import hierarchical_pcea
from estero import LimitExceeded, QueryError
from estero.language.builder.conditions import Condition, var
from estero.language.builder.queries import PatternBuilder, event, select
from estero.language.check.atoms import named_atoms
from estero.language.check.kinds import KindChecker
from estero.language.check.problems import Problems
from estero.language.syntax.parser import parse_condition, parse_conjunctive
from estero.language.tree.expressions import Attribute
from estero.language.tree.schema import Kind, Schema

NINES = "9" * 5_000


@pytest.mark.parametrize(
    "text",
    [
        f"SELECT * WHERE A FILTER A[v = {NINES}]",
        f"SELECT * WHERE A FILTER A[v = -{NINES}]",
        f"SELECT * WHERE A FILTER A[v IN {{1..{NINES}}}]",
        f"SELECT * WHERE A{{{NINES}}}",
        f"SELECT * WHERE A{{{NINES},}}",
        f"SELECT * WHERE A{{1,{NINES}}}",
        f"SELECT * WHERE A WITHIN {NINES} EVENTS",
        f"SELECT * WHERE A WITHIN {NINES} SECONDS",
        f"SELECT * WHERE A WITHIN {NINES} [t]",
        f"SELECT * WHERE A LIMIT {NINES}",
    ],
)
def test_an_integer_of_thousands_of_digits_is_refused_at_its_place(text: str) -> None:
    with pytest.raises(QueryError) as caught:
        estero.query(text)
    error = caught.value
    assert error.message == "this integer does not fit in 64 bits"
    assert error.hint == "it has 5,000 digits"
    assert text[error.span.start : error.span.end].lstrip("-") == NINES


@pytest.mark.parametrize("body", [f"T(x, {NINES})", f"T(x) WITHIN {NINES} EVENTS", f"T(x) LIMIT {NINES}"])
def test_so_it_is_in_a_conjunctive_query(body: str) -> None:
    with pytest.raises(QueryError, match="this integer does not fit in 64 bits") as caught:
        estero.conjunctive(f"Q(x) <- {body}")
    assert caught.value.hint == "it has 5,000 digits"


def test_leading_zeros_do_not_make_an_integer_large() -> None:
    assert parse_condition("v = " + "0" * 5_000 + "7") == parse_condition("v = 7")


def test_the_builder_refuses_such_integers_too() -> None:
    a, large = event("A"), 10**5_000
    value = var("A").v
    for built in (
        a.where(value > large),
        a.repeated(large),
        select(a).limit(large),
        select(a).within(seconds=large),
        select(a).within(events=large),
    ):
        with pytest.raises(QueryError) as caught:
            estero.query(built)
        assert caught.value.message == "this integer does not fit in 64 bits"
        assert caught.value.hint == "it has more than 1,000 digits"


@pytest.mark.parametrize("count", [16, 26, 60])
def test_a_query_that_joins_a_type_with_itself_too_often_names_the_type_and_its_atoms(count: int) -> None:
    query = estero.conjunctive("Q(x) <- " + ", ".join(["T(x)"] * count))
    with pytest.raises(LimitExceeded) as caught:
        query.explain()
    assert str(caught.value) == (
        "this query needs an automaton of more than 20,000 transitions, because one event of type T may "
        f"serve any of {count} atoms at once (0, 1, 2, 3, 4, 5, 6, 7 or {count - 8} more): use constants "
        "that distinguish these atoms, or fewer atoms"
    )


def test_a_query_of_too_many_atoms_says_so() -> None:
    query = estero.conjunctive("Q(x) <- " + ", ".join(f"T(x, {number})" for number in range(600)))
    with pytest.raises(LimitExceeded) as caught:
        query.explain()
    assert str(caught.value) == (
        "this query joins 600 atoms, and its automaton would combine partial matches in more than 250,000 "
        "ways: write fewer atoms, or several queries"
    )


def test_hundreds_of_types_are_joined_by_two_transitions_each() -> None:
    tree = parse_conjunctive("Q(x) <- " + ", ".join(f"T{number}(x)" for number in range(400)))
    automaton = hierarchical_pcea(named_atoms(tree, Schema(shared={})))
    assert len(automaton.transitions) == 800
    assert sum(len(transition.sources) for transition in automaton.transitions) == 400 * 399
    assert len(automaton.keys) == 1


def test_a_list_of_thousands_of_members_is_read_and_finds_what_is_in_it() -> None:
    members = ", ".join(map(str, range(0, 20_000, 2)))
    query = estero.query(f"SELECT * WHERE A FILTER A[v IN {{{members}}}]")
    events = pa.table({"kind": ["A"] * 4, "v": [1, 2, 19_998, 20_000]})
    assert [ce.start for ce in query.run(events, type="kind")] == [1, 2]


def test_the_kind_of_what_is_in_a_list_is_looked_up_once() -> None:
    asked: list[str] = []

    def kind(attribute: Attribute) -> Kind:
        asked.append(attribute.name)
        return Kind.INT

    condition = parse_condition("v IN {" + ", ".join(map(str, range(1_000))) + "}")
    problems = Problems("")
    KindChecker(kind, problems).truth(condition)
    assert (asked, problems.in_order()) == (["v"], [])


def test_thirty_types_in_any_order_are_found() -> None:
    names = [f"T{number}" for number in range(30)]
    query = estero.query(f"SELECT * WHERE {' ALL '.join(names)}")
    found = query.run(pa.table({"kind": names[::-1]}), type="kind")
    assert [(ce.start, ce.end, ce.positions["T29"]) for ce in found] == [(0, 29, (0,))]


@pytest.mark.parametrize("condition", [" + ".join(["v"] * 90) + " > 89", "NOT (" * 90 + "v > 0" + ")" * 90])
def test_a_deep_condition_is_explained_and_found(condition: str) -> None:
    query = estero.query(f"SELECT * WHERE A FILTER A[{condition}]")
    events = pa.table({"kind": ["A", "A"], "v": [0, 1]})
    assert "Classification (Spark)" in str(query.explain(events, type="kind"))
    assert [ce.start for ce in query.run(events, type="kind")] == [1]


@pytest.mark.parametrize(
    "text", ["(" * 5_000 + "A" + ")" * 5_000, "A" + " ; A" * 5_000, "A" + " OR A" * 5_000]
)
def test_long_and_parenthesised_texts_are_read_printed_and_hashed(text: str) -> None:
    query = estero.query(f"SELECT * WHERE {text}")
    again = estero.query(str(query))
    assert (again, hash(again)) == (query, hash(query))


def test_what_is_nested_too_deeply_is_refused() -> None:
    for text in ("STRICT(" * 1_000 + "A" + ")" * 1_000, "A FILTER " + "NOT " * 1_000 + "A[v = 1]"):
        with pytest.raises(QueryError, match="this is nested more than 100 levels deep"):
            estero.query(f"SELECT * WHERE {text}")


V = var("A").v
CHAINS: dict[str, Callable[[int], PatternBuilder]] = {
    "&": lambda n: event("A").where(reduce(operator.and_, [-number <= V for number in range(n)])),
    "|": lambda n: event("A").where(reduce(operator.or_, [V.is_in(number) for number in range(n)])),
    "then": lambda n: reduce(PatternBuilder.then, [event("A")] * n),
    "followed_directly_by": lambda n: reduce(PatternBuilder.followed_directly_by, [event("A")] * n),
    "or_": lambda n: reduce(PatternBuilder.or_, [event("A")] * n),
    "and_": lambda n: reduce(PatternBuilder.and_, [event("A")] * n),
}
CONDITIONS: dict[str, Callable[[int], Condition]] = {
    "~": lambda n: reduce(lambda one, _: ~one, range(n), V > 0),
    "-": lambda n: reduce(lambda one, _: -one, range(n), V) > 0,
    "+": lambda n: reduce(operator.add, [V] * n) > 0,
    "+ from the right": lambda n: reduce(lambda one, _: V + one, range(n), V) > 0,
    "call": lambda n: reduce(lambda one, _: estero.call("abs", one), range(n), V) > 0,
    "case": lambda n: reduce(lambda one, _: estero.case((V > 0, 1), otherwise=one), range(n), V) > 0,
    "& from the right": lambda n: reduce(lambda one, _: (V > 0) & one, range(n), V > 1),
    "& and |": lambda n: reduce(lambda one, _: ((V > 0) & one) | (V > 2), range(n), V > 1),
}
NESTED: dict[str, Callable[[int], PatternBuilder]] = {
    **{
        name: lambda n, condition=condition: event("A").where(condition(n))  # type: ignore[misc]
        for name, condition in CONDITIONS.items()
    },
    "then from the right": lambda n: reduce(lambda one, _: event("A").then(one), range(n), event("A")),
    "or_ from the right": lambda n: reduce(lambda one, _: event("A").or_(one), range(n), event("A")),
    "unless": lambda n: reduce(PatternBuilder.unless, [event("A")] * n),
    "where": lambda n: reduce(lambda one, _: one.where(V > 0), range(n), event("A")),
    "named": lambda n: reduce(lambda one, number: one.named(f"x{number}"), range(n), event("A")),
    "repeated": lambda n: reduce(lambda one, _: one.repeated(), range(n), event("A")),
    "absent": lambda n: reduce(
        lambda one, _: event("A").then(estero.absent("A").within("1 hour"), one), range(n), event("A")
    ),
}


@pytest.mark.parametrize("name", CHAINS)
def test_long_chains_of_the_builder_are_one_level(name: str) -> None:
    built = CHAINS[name](5_000)
    query = estero.query(select(built).within(events=9))
    assert query == estero.query(str(query))
    assert len(str(built)) > 5_000


@pytest.mark.parametrize("name", NESTED)
def test_what_the_builder_nests_too_deeply_is_refused(name: str) -> None:
    with pytest.raises(QueryError, match="this is nested more than 100 levels deep"):
        NESTED[name](5_000)


@pytest.mark.parametrize("name", NESTED)
def test_what_the_builder_makes_is_printed_and_read_or_refused(name: str) -> None:
    events = pa.table({"type": ["A", "A"], "v": [0, 1], "t": [0, 1]})
    for levels in (45, *range(88, 101)):
        try:
            query = estero.query(select(NESTED[name](levels)))
        except QueryError as error:
            assert error.message == "this is nested more than 100 levels deep"  # noqa: PT017
            assert levels > 45
        else:
            assert "A" in str(query)
            if levels == 45:
                query.run(events, type="type", time="t", time_unit="s").count()
