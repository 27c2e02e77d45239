"""Detections in Sigma with all modifiers, and events that they may hold of."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from hypothesis import strategies as st

FIELDS: Final = ("a", "b.c", "d", "n", "t", "l", "s.x", "s.k")
TEXTS: Final = (
    "",
    "x",
    "X",
    "ab",
    "aB*",
    "a\\b",
    "-f x",
    "/F x",
    "–f",
    "1",
    "10",
    "true",
    "é",
    "É_",
    "a%b",
    "eA==",
    "YWI=",
    "10.0.0.7",
    "fe80::1",
    "a\nb",
)
NUMBERS: Final = (0, 1, 10, 2.5, -3)
WHOLE: Final = (0, 1, 10, -3)
FRACTIONS: Final = (0.0, 1.0, 2.5)
MIXED: Final = (0, 1, "1", 2.5, "x", True, "TRUE")
VALUES: Final = (
    "x",
    "*",
    "a*",
    "?b",
    "a\\*",
    "A\\\\b",
    "a\\b",
    "*%*",
    "é?",
    "1",
    "10",
    "-f",
    " ",
    "b",
    "true",
    "",
)
PLACEHOLDERS: Final = {"who": ["x", "AB"], "p": ["a*", "1"]}


@st.composite
def items(draw: st.DrawFn) -> tuple[str, Any]:
    """A key with modifiers, and what belongs to it."""
    field = draw(st.sampled_from(FIELDS))
    kind = draw(
        st.sampled_from(
            (
                "text",
                "text",
                "text",
                "number",
                "re",
                "cidr",
                "compare",
                "exists",
                "null",
                "fieldref",
                "encoded",
                "expand",
                "windash",
                "bool",
            )
        )
    )
    ends = draw(st.sampled_from(("", "|contains", "|startswith", "|endswith")))
    cased = draw(st.sampled_from(("", "", "|cased")))
    every = draw(st.sampled_from(("", "", "|all", "|neq")))
    some = st.lists(st.sampled_from(VALUES), min_size=1, max_size=3)
    match kind:
        case "text":
            return f"{field}{ends}{cased}{every}", draw(some)
        case "number":
            return field, draw(st.lists(st.sampled_from(NUMBERS), min_size=1, max_size=2))
        case "re":
            flag = draw(st.sampled_from(("", "|i", "|s", "|m")))
            return f"{field}|re{flag}", draw(st.sampled_from(("^a", "b$", "a.b", "^x$", "[0-9]+", "A|é", "")))
        case "cidr":
            return f"{field}|cidr", draw(st.sampled_from(("10.0.0.0/29", "fe80::/10", "0.0.0.0/0")))
        case "compare":
            return f"{field}|{draw(st.sampled_from(('lt', 'lte', 'gt', 'gte')))}", draw(
                st.sampled_from(NUMBERS)
            )
        case "exists":
            return f"{field}|exists", draw(st.booleans())
        case "null":
            return field, draw(st.sampled_from((None, [None, "x"], [])))
        case "fieldref":
            return f"{field}|fieldref{ends}", draw(st.sampled_from(FIELDS))
        case "encoded":
            wide = draw(st.sampled_from(("", "|wide", "|utf16le")))
            return f"{field}{wide}|base64{draw(st.sampled_from(('', 'offset')))}|contains", draw(
                st.sampled_from(("x", "ab", "abc"))
            )
        case "expand":
            return f"{field}|expand{ends}", draw(st.sampled_from(("%who%", "%p%", "x%who%")))
        case "windash":
            return f"{field}|windash{ends}", draw(st.sampled_from(("-f", "/f -g", "a-b", "-f *")))
        case _:
            return field, draw(st.booleans())


@st.composite
def detections(draw: st.DrawFn) -> dict[str, Any]:
    """The detection section of a rule."""
    names = draw(
        st.lists(st.sampled_from(("s", "s_1", "s_2", "f_1", "_h")), min_size=1, max_size=4, unique=True)
    )
    parts: dict[str, Any] = {}
    for name in names:
        parts[name] = draw(
            st.one_of(
                st.lists(items(), min_size=1, max_size=2).map(dict),
                st.lists(st.lists(items(), min_size=1, max_size=2).map(dict), min_size=1, max_size=2),
                st.lists(st.sampled_from(("x", "a*b", "É", "1", 10)), min_size=1, max_size=2),
            )
        )
    texts = [*names, *(f"{many} of {name}" for name in _patterns(names) for many in ("1", "any", "all"))]
    condition = st.recursive(
        st.sampled_from(texts),
        lambda inner: st.one_of(
            inner.map(lambda one: f"not {one}" if " " not in one or " of " in one else f"not ({one})"),
            st.tuples(inner, st.sampled_from(("and", "or")), inner).map(" ".join),
            st.tuples(inner, st.sampled_from(("and", "or")), inner).map(lambda three: f"({' '.join(three)})"),
        ),
        max_leaves=4,
    )
    several = draw(st.booleans()) and draw(st.booleans())
    return {**parts, "condition": [draw(condition), draw(condition)] if several else draw(condition)}


def _patterns(names: list[str]) -> list[str]:
    """The patterns of names that some name fits."""
    shown = [name for name in names if not name.startswith("_")]
    return [
        *(["them"] if shown else []),
        *(["s*"] if any(name.startswith("s") for name in shown) else []),
        *(["s_*"] if any(name.startswith("s_") for name in shown) else []),
        *(["_*"] if "_h" in names else []),
    ]


@st.composite
def events(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Events whose fields are of one kind, flat or in the structs of Windows' exports, and may be missing.

    `l` is a list of texts or numbers, `s` a list of structs.
    """
    elements = draw(
        st.sampled_from((st.sampled_from(TEXTS), st.sampled_from(WHOLE), st.sampled_from(FRACTIONS)))
    )
    texts = st.one_of(st.none(), st.sampled_from(TEXTS))
    struct = st.fixed_dictionaries(
        {"x": texts, "k": st.one_of(st.none(), st.lists(st.sampled_from(TEXTS), max_size=2))}
    )
    kinds: dict[str, st.SearchStrategy[Any]] = {
        "a": st.sampled_from(TEXTS),
        "b.c": st.sampled_from(TEXTS),
        "d": st.sampled_from(TEXTS),
        "n": draw(st.sampled_from(tuple(map(st.sampled_from, (WHOLE, FRACTIONS, TEXTS, MIXED))))),
        "t": draw(st.sampled_from((st.booleans(), st.sampled_from(TEXTS)))),
        "l": st.one_of(st.lists(elements, max_size=3), elements.map(lambda one: [None, one])),
        "s": st.lists(struct, max_size=2),
    }
    shape = draw(st.sampled_from(("flat", "nested", "raw", "flattened")))
    made = []
    for _ in range(draw(st.integers(1, 6))):
        row = {
            name: draw(st.one_of(st.none(), kind)) for name, kind in kinds.items() if draw(st.integers(0, 5))
        }
        made.append(_shaped(row, shape))
    return made


