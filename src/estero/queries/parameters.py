"""Values for the parameters of a query: Python values → constants, numbers, windows and lists.

Values are bound into the tree, never into the text, so nothing in them can be read as a part of the query.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import suppress
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any, Final, TypeVar, cast

from estero.classify.instants import moment_of
from estero.errors import QueryError
from estero.language.builder.durations import duration_of, durations_of
from estero.language.builder.numpy_times import nanoseconds_of
from estero.language.check.kinds import kind_of_value
from estero.language.syntax.parser import parse_condition
from estero.language.tree import expressions as e
from estero.language.tree.distances import DurationWindow
from estero.language.tree.durations import Duration
from estero.language.tree.literals import Value
from estero.language.tree.names import listed, suggestion
from estero.language.tree.nodes import OpenText
from estero.language.tree.parameters import (
    Open,
    OpenNumber,
    OpenWindow,
    beside_durations,
    filled,
    opened,
    place_of,
)
from estero.language.tree.schema import Kind

Tree = TypeVar("Tree")

FEW: Final = 1_000
"""The longest list whose values are printed with the query; for a longer one its name is printed."""

_ANOTHER: Final = {
    "number": "a whole number, such as 5",
    "text": "a string",
    "window": "a duration, such as '5 minutes' or a timedelta",
    "list": "a list, a set, an array or a column of values",
    "constant": "a number, a string, a truth value, a time or a duration",
}


def names_of(tree: object) -> tuple[str, ...]:
    """The names of the parameters without a value, in the order of the tree."""
    return tuple(dict.fromkeys(parameter.name for parameter in opened(tree)))


def bound(tree: Tree, values: Mapping[str, object], text: str) -> Tree:
    """The tree with values in place of parameters; others stay open.

    Raises `QueryError`, with the place in `text`, for a value that cannot take the place of its parameter,
    and for the name of an unknown parameter.
    """
    known = names_of(tree)
    for name in values:
        if name not in known:
            raise QueryError(
                f"the query has no parameter {name}",
                text=text,
                expected=listed([f"${name}" for name in known]) if known else "no parameters",
                hint=suggestion(name, known) or "leave it out, or write $name where a constant stands",
            )

    durations = {id(parameter) for parameter in beside_durations(tree)}

    def change(parameter: Open) -> object:
        if parameter.name not in values:
            return parameter
        return _filling(parameter, values[parameter.name], text, durational=id(parameter) in durations)

    return filled(tree, change)


def refuse_open(tree: object, text: str) -> list[QueryError]:
    """The error of a query with parameters that have no value, in a list; empty if all have one."""
    missing = list(opened(tree))
    if not missing:
        return []
    names = tuple(dict.fromkeys(parameter.name for parameter in missing))
    first = place_of(missing[0])
    calls = ", ".join(f"{name}=…" for name in names)
    are = "parameter has" if len(names) == 1 else "parameters have"
    return [
        QueryError(
            f"{len(names)} {are} no value: {listed([f'${name}' for name in names], 'and')}",
            text=text,
            span=first,
            expected=f"query.bind({calls})",
            hint=f"on the command line: {' '.join(f'--param {name}=…' for name in names)}",
        )
    ]


def _filling(parameter: Open, value: object, text: str, *, durational: bool) -> object:
    """The part of the tree that replaces a parameter; a text is a duration if `durational`."""

    def refuse(wanted: str, hint: str = "", given: str = "") -> QueryError:
        return QueryError(
            f"${parameter.name} cannot be {given or _said(value)} here",
            text=text,
            span=place_of(parameter),
            expected=_ANOTHER[wanted],
            hint=hint,
        )

    if isinstance(parameter, OpenNumber):
        number = _plain(value)
        if isinstance(number, bool) or not isinstance(number, int):
            raise refuse("number")
        return number
    if isinstance(parameter, OpenText):
        if not isinstance(value, str):
            raise refuse("text")
        return str(value)
    if isinstance(parameter, OpenWindow):
        return _window(parameter, value, refuse)
    if isinstance(parameter, e.ListOf):
        return _list(parameter, value, refuse)
    if durational and isinstance(value, str):
        return e.Literal(Duration.of(_window(parameter, value, refuse).parts), span=parameter.span)
    return e.Literal(_constant(value, refuse), span=parameter.span)


# ------------------------------------------------------------------------------------ one value


def _window(parameter: OpenWindow | e.Parameter, value: object, refuse: Any) -> DurationWindow:
    length = value if isinstance(value, str | timedelta | tuple) else _plain(value)
    if isinstance(length, Duration):
        if length.nanoseconds < 0:
            raise refuse("window")
        return DurationWindow(length.parts, span=parameter.span)
    if isinstance(length, int):
        ticks = f"${parameter.name} EVENTS, or ${parameter.name} [time]"
        raise refuse("window", f"for a number of events or ticks write {ticks}, in the query")
    if not isinstance(length, str | timedelta | tuple):
        raise refuse("window")
    try:
        return DurationWindow(tuple(durations_of(cast("Any", length))), span=parameter.span)
    except ValueError as error:
        raise refuse("window", str(error)) from error


def _constant(value: object, refuse: Any) -> Value:
    """The constant for a value of Python, NumPy or pandas."""
    plain = _plain(value)
    if plain is None:
        raise refuse("constant", "NULL equals nothing: write IS NULL in the query")
    if isinstance(plain, float) and not math.isfinite(plain):
        raise refuse("constant", "there is no literal for it; compare with a finite number")
    if isinstance(plain, _TooFine):
        raise refuse("constant", "constants of time have microseconds: round it", given="finer than that")
    if isinstance(plain, _TooLong):
        hint = "constants have 17 digits at most, but for integers: round it"
        raise refuse("constant", hint, given="a decimal of more digits")
    if kind_of(plain) is None:
        hint = "a list comes after IN: x.a IN $list" if _is_list(value) else ""
        raise refuse("constant", hint)
    return cast("Value", plain)


def kind_of(value: object) -> Kind | None:
    """The kind of a constant; None for any other value."""
    known = isinstance(value, bool | int | float | str | datetime | Duration)
    return kind_of_value(cast("Value", value)) if known else None


class _TooFine:
    """The stand-in for a time with nanoseconds, which no constant has."""


class _TooLong:
    """The stand-in for a decimal with more digits than a constant can have."""


def _number(value: Decimal) -> object:
    """The constant that equals a decimal."""
    if value.is_finite() and value == value.to_integral_value():
        return int(value)
    number = float(value)
    return number if not value.is_finite() or Decimal(repr(number)) == value else _TooLong()


def _plain(value: object) -> object:
    """The constant for a value of Python, NumPy or pandas; other values unchanged."""
    kind = getattr(getattr(value, "dtype", None), "kind", "")
    if getattr(value, "shape", None) == () and kind in "mM" and kind:
        return _of_ticks(value, kind)
    if getattr(value, "shape", None) == () and hasattr(value, "item"):
        value = value.item()
    if type(value).__name__ in ("NAType", "NaTType"):
        return None
    match value:
        case datetime():
            if getattr(value, "nanosecond", 0):
                return _TooFine()
            known = value if type(value) is datetime else datetime.fromisoformat(value.isoformat())
            return known.replace(tzinfo=UTC) if known.tzinfo is None else known.astimezone(UTC)
        case date():
            return datetime(value.year, value.month, value.day, tzinfo=UTC)
        case timedelta():
            return duration_of(value)
        case Decimal():
            return _number(value)
        case str():
            return str(value)
        case _:
            return value


def _of_ticks(value: Any, kind: str) -> object:
    """The constant for a time or a duration of NumPy; the value itself if there is none."""
    if str(value) == "NaT":
        return None
    nanoseconds = nanoseconds_of(value)
    if nanoseconds is None:
        return value
    if kind == "m":
        return Duration(int(nanoseconds)) if nanoseconds.denominator == 1 else _TooFine()
    micros = nanoseconds / 1000
    if micros.denominator > 1:
        return _TooFine()
    try:
        return moment_of(int(micros))
    except OverflowError:
        return value


def value_in(text: str) -> object:
    """The value written in a text: a constant of the language, a list in JSON, or else the text itself.

    >>> value_in("5"), value_in("0.5"), value_in("INTC"), value_in("'5'"), value_in("[1, 2]")
    (5, 0.5, 'INTC', '5', [1, 2])
    """
    stripped = text.strip()
    if stripped.startswith("["):
        with suppress(ValueError):
            return json.loads(stripped)
    with suppress(QueryError):
        parsed = parse_condition(stripped)
        if isinstance(parsed, e.Literal) and not isinstance(parsed, e.Parameter):
            return parsed.value
    return text


# -------------------------------------------------------------------------------------- a list


def _is_list(value: object) -> bool:
    if isinstance(value, str | bytes | Mapping):
        return False
    return isinstance(value, Sequence | AbstractSet) or hasattr(value, "__iter__")


def _list(parameter: e.ListOf, value: object, refuse: Any) -> e.ListOf | tuple[e.Literal, ...]:
    """The distinct values of a list, without NULL and NaN, which equal nothing."""
    if not _is_list(value):
        raise refuse("list", "for a single value write = in the query")
    values = _values(value, refuse)
    kinds = {kind_of(value) for value in values}
    if kinds == {Kind.INT, Kind.FLOAT}:
        kinds = {Kind.FLOAT}
        if all(map(_is_float, values)):  # else unchanged: no float equals some of the integers
            values = tuple(map(float, cast("tuple[float, ...]", values)))
    if len(kinds) > 1:
        mixed = listed(sorted(kind.value for kind in kinds if kind), "and")
        raise refuse("list", "", given=f"a list that mixes {mixed}")
    if 0 < len(values) <= FEW or kinds & {Kind.DURATION, Kind.BOOL}:
        return tuple(e.Literal(value, span=parameter.span) for value in values)
    digest = hashlib.blake2b("\0".join(map(repr, values)).encode(), digest_size=16).hexdigest()
    return e.ListOf(parameter.name, digest, values=values, span=parameter.span)


def _is_float(value: Value) -> bool:
    """Whether a number is a float exactly."""
    if isinstance(value, int):
        return abs(value) < 2**1023 and int(float(value)) == value
    return isinstance(value, float)


def _values(value: object, refuse: Any) -> tuple[Value, ...]:
    """The distinct values of a list, in order, without NULL and NaN."""
    items: Iterable[object]
    if hasattr(value, "to_pylist"):  # an array of Arrow
        items = value.to_pylist()
    elif getattr(getattr(value, "dtype", None), "kind", "") in "iufb" and hasattr(value, "tolist"):
        items = value.tolist()
    else:
        items = cast("Iterable[object]", value)
    known: dict[object, None] = {}
    for item in items:
        if type(item) in (int, str):
            known[item] = None
            continue
        plain = _plain(item)
        if plain is None or (isinstance(plain, float) and math.isnan(plain)):
            continue
        if kind_of(plain) is None or (isinstance(plain, float) and math.isinf(plain)):
            raise refuse("list", "", given=f"a list with {_said(item)}")
        known[plain] = None
    return cast("tuple[Value, ...]", tuple(known))


def _said(value: object) -> str:
    """A value for a message; a long one is truncated."""
    if value is None:
        return "None"
    shown = repr(value)
    return f"{shown[:60]}…" if len(shown) > 60 else shown
