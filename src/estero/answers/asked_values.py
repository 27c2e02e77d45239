"""What is asked of all complex events together, read from a text: ``sum(x.amount)``, ``max(duration)``."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

import pyarrow as pa

from estero.answers.report import label_of
from estero.language.tree.selection import END_TIME, START_TIME
from estero.language.tree.whole import DURATION

AGGREGATES: Final = ("count", "sum", "min", "max", "avg")
WHOLE: Final = (DURATION, START_TIME, END_TIME)
EVERYTHING: Final = "*"
_CALL: Final = re.compile(r"\s*(\w+)\s*\((.*)\)\s*", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Operand:
    """``duration``, ``start_time``, ``end_time``, ``*`` (`whole`), or the events of a label.

    `label` is the number of the label among those of the answer, `attribute` that of an attribute among those
    that the label shows; None for the events themselves. `numeric` says that its values can be added up.
    """

    whole: str | None = None
    label: int = 0
    attribute: int | None = None
    numeric: bool = False


@dataclass(frozen=True, slots=True)
class Asked:
    """``outer(operand)``, or ``outer(inner(operand))`` of what `inner` is in one complex event."""

    text: str
    outer: str
    operand: Operand
    inner: str | None = None


def asked(text: str, schema: pa.Schema) -> Asked:
    """An aggregate over the complex events of an answer with this schema; ValueError where it is none."""
    outer, inside = _call(text)
    nested = _CALL.fullmatch(inside)
    if nested is None:
        operand, inner = _operand(text, inside, schema), None
    else:
        inner, within = _call(inside)
        operand = _operand(text, within, schema)
        if operand.whole is not None:
            raise ValueError(
                f"{text}: {within.strip()} is one value in a complex event: write {outer}({within.strip()})"
            )
    if inner == "avg":
        raise ValueError(
            f"{text}: an average inside is not computed: write avg({within.strip()}), or use SELECT"
        )
    _check(text, outer, inner, operand)
    if (inner is not None and outer == inner in ("min", "max", "sum")) or (outer, inner) == ("sum", "count"):
        outer, inner = ("count" if inner == "count" else outer), None
    return Asked(text, outer, operand, inner)


def ranking(text: str, schema: pa.Schema) -> Asked:
    """What complex events are ranked by: ``duration``, ``sum(x.amount)``, ``count(x)``; else ValueError."""
    if text.strip() in WHOLE:
        return Asked(text, "max", _operand(text, text, schema))
    call = _CALL.fullmatch(text)
    if call is None or call[1].lower() not in ("sum", "count"):
        raise ValueError(
            f"complex events are ranked by duration, start_time, end_time, sum(x.a) or count(x), not by {text}"
        )
    inner = call[1].lower()
    operand = _operand(text, call[2], schema)
    if operand.whole is not None:
        raise ValueError(
            f"{text}: {call[2].strip()} is one value in a complex event: rank by {call[2].strip()}"
        )
    _check(text, "max", inner, operand)
    return Asked(text, "max", operand, inner)


def _call(text: str) -> tuple[str, str]:
    call = _CALL.fullmatch(text)
    if call is None or call[1].lower() not in AGGREGATES:
        raise ValueError(
            f"{text} is no aggregate: write {', '.join(AGGREGATES[:-1])} or {AGGREGATES[-1]} of an attribute, "
            "such as sum(x.amount), of duration, or count(*)"
        )
    return call[1].lower(), call[2]


def _check(text: str, outer: str, inner: str | None, operand: Operand) -> None:
    """Raises ValueError where a function cannot be computed of an operand."""
    first = inner or outer
    if operand.whole == EVERYTHING and first != "count":
        raise ValueError(f"{text}: of * there is only count(*)")
    if operand.whole in (START_TIME, END_TIME) and first in ("sum", "avg"):
        raise ValueError(
            f"{text}: times are not added up: write min({operand.whole}) or max({operand.whole})"
        )
    if operand.whole is None and operand.attribute is None and first != "count":
        raise ValueError(f"{text}: events have no value: name an attribute, or write count(…)")
    adds = first in ("sum", "avg") or (inner in ("min", "max") and operand.attribute is not None)
    if operand.whole is None and adds and not operand.numeric:
        raise ValueError(f"{text}: that attribute is no number: count, min and max can be asked of it")
    if inner is not None and outer == "count" and inner == "count":
        raise ValueError(f"{text}: every complex event has a count: write count(*)")


def _operand(text: str, inside: str, schema: pa.Schema) -> Operand:
    """What is between the brackets."""
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
                    return Operand(label=place, attribute=number, numeric=_is_number(attribute.type))
            known = ", ".join(attribute.name for attribute in attributes) or "none"
            raise ValueError(f"{text}: the events {label} show no attribute {wanted}: they show {known}")
    if name in WHOLE:
        if timed:
            return Operand(whole=name)
        raise ValueError(f"{text}: complex events have a {name} where the events have a time: name time=…")
    raise ValueError(f"{text}: the answer has no label {name}: its labels are {', '.join(labels) or 'none'}")


def _is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind))