def _shaped(row: dict[str, Any], shape: str) -> dict[str, Any]:
    if shape == "flat":
        return row
    if shape == "flattened":
        parts = {name: "System" if name in ("n", "t") else "EventData" for name in row}
        return {f"Event.{parts[name]}.{name}": value for name, value in row.items()}
    inner = {name: value for name, value in row.items() if name != "b.c"}
    if "b.c" in row:
        inner["b"] = {"c": row["b.c"]}
    if shape == "nested":
        return inner
    system = {name: inner.pop(name) for name in ("n", "t") if name in inner}
    return {"Event": {"System": system, "EventData": inner}}


@st.composite
def correlations(draw: st.DrawFn) -> tuple[dict[str, Any], dict[str, Any]]:
    """The correlation section of a rule, and the detections that it refers to, by name."""
    numbers = ("value_sum", "value_avg", "value_median")
    kind = draw(st.sampled_from(("event_count", "value_count", "temporal", "temporal_ordered", *numbers)))
    names = draw(st.permutations(("one", "two", "three")))[: draw(st.integers(1, 3))]
    values = {name: draw(st.lists(st.sampled_from("pqr"), min_size=1, max_size=2)) for name in names}
    rules = {name: {"s": {"k": values[name]}, "condition": "s"} for name in names}
    section: dict[str, Any] = {
        "type": kind,
        "rules": list(names),
        "timespan": draw(st.sampled_from(("3s", "5s"))),
    }
    groups = draw(st.sampled_from(([], ["u"], ["u", "w"])))
    section |= {"group-by": groups} if groups else {}
    section |= draw(st.sampled_from(({}, {"aliases": _aliases(draw, groups, names)})))
    least = draw(
        st.sampled_from(
            (
                *(
                    {"gte": 1},
                    {"gte": 2},
                    {"gt": 1},
                    {"gte": 3},
                    {"lt": 3},
                    {"lte": 2},
                    {"eq": 2},
                    {"neq": 2},
                ),
                *({"gt": 1, "lte": 3}, {"gte": 2, "neq": 3}),
            )
        )
    )
    if kind == "event_count":
        section["condition"] = least
    elif kind == "value_count":
        section["condition"] = {**least, "field": draw(st.sampled_from("vvvg"))}  # no event has `g`
    elif kind in numbers:
        section["condition"] = {**least, "field": draw(st.sampled_from(("n", "f", "x")))}
    elif kind == "temporal" and draw(st.booleans()):
        sign = draw(st.sampled_from(("gte", "lte", "eq", "neq")))
        section["condition"] = {sign: draw(st.integers(1, len(names)))}
    return section, rules


