"""Predicates of one's own over sets of events: registered, checked, called, and what goes wrong."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial

import numpy as np
import pyarrow as pa
import pytest

import estero
from answers.sifting import Made, left_by, matches_of, store_of, visible
from estero.answers.sieve.sieve import Sieve
from estero.automata.residual import Residual, predicates_called
from estero.errors import DataError
from estero.language.check.queries import check_query
from estero.language.check.set_predicates import known_predicates, registered, registered_among
from estero.language.syntax.parser import parse_condition, parse_query
from estero.language.tree.schema import Kind, Schema
from estero.plan.plan import Classification

TABLE = pa.table({"n": [1, 2, 3, None], "position": ["a", "b", "c", "d"]})
SCHEMA = Schema(shared={"n": Kind.INT, "position": Kind.STRING})


def sift(filter_text: str, *made: Made) -> list[Made]:
    """What the filter leaves of complex events in which id 0 shows u and id 1 shows v."""
    condition = parse_condition(filter_text)
    residual = Residual(condition, (("u", "u"), ("v", "v")))
    marks = visible("u", "v")
    sieve = Sieve(
        [residual],
        marks.labels,
        marks.hidden,
        classification=Classification((), SCHEMA),
        predicates=registered_among(predicates_called([residual])),
    )
    return left_by(sieve, [matches_of(made)], store_of(TABLE, first_position=10))


ONE = Made(0, 2, ((0, 0), (1, 1), (2, 1)))
OTHER = Made(0, 3, ((0, 0), (3, 1)))


# ------------------------------------------------------------------------------------- what it gets


def test_a_variable_is_a_table_an_attribute_an_array_a_constant_itself() -> None:
    seen: list[tuple[object, ...]] = []

    @estero.predicate
    def look(*given: object) -> bool:
        seen.append(given)
        return True

    assert sift("look(v, v.n, v.missing, 2.5, 'x', NULL, TIMESTAMP '2024-05-01')", ONE, OTHER) == [ONE, OTHER]
    table, values, missing, *constants = seen[0]
    assert isinstance(table, pa.Table)
    assert isinstance(values, pa.Array)
    assert isinstance(missing, pa.Array)
    assert table.to_pydict() == {"n": [2, 3], "position": ["b", "c"], "position_": [11, 12]}
    assert values.to_pylist() == [2, 3]
    assert missing.to_pylist() == [None, None]
    assert constants == [2.5, "x", None, datetime(2024, 5, 1, tzinfo=UTC)]
    assert seen[1][1].to_pylist() == [None]  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("says", "stays"),
    [
        (lambda _: True, True),
        (lambda _: False, False),
        (lambda _: None, False),
        (lambda _: np.bool_(True), True),
        (lambda _: pa.scalar(True), True),
        (lambda _: pa.scalar(None, pa.bool_()), False),
    ],
)
def test_what_is_true_stays(says: Callable[..., object], *, stays: bool) -> None:
    estero.predicate(name="says")(says)
    assert sift("says(v.n)", ONE) == ([ONE] if stays else [])


def test_unknown_is_unknown_inside_or_and_not() -> None:
    estero.predicate(name="unknown")(lambda _: None)
    assert sift("unknown(v.n) OR u.n = 1", ONE) == [ONE]
    assert sift("NOT unknown(v.n)", ONE) == []


def test_it_is_called_only_for_what_the_other_filters_leave() -> None:
    calls: list[object] = []

    @estero.predicate
    def noted(values: pa.Array) -> bool:
        calls.append(values)
        return True

    condition = parse_condition("noted(u.n)")
    cheap = parse_condition("v.n IS NULL")
    residuals = [Residual(each, (("u", "u"), ("v", "v"))) for each in (condition, cheap)]
    marks = visible("u", "v")
    sieve = Sieve(
        residuals,
        marks.labels,
        marks.hidden,
        classification=Classification((), SCHEMA),
        predicates=registered_among(["noted"]),
    )
    assert left_by(sieve, [matches_of([ONE, OTHER])], store_of(TABLE)) == [OTHER]
    assert len(calls) == 1


# ---------------------------------------------------------------------------------- what goes wrong


def test_what_it_raises_names_the_predicate_and_the_complex_event() -> None:
    @estero.predicate
    def far(values: pa.Array, by: float) -> bool:
        return bool(values[0].as_py() / by > 1)

    with pytest.raises(DataError) as caught:
        sift("far(v.n, 0)", ONE)
    assert str(caught.value) == (
        "the predicate far raised ZeroDivisionError: division by zero; "
        "the complex event marks positions 10, 11, 12"
    )
    assert isinstance(caught.value.__cause__, ZeroDivisionError)


def test_where_events_have_no_positions_its_arguments_are_named() -> None:
    estero.predicate(name="size")(len)
    marks = visible("u", "v")
    sieve = Sieve(
        [Residual(parse_condition("size(v.n)"), (("v", "v"),))],
        marks.labels,
        marks.hidden,
        classification=Classification((), SCHEMA),
        predicates=registered_among(["size"]),
        placed=False,
    )
    with pytest.raises(DataError) as caught:
        left_by(sieve, [matches_of([ONE])], store_of(TABLE))
    assert str(caught.value) == (
        "the predicate size returned 2, and not True, False or None; it was called with [2, 3]"
    )


def test_what_it_raises_without_a_message() -> None:
    def fail(values: pa.Array) -> bool:
        raise KeyError

    estero.predicate(fail)
    with pytest.raises(DataError) as caught:
        sift("fail(u)", Made(0, 0, ((0, 0),)))
    assert str(caught.value) == "the predicate fail raised KeyError; the complex event marks position 10"


def test_what_it_returns_is_a_truth_value() -> None:
    estero.predicate(name="size")(len)
    with pytest.raises(DataError) as caught:
        sift("size(v.n)", ONE)
    assert str(caught.value) == (
        "the predicate size returned 2, and not True, False or None; "
        "the complex event marks positions 10, 11, 12"
    )


# ------------------------------------------------------------------------------- names and arguments


def test_the_function_stays_what_it_is() -> None:
    def near(values: pa.Array) -> bool:
        return True

    assert estero.predicate(near) is near
    assert estero.predicate(name="close")(near) is near
    assert known_predicates() == ("increasing", "decreasing", "close", "near")


def test_a_function_that_is_defined_anew_replaces_the_old_one() -> None:
    estero.predicate(name="near")(lambda _: False)
    estero.predicate(name="near")(lambda _values, _by: True)
    assert sift("near(u.n, 1)", ONE) == [ONE]
    assert registered("near") is not None
    assert registered("far") is None


@pytest.mark.parametrize("name", ["not a name", "", "select", "FILTER", "3d"])
def test_a_name_that_no_query_can_say(name: str) -> None:
    with pytest.raises(ValueError, match="name") as caught:
        estero.predicate(name=name)(lambda _: True)
    assert str(caught.value) == (
        f"{name!r} cannot be the name of a predicate in a query: "
        "name it with @estero.predicate(name='…'), in letters, digits and _, but not with a keyword"
    )


def test_a_function_without_a_name_wants_one() -> None:
    with pytest.raises(ValueError, match=r"^'<lambda>' cannot be the name of a predicate in a query"):
        estero.predicate(lambda _: True)
    with pytest.raises(ValueError, match=r"^'' cannot be the name of a predicate in a query"):
        estero.predicate(partial(max, default=None))


@pytest.mark.parametrize("name", ["increasing", "Count", "abs"])
def test_a_name_that_is_built_in(name: str) -> None:
    with pytest.raises(ValueError, match="built in") as caught:
        estero.predicate(name=name)(lambda _: True)
    assert str(caught.value) == (
        f"{name} is built in: give the predicate another name, "
        f"as in @estero.predicate(name='my_{name.lower()}')"
    )


def test_arguments_by_keyword_only() -> None:
    def near(values: pa.Array, *, by: float, unit: str = "s") -> bool:
        return True

    with pytest.raises(TypeError) as caught:
        estero.predicate(near)
    assert str(caught.value) == (
        "the predicate near needs by by keyword; queries give arguments by place: "
        "move by before the *, or give it a default"
    )


def test_what_cannot_be_called() -> None:
    with pytest.raises(TypeError, match=r"^a predicate is a function, not 'near'$"):
        estero.predicate("near")  # type: ignore[call-overload]


# ----------------------------------------------------------------------------- what a query says of it


def lines(*each: str) -> str:
    return "\n".join(each)


def said(text: str, schema: Schema | None = None) -> str:
    """What the check of a query says of its predicates."""
    found = check_query(parse_query(text), schema)
    return "\n\n".join(str(each) for each in found if "does not evaluate it yet" not in each.message)


def test_a_predicate_that_is_not_registered() -> None:
    estero.predicate(name="spread")(lambda _: True)
    assert said("SELECT * WHERE a AS x FILTER spred(x.p) AND Spread(x)") == lines(
        "unknown predicate spred",
        "  1 | SELECT * WHERE a AS x FILTER spred(x.p) AND Spread(x)",
        "    |                              ^^^^^",
        "    expected: increasing, decreasing or spread",
        "    hint: did you mean spread?",
        "",
        "unknown predicate Spread",
        "  1 | SELECT * WHERE a AS x FILTER spred(x.p) AND Spread(x)",
        "    |                                             ^^^^^^",
        "    expected: increasing, decreasing or spread",
        "    hint: did you mean spread?",
    )


def test_the_wrong_number_of_arguments() -> None:
    def near(values: pa.Array, others: pa.Array, by: float = 1) -> bool:
        return True

    estero.predicate(near)

    @estero.predicate
    def any_of(first: pa.Table, *others: object, case: bool = True) -> bool:
        return True

    assert said("SELECT * WHERE a AS x FILTER near(x.p) OR any_of()") == lines(
        "near takes 2 to 3 arguments, not 1",
        "  1 | SELECT * WHERE a AS x FILTER near(x.p) OR any_of()",
        "    |                              ^^^^^^^^^",
        "    expected: near(values, others, by)",
        "    hint: X, X.a or a constant is one argument each",
        "",
        "any_of takes at least 1 argument, not 0",
        "  1 | SELECT * WHERE a AS x FILTER near(x.p) OR any_of()",
        "    |                                           ^^^^^^^^",
        "    expected: any_of(first, *others)",
        "    hint: X, X.a or a constant is one argument each",
    )
    assert said("SELECT * WHERE a AS x FILTER near(x.p, x, 3) AND any_of(x, x, x, 4)") == ""


def test_a_predicate_of_constants() -> None:
    estero.predicate(name="near")(lambda _: True)
    assert said("SELECT * WHERE a FILTER near(1)") == lines(
        "near refers to no variable",
        "  1 | SELECT * WHERE a FILTER near(1)",
        "    |                         ^^^^^^^",
        "    expected: near(X) or near(X.a)",
        "    hint: name at least one variable: without one it says the same of all complex events",
    )


@pytest.mark.parametrize(
    ("predicate", "message", "hint"),
    [
        (
            "increasing(x)",
            "increasing takes values, and x is a variable",
            "name the attribute: increasing(x.…)",
        ),
        ("decreasing(x.p, x.q)", "decreasing takes one attribute of a variable", "join several by AND"),
        ("increasing(3)", "increasing takes one attribute of a variable", "join several by AND"),
    ],
)
def test_built_in_predicates_take_one_attribute(predicate: str, message: str, hint: str) -> None:
    text = f"SELECT * WHERE a AS x FILTER {predicate}"
    name = predicate.partition("(")[0]
    assert said(text) == lines(
        message,
        f"  1 | {text}",
        f"    | {' ' * 29}{'^' * len(predicate)}",
        f"    expected: {name}(X.a)",
        f"    hint: {hint}",
    )


def test_increasing_values_can_be_compared() -> None:
    text = "SELECT * WHERE a AS x FILTER increasing(x.tags)"
    assert said(text, Schema(shared={"tags": Kind.OPAQUE})) == lines(
        "x.tags cannot be compared",
        f"  1 | {text}",
        f"    | {' ' * 40}^^^^^^",
        "    expected: an attribute that holds truth values, numbers, strings or timestamps",
        "    hint: lists, bytes and structures can only be shown, or tested with IS NULL",
    )
