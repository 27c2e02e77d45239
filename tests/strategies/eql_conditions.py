"""Random conditions in EQL, and the events that they are asked of."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

from estero.language.eql import tree as q

COLUMNS = pa.schema(
    [
        ("s", pa.string()),
        ("S", pa.string()),
        ("n", pa.int64()),
        ("N", pa.int64()),
        ("x", pa.float64()),
        ("b", pa.bool_()),
        ("l", pa.list_(pa.string())),
        ("k", pa.list_(pa.int64())),
        (
            "p",
            pa.struct(
                [("s", pa.string()), ("n", pa.int64()), ("in", pa.struct([("l", pa.list_(pa.string()))]))]
            ),
        ),
        ("f.s", pa.string()),
        ("event", pa.struct([("category", pa.string())])),
    ]
)
WORDS = [
    "",
    "a",
    "A",
    "ab",
    "aB",
    "b%",
    "a_b",
    "a\\b",
    "a*b",
    "ba\n",
    "éa",
    "12",
    "-3",
    "0x1f",
    "true",
    "10.1.2.3",
]
words = st.sampled_from(WORDS)
small = st.integers(-4, 12)
halves = st.sampled_from([-2.5, -1.0, 0.0, 0.5, 3.0, 12.0])


def _maybe(values: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.one_of(values, values, values, st.none())


def _lists(values: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return _maybe(st.lists(_maybe(values), max_size=3))


events = st.fixed_dictionaries(
    {
        **{name: _maybe(words) for name in ("s", "S", "f.s")},
        **{name: _maybe(small) for name in ("n", "N")},
        "x": _maybe(halves),
        "b": _maybe(st.booleans()),
        "l": _lists(words),
        "k": _lists(small),
        "p": _maybe(
            st.fixed_dictionaries(
                {
                    "s": _maybe(words),
                    "n": _maybe(small),
                    "in": _maybe(st.fixed_dictionaries({"l": _lists(words)})),
                }
            )
        ),
        "event": _maybe(st.fixed_dictionaries({"category": _maybe(st.sampled_from(["one", "two"]))})),
    }
)


def _field(*names: str) -> st.SearchStrategy[q.EqlNode]:
    plain = st.sampled_from([q.Field(tuple(name.split("."))) for name in names])
    return st.one_of(plain, plain, plain, plain.map(lambda field: q.Field(field.parts, True)))


TEXTS = ("s", "S", "f.s", "p.s")
INTEGERS = ("n", "N", "p.n")
texts = st.one_of(_field(*TEXTS), _field(*TEXTS, "l", "p.in.l"), words.map(q.Constant))
numbers = st.one_of(_field(*INTEGERS), _field(*INTEGERS, "k"), small.map(q.Constant))
floats = st.one_of(_field("x"), halves.map(q.Constant))
null = st.just(q.Constant(None))


def _call(
    name: str, *arguments: st.SearchStrategy[q.EqlNode], caseless: bool = False
) -> st.SearchStrategy[q.EqlNode]:
    case = st.booleans() if caseless else st.just(False)
    return st.builds(q.FunctionCall, st.just(name), st.tuples(*arguments), case)


def _larger_texts(inner: st.SearchStrategy[q.EqlNode]) -> st.SearchStrategy[q.EqlNode]:
    places = st.one_of(numbers, small.map(q.Constant), null)
    return st.one_of(
        _call("substring", inner, places),
        _call("substring", inner, places, places),
        _call("concat", inner, st.one_of(inner, numbers, null)),
        _call("between", inner, words.map(q.Constant), inner, caseless=True),
        _call("between", inner, inner, words.map(q.Constant), st.booleans().map(q.Constant), caseless=True),
        _call("string", st.one_of(numbers, inner, _field("b"))),
    )


strings = st.recursive(texts, _larger_texts, max_leaves=3)


def _larger_integers(inner: st.SearchStrategy[q.EqlNode]) -> st.SearchStrategy[q.EqlNode]:
    return st.one_of(
        st.builds(q.Computation, st.sampled_from("+-*/%"), inner, inner),
        st.builds(q.Minus, _field(*INTEGERS)),
        _call("length", strings),
        _call("indexOf", strings, strings, caseless=True),
        _call("indexOf", strings, strings, st.one_of(inner, null), caseless=True),
        st.sampled_from(["add", "modulo", "divide"]).flatmap(lambda name: _call(name, inner, inner)),
        _call("number", strings, st.sampled_from([q.Constant(16), q.Constant(8)])),
    )


integers = st.recursive(numbers, _larger_integers, max_leaves=3)
any_number = st.one_of(integers, floats, st.builds(q.Computation, st.sampled_from("+-*/"), integers, floats))
SIGNS = ("==", "!=", "<", "<=", ">", ">=")
REGEXES = ["a", "a.*", "(a|b)+.?", "[a-b]{1,2}", ".*\\\\.*", "\\w+", "a?[^a]*"]
wild = st.text("aAb*?%_\\", max_size=4)


NOWHERE = [q.Field(("no", "where"), True)]


def _several(values: st.SearchStrategy[Any]) -> st.SearchStrategy[tuple[Any, ...]]:
    return st.lists(values, min_size=1, max_size=3).map(tuple)


def _tests() -> st.SearchStrategy[q.EqlNode]:
    of_texts = st.one_of(
        st.builds(q.Compared, st.sampled_from(SIGNS), strings, strings),
        st.builds(q.Member, strings, _several(st.one_of(words.map(q.Constant), null, texts)), st.booleans()),
        st.builds(q.Alike, st.sampled_from([":", "like", "like~"]), strings, _several(wild.map(q.Constant))),
        st.builds(
            q.Alike,
            st.sampled_from(["regex", "regex~"]),
            strings,
            _several(st.sampled_from(REGEXES).map(q.Constant)),
        ),
        _call("startsWith", strings, strings, caseless=True),
        _call("endsWith", strings, st.one_of(strings, null), strings, caseless=True),
        _call("stringContains", strings, strings, caseless=True),
        _call("cidrMatch", _field("s", "l"), st.sampled_from(["10.0.0.0/8", "10.1.2.0/31"]).map(q.Constant)),
    )
    of_numbers = st.one_of(
        st.builds(q.Compared, st.sampled_from(SIGNS), any_number, any_number),
        st.builds(q.Member, integers, _several(st.one_of(small.map(q.Constant), null, numbers))),
        st.builds(q.Compared, st.sampled_from(["==", "!="]), _field(*INTEGERS), words.map(q.Constant)),
        st.builds(q.Compared, st.sampled_from(["==", "!="]), _field(*TEXTS), small.map(q.Constant)),
        st.builds(
            q.Alike, st.just(":"), _field(*INTEGERS, "k"), _several(st.one_of(small, words).map(q.Constant))
        ),
    )
    unknown = st.builds(
        q.Compared, st.sampled_from(["==", "!="]), st.one_of(strings, any_number, _field("b", "l", "k")), null
    )
    nowhere = st.builds(q.Compared, st.sampled_from(SIGNS), st.sampled_from(NOWHERE), strings)
    return st.one_of(of_texts, of_numbers, unknown, nowhere, _field("b"), st.booleans().map(q.Constant))


def _larger(inner: st.SearchStrategy[q.EqlNode]) -> st.SearchStrategy[q.EqlNode]:
    several = st.lists(inner, min_size=2, max_size=3)
    return st.one_of(
        several.map(lambda parts: q.AllOf(_flat(q.AllOf, parts))),
        several.map(lambda parts: q.AnyOf(_flat(q.AnyOf, parts))),
        inner.map(q.Negated),
    )


def _flat(kind: type[q.AllOf | q.AnyOf], parts: list[q.EqlNode]) -> tuple[q.EqlNode, ...]:
    return tuple(inner for part in parts for inner in (part.parts if isinstance(part, kind) else (part,)))


conditions = st.recursive(_tests(), _larger, max_leaves=5)
queries = st.builds(q.EventQuery, st.sampled_from([None, None, "one"]), conditions)