@st.composite
def aggregations(draw: st.DrawFn) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    """The detection section of an aggregation, and the correlation and the detections that it means."""
    names = draw(st.permutations(("one", "two", "three")))[: draw(st.integers(1, 3))]
    parts = {name: {"k": draw(st.lists(st.sampled_from("pqr"), min_size=1, max_size=2))} for name in names}
    timespan = draw(st.sampled_from(("3s", "5s")))
    detection: dict[str, Any] = {**parts, "timeframe": timespan}
    section: dict[str, Any] = {"rules": ["all"], "timespan": timespan}
    kind = draw(st.sampled_from(("event_count", "value_count", "value_sum", "value_avg", "temporal")))
    if kind == "temporal" and len(names) > 1:
        condition = f"{names[0]} | near {' and '.join(names[1:])}"
        rules = {name: {**parts, "condition": name} for name in names}
        section |= {"type": kind, "rules": list(names)}
        return {**detection, "condition": condition}, section, rules
    field = {"event_count": "", "value_count": draw(st.sampled_from("vvvg"))}.get(kind, "n")
    function = {"value_sum": "sum", "value_avg": "avg"}.get(kind, "count")
    groups = draw(st.sampled_from(((), ("u",), ("u", "w"))))
    sign, word = draw(st.sampled_from(((">", "gt"), (">=", "gte"), ("<=", "lte"), ("=", "eq"))))
    number = draw(st.integers(1, 3))
    by = f" by {', '.join(groups)}" if groups else ""
    searched = " or ".join(names)
    section |= {"type": "value_count" if field and function == "count" else kind, "condition": {word: number}}
    if kind == "temporal":
        section["type"], field = "event_count", ""
    section["condition"] |= {"field": field} if field else {}
    section |= {"group-by": list(groups)} if groups else {}
    condition = f"{searched} | {function}({field}){by} {sign} {number}"
    return {**detection, "condition": condition}, section, {"all": {**parts, "condition": searched}}


def _aliases(draw: st.DrawFn, groups: list[str], names: Sequence[str]) -> dict[str, dict[str, str]]:
    """Other fields for some of the groups, by rule; no event has `z`."""
    fields = st.sampled_from(("u", "w", "o", "n", "x", "f", "z"))
    return {group: {name: draw(fields) for name in names} for group in groups if draw(st.booleans())}


@st.composite
def timed_events(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Events in order of their times `t`, in seconds, some at one time."""
    numbers = {"n": (-1, 0, 2, 3), "f": (0.5, 2.0), "x": ("1", "2.5")}
    values: dict[str, Any] = {"k": "pqrs", "u": "xy", "w": "ym", "o": "xy", "v": "abc", **numbers}
    row = st.fixed_dictionaries(
        {name: st.one_of(*[st.sampled_from(letters)] * 4, st.none()) for name, letters in values.items()}
    )
    rows = draw(st.lists(st.tuples(st.integers(0, 2), row), min_size=1, max_size=14))
    time, made = 0, []
    for apart, event in rows:
        time += apart
        made.append({"t": time, **event})
    return made
