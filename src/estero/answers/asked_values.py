"""Aggregates over all complex events together, parsed from a text: ``sum(x.amount)``, ``max(duration)``."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

import pyarrow as pa

from estero.answers.answer_schema import label_of
from estero.language.tree.selection import END_TIME, START_TIME
from estero.language.tree.whole import DURATION

AGGREGATES: Final = ("count", "sum", "min", "max", "avg")
WHOLE: Final = (DURATION, START_TIME, END_TIME)
EVERYTHING: Final = "*"
_THE_SAME: Final = {
    ("sum", "sum"): "sum",
    ("min", "min"): "min",
    ("max", "max"): "max",
}
"""The aggregates of aggregates that equal one aggregate over all events of all complex events."""
_CALL: Final = re.compile(r"\s*(\w+)\s*\((.*)\)\s*", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Operand:
    """``duration``, ``start_time``, ``end_time``, ``*`` (`whole`), or the events of a label.

    `label` is the number of the label among those of the answer, and `attribute` that of an attribute among
    those that the label shows, or None for the events themselves. `numeric` says that its values can be
    added, `nested` that they are lists or structs.
    """

    whole: str | None = None
    label: int = 0
    attribute: int | None = None
    numeric: bool = False
    nested: bool = False


@dataclass(frozen=True, slots=True)
class Asked:
    """``outer(operand)``, or ``outer(inner(operand))`` with `inner` an aggregate within a complex event."""

    text: str
    outer: str
    operand: Operand
    inner: str | None = None


def asked(text: str, schema: pa.Schema) -> Asked:
    """An aggregate over the complex events of an answer with this schema; ValueError if the text is none."""
    outer, inside = _call(text)
    if _CALL.fullmatch(inside) is None:
        operand = _operand(text, inside, schema)
        _check(text, outer, inside, operand)
        return Asked(text, outer, operand)
    inner, within = _call(inside)
    if inner == "avg":
        raise ValueError(f"{text}: an average within a complex event belongs in SELECT, not here")
    operand = _of_events(text, within, schema)
    _check(text, inner, within, operand)
    if outer == inner == "count":
        raise ValueError(f"{text}: every complex event has a count: write count(*)")
    if (outer, inner) in _THE_SAME:
        return Asked(text, _THE_SAME[outer, inner], operand)
    if operand.attribute is not None and not operand.numeric and inner != "count":
        raise ValueError(f"{text}: {within.strip()} is not a number: write {inner}({within.strip()})")
    return Asked(text, outer, operand, inner)


def ranking(text: str, schema: pa.Schema) -> Asked:
    """The ranking of complex events: ``duration``, ``sum(x.amount)``, ``count(x)``; else ValueError."""
    if text.strip() in WHOLE:
        return Asked(text, "max", _operand(text, text, schema))
    call = _CALL.fullmatch(text)
    if call is None or call[1].lower() not in ("sum", "count"):
        known = f"{', '.join(WHOLE)}, sum(x.a) or count(x)"
        raise ValueError(f"complex events are ranked by {known}, not by {text}")
    inner = call[1].lower()
    operand = _of_events(text, call[2], schema)
    _check(text, inner, call[2], operand)
    return Asked(text, "max", operand, inner)


def _call(text: str) -> tuple[str, str]:
    """The name of a function and the text between its brackets."""
    call = _CALL.fullmatch(text)
    if call is None or call[1].lower() not in AGGREGATES:
        known = f"{', '.join(AGGREGATES[:-1])} or {AGGREGATES[-1]}"
        raise ValueError(
            f"{text} is not an aggregate: write {known} of an attribute, such as sum(x.amount), of duration, "
            "or count(*)"
        )
    return call[1].lower(), call[2]


def _check(text: str, function: str, inside: str, operand: Operand) -> None:
    """Raises ValueError if a function cannot be applied to an operand."""
    name = inside.strip()
    if function == "count":
        return
    if operand.whole == EVERYTHING:
        raise ValueError(f"{text}: of * there is only count(*)")
    if function in ("sum", "avg") and operand.whole in (START_TIME, END_TIME):
        raise ValueError(f"{text}: times are not added up: write min({name}) or max({name})")
    if operand.whole is None and operand.attribute is None:
        raise ValueError(f"{text}: events have no value: name an attribute, or write count({name})")
    if operand.nested:
        raise ValueError(f"{text}: {name} holds lists or structs: only count applies to it")
    if function in ("sum", "avg") and operand.attribute is not None and not operand.numeric:
        raise ValueError(f"{text}: {name} is not a number: only count, min and max apply to it")


def _of_events(text: str, inside: str, schema: pa.Schema) -> Operand:
    """The operand of an aggregate within one complex event, which is not a single value there."""
    operand = _operand(text, inside, schema)
    if operand.whole is not None:
        raise ValueError(
            f"{text}: {inside.strip()} is not a value of the events of a label, such as x.amount"
        )
    return operand


def _operand(text: str, inside: str, schema: pa.Schema) -> Operand:
    """The operand between the brackets."""
    name = inside.strip()
    timed = START_TIME in schema.names and label_of(schema.field(START_TIME)) is None
    if name == EVERYTHING:
        return Operand(whole=EVERYTHING)
    shown = [field for field in schema if label_of(field) is not None]
    labels = [str(label_of(field)) for field in shown]
    for place, (label, field) in enumerate(zip(labels, shown, strict=True)):
        if name == label:
            return Operand(label=place)
        if name.startswith(f"{label}."):
            attributes = list(field.type.value_type)
            attributes = attributes[:-1] if schema.names[:1] == ["start"] else attributes
            wanted = name.removeprefix(f"{label}.")
            for number, attribute in enumerate(attributes):
                if attribute.name == wanted:
                    kind = attribute.type
                    return Operand(
                        None, place, number, numeric=_is_number(kind), nested=pa.types.is_nested(kind)
                    )
            known = ", ".join(attribute.name for attribute in attributes) or "none"
            raise ValueError(f"{text}: the events {label} show no attribute {wanted}: they show {known}")
    if name in WHOLE:
        if timed:
            return Operand(whole=name)
        raise ValueError(f"{text}: complex events have a {name} where the events have a time: name time=…")
    raise ValueError(f"{text}: the answer has no label {name}: its labels are {', '.join(labels) or 'none'}")


def _is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind))
