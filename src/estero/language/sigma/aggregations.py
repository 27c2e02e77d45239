"""Aggregations of Sigma before its correlations, ``selection | count() by user > 5``, as correlations.

Sigma's first specification has them behind a bar in the condition, and their time as ``timeframe``.
``count()`` is an ``event_count``, ``count(field)`` a ``value_count``, ``sum`` and ``avg`` are ``value_sum``
and ``value_avg``, and ``a | near b and c`` is a ``temporal`` correlation of three rules.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from estero.errors import QueryError
from estero.language.sigma.correlations import correlation_of
from estero.language.sigma.documents import Document
from estero.language.sigma.read import detection_of
from estero.language.sigma.reading import Reading
from estero.language.sigma.tree import Correlation

_TYPES: Final = {"count": "event_count", "sum": "value_sum", "avg": "value_avg"}
_OPERATORS: Final = {">": "gt", ">=": "gte", "<": "lt", "<=": "lte", "=": "eq", "==": "eq"}
_COMPUTED: Final = re.compile(
    r"(?P<function>\w+)\s*\(\s*(?P<field>[^\s()]*)\s*\)"
    r"(?:\s+by\s+(?P<groups>[^\s,<>=]+(?:\s*,\s*[^\s,<>=]+)*))?"
    r"\s*(?P<operator>[<>]=?|==?)\s*(?P<number>\d+(?:\.\d+)?)"
)
_NEAR: Final = re.compile(r"near\s+(\w+(?:\s+and\s+\w+)*)")
_EXPECTED: Final = "count() by user > 5, count(field), sum(field), avg(field), or near selection"


def is_aggregation(document: Document) -> bool:
    """Whether the condition of a document has a bar."""
    detection = document.content.get("detection")
    condition = detection.get("condition") if isinstance(detection, Mapping) else None
    return isinstance(condition, str) and "|" in condition


def aggregation_of(document: Document, reading: Reading) -> Correlation:
    """The correlation that an aggregation means; raises `QueryError`, with the place in the text."""
    rules, window = _correlated(document)
    detections = [detection_of(rule, reading) for rule in rules]
    try:
        return correlation_of(window, detections)
    except QueryError as error:
        key = "timeframe" if "timespan" in error.message.lower() else "condition"
        raise document.error(
            error.message, "detection", key, hint=error.hint, expected=error.expected
        ) from error


def _correlated(document: Document) -> tuple[list[Document], Document]:
    """The documents that an aggregation would be today: its detections, and a correlation of them."""
    content = document.content
    detection = dict(content["detection"])
    searched, _, aggregation = detection["condition"].partition("|")
    timeframe = detection.pop("timeframe", None)
    if timeframe is None:
        raise document.error(
            "an aggregation needs the time within which it counts",
            "detection",
            "condition",
            hint="add timeframe: 5m",
        )
    aggregation = aggregation.strip()
    if near := _NEAR.fullmatch(aggregation):
        conditions = [searched, *re.split(r"\s+and\s+", near[1])]
        section: dict[str, Any] = {"type": "temporal"}
    elif computed := _COMPUTED.fullmatch(aggregation):
        conditions, section = [searched], _computed(computed, document)
    else:
        raise document.error(
            f"this is not an aggregation: {aggregation}", "detection", "condition", expected=_EXPECTED
        )
    parts = [{**content, "detection": {**detection, "condition": one.strip()}} for one in conditions]
    names = [f"{place}: {one.strip()}" for place, one in enumerate(conditions, start=1)]
    about = {key: value for key, value in content.items() if key not in ("detection", "logsource")}
    window = {**about, "correlation": {**section, "rules": names, "timespan": timeframe}}
    return [replace(document, content=part) for part in parts], replace(document, content=window)


def _computed(parts: re.Match[str], document: Document) -> dict[str, Any]:
    """The type, the condition and the groups of a correlation that computes a number."""
    kind = _TYPES.get(parts["function"].lower())
    if kind is None:
        raise document.error(
            f"the aggregation {parts['function']} is not supported",
            "detection",
            "condition",
            expected=_EXPECTED,
        )
    number = float(parts["number"])
    condition: dict[str, Any] = {
        _OPERATORS[parts["operator"]]: int(number) if number.is_integer() else number
    }
    if parts["field"]:
        condition["field"] = parts["field"]
        kind = "value_count" if kind == "event_count" else kind
    elif kind != "event_count":
        raise document.error(
            f"{parts['function']}() has a field", "detection", "condition", hint="sum(bytes) by user > 1000"
        )
    groups = re.split(r"\s*,\s*", parts["groups"]) if parts["groups"] else []
    return {"type": kind, "condition": condition, **({"group-by": groups} if groups else {})}
