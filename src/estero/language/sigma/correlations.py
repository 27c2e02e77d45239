"""Documents with correlations: rules about several events of other rules within a timespan."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise
from math import isfinite
from typing import Any, Final, cast, get_args

from sigma.correlations import SigmaCorrelationCondition, SigmaCorrelationRule
from sigma.exceptions import SigmaError

from estero.language.sigma import tree as s
from estero.language.sigma.documents import Document
from estero.language.sigma.read import FAILURES, about
from estero.language.tree.expressions import COMPARED
from estero.language.tree.literals import INT_MAX

_TYPES: Final = get_args(s.CorrelationType)
_NUMBERS: Final = ("value_sum", "value_avg", "value_median")
"""The types of correlations that compute with values."""
_LONGEST: Final = (1 << 63) // 10**9
"""The longest timespan in seconds, because windows are 64-bit numbers of nanoseconds."""
_SIGNS: Final = {"LT": "<", "LTE": "<=", "GT": ">", "GTE": ">=", "EQ": "=", "NEQ": "!="}


def references_of(document: Document) -> tuple[str, ...]:
    """The names or ids of the rules to which a correlation refers, in order."""
    correlation = document.content["correlation"]
    rules = correlation.get("rules") if isinstance(correlation, dict) else None
    return (rules,) if isinstance(rules, str) else tuple(map(str, rules)) if isinstance(rules, list) else ()


def correlation_of(document: Document, rules: Sequence[s.Detection]) -> s.Correlation:
    """The correlation of a document; raises `QueryError`, with the place in the text, for mistakes."""
    if not isinstance(document.content["correlation"], dict):
        raise document.error(
            "a correlation is a mapping", "correlation", expected="type, rules, timespan, condition"
        )
    _refuse_names(document)
    try:
        content, further = _with_one_bound(document.content)
        read = SigmaCorrelationRule.from_dict(content)
        conditions = [SigmaCorrelationCondition.from_dict(one) for one in further]
    except FAILURES as error:
        message = str(error) if isinstance(error, SigmaError) else f"this is not a valid correlation: {error}"
        raise document.error(message, "correlation", *_place(message)) from error
    _with_fractions((read.condition, *conditions), document.content["correlation"].get("condition"))
    return correlation_of_rule(read, references_of(document), rules, document.error, conditions)


def _with_fractions(conditions: Iterable[object], written: object) -> None:
    """Restores the fractions of the numbers in conditions, which pySigma 1 cuts off."""
    for one in conditions:
        if isinstance(one, SigmaCorrelationCondition) and isinstance(written, dict):
            count = written.get(one.op.name.lower())
            if isinstance(count, float) and isfinite(count):
                one.count = int(count) if count.is_integer() else count


def _with_one_bound(content: Mapping[str, Any]) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """The content with only the first bound of a range, which is all that pySigma reads, and the others."""
    section = content["correlation"]
    condition = section.get("condition")
    bounds = [sign for sign in condition if sign.upper() in _SIGNS] if isinstance(condition, dict) else []
    if len(bounds) < 2:
        return dict(content), []
    one = {key: value for key, value in condition.items() if key not in bounds[1:]}
    return {**content, "correlation": {**section, "condition": one}}, [
        {sign: condition[sign]} for sign in bounds[1:]
    ]


def _refuse_names(document: Document) -> None:
    """Raises `QueryError` for types and field names that are not texts; pySigma accepts any value."""
    section = document.content["correlation"]
    condition = section.get("condition")
    counted = condition.get("field") if isinstance(condition, dict) else None
    named = (("type", section.get("type")), ("group-by", section.get("group-by")), ("condition", counted))
    for key, names in named:
        for name in names if isinstance(names, list) else [names]:
            if name is not None and not isinstance(name, str):
                what = "a type" if key == "type" else "the name of a field"
                raise document.error(f"{what} is a text, not {name!r}", "correlation", key)


def correlation_of_rule(
    read: SigmaCorrelationRule,
    references: Sequence[str],
    rules: Sequence[s.Detection],
    error: Callable[..., Exception],
    further: Sequence[SigmaCorrelationCondition] = (),
) -> s.Correlation:
    """The correlation that pySigma has read.

    - `references`: the names or ids of its rules, in order.
    - `rules`: these rules.
    - `error`: makes the error that is raised, from a message and a path of keys.
    - `further`: the bounds of a range after its first one.
    """
    kind = read.type.name.lower()
    if kind not in _TYPES:
        raise error(
            f"correlations of the type {kind} are not taken",
            "correlation",
            "type",
            expected=", ".join(_TYPES),
            hint="of percentiles the 50th is value_median" if kind == "value_percentile" else "",
        )
    if not isinstance(read.condition, SigmaCorrelationCondition):
        raise error(
            "a condition with and, or, not is not taken",
            "correlation",
            "condition",
            hint="list the rules, and leave the condition out where all of them must match",
        )
    if not references:
        raise error("a correlation has rules", "correlation", hint="rules: [name of a rule]")
    if read.timespan.seconds > _LONGEST:
        raise error("a timespan is at most 292 years long", "correlation", "timespan")
    conditions = (read.condition, *further)
    for condition in conditions:
        _refuse_operators(condition, kind, len(references), error)
        if kind not in _NUMBERS and condition.count != int(condition.count):
            raise error("a number of events is a whole number", "correlation", "condition", hint="gte: 3")
        if kind not in _NUMBERS and abs(condition.count) >= INT_MAX:
            raise error(
                f"a number of events is less than {INT_MAX}", "correlation", "condition", hint="gte: 3"
            )
    bounds = tuple((cast("s.CountOperator", _SIGNS[one.op.name]), one.count) for one in conditions)
    _refuse_empty_ranges(bounds, kind, error)
    fieldref = read.condition.fieldref
    counted = () if fieldref is None else (fieldref,) if isinstance(fieldref, str) else tuple(fieldref)
    return s.Correlation(
        about(read),
        cast("s.CorrelationType", kind),
        tuple(rules),
        read.timespan.seconds,
        tuple(dict.fromkeys(read.group_by or ())),
        tuple(_keys(read, references, rules, field, error) for field in dict.fromkeys(read.group_by or ())),
        bounds,
        counted,
        read.generate,
    )


def _refuse_operators(
    condition: SigmaCorrelationCondition, kind: str, rules: int, error: Callable[..., Exception]
) -> None:
    """Raises an error for numbers that no window can have."""
    sign = condition.op.name
    count = condition.count + (sign == "GT") - (sign == "LT")  # integers, except for _NUMBERS
    if kind in ("event_count", "temporal", "temporal_ordered") and count < 1 and sign != "NEQ":
        raise error("a window has one event at least", "correlation", "condition", expected="a number from 1")
    if kind == "value_count" and count < (1 if sign in ("GT", "GTE") else 0) and sign != "NEQ":
        raise error("a number of values is one at least", "correlation", "condition", expected="gte: 1")
    if kind == "temporal_ordered" and (count != rules or sign not in ("GT", "GTE", "EQ")):
        raise error(
            "rules in order are all met",
            "correlation",
            "condition",
            expected=f"gte: {rules}, or no condition",
        )
    if kind == "temporal" and count > rules and sign in ("GT", "GTE", "EQ"):
        raise error(f"there are {rules} rules, not {count}", "correlation", "condition")


def _refuse_empty_ranges(
    bounds: Sequence[tuple[s.CountOperator, float]], kind: str, error: Callable[..., Exception]
) -> None:
    """Raises an error for bounds that no number satisfies."""
    near = sorted({count + apart for _, count in bounds for apart in (-1, 0, 1)})
    if kind in _NUMBERS:
        near += [(low + high) / 2 for low, high in pairwise(near)]
    if not any(all(COMPARED[sign](number, count) for sign, count in bounds) for number in near):
        required = " and ".join(f"{sign} {count}" for sign, count in bounds)
        raise error(f"no number is {required}", "correlation", "condition", expected="gt: 100 with lte: 200")


def _keys(
    read: SigmaCorrelationRule,
    references: Sequence[str],
    rules: Sequence[s.Detection],
    field: str,
    error: Callable[..., Exception],
) -> tuple[str, ...]:
    """The fields of the keys of ``group-by`` in the events of each rule."""
    alias = read.aliases.aliases.get(field)
    if alias is None:
        return (field,) * len(references)
    named = {reference.reference: name for reference, name in alias.mapping.items()}
    fields: list[str] = []
    for name, rule in zip(references, rules, strict=True):
        mapped = [named[one] for one in (name, rule.about.name, rule.about.id) if one in named]
        if not mapped or not isinstance(mapped[0], str):
            raise error(
                f"the alias {field} has no field for the rule {name}", "correlation", "aliases", field
            )
        fields.append(mapped[0])
    return tuple(fields)


def _place(message: str) -> tuple[str, ...]:
    words = {
        "type": "type",
        "Timespan": "timespan",
        "timespan": "timespan",
        "condition": "condition",
        "group-by": "group-by",
        "alias": "aliases",
    }
    return next(((key,) for word, key in words.items() if word in message), ())
