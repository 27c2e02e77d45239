"""Documents as rules: pySigma reads them, and its conditions are translated into those of tree.py."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import date, datetime
from typing import Any, Final

from pyparsing import ParseBaseException
from sigma.conditions import (
    ConditionAND,
    ConditionFieldEqualsValueExpression,
    ConditionNOT,
    ConditionOR,
    ConditionValueExpression,
)
from sigma.exceptions import SigmaError
from sigma.modifiers import modifier_mapping
from sigma.rule import SigmaRule, SigmaRuleBase
from sigma.rule.detection import SigmaDetectionItem

from estero.errors import QueryError
from estero.language.regex.parser import parse_regex
from estero.language.sigma import tree as s
from estero.language.sigma.documents import Document
from estero.language.sigma.reading import Placeholders, Reading
from estero.language.sigma.regexes import flags_of, with_flags
from estero.language.sigma.values import keyword_of, test_of

FAILURES: Final = (
    SigmaError,
    ParseBaseException,
    RecursionError,
    ValueError,
    TypeError,
    AttributeError,
    LookupError,
    NotImplementedError,
    OverflowError,
    re.error,
)
"""The errors that pySigma raises for wrong rules; some are built-in errors of Python."""
_MOST_CONDITION: Final = 20_000


def detection_of(document: Document, reading: Reading) -> s.Detection:
    """The rule of a document; raises `QueryError`, with the place in the text, for mistakes."""
    _refuse_shapes(document)
    try:
        rule = SigmaRule.from_dict(_with_known_modifiers(document))
    except FAILURES as error:
        raise _with_place(error, document) from error
    return detection_of_rule(rule, document, reading)


_UTF16: Final = re.compile(r"\|utf16le(?=\||$)")


def _with_known_modifiers(document: Document) -> dict[str, Any]:
    """The content with ``wide`` for its synonym ``utf16le``, which pySigma does not know."""

    def renamed(value: Any) -> Any:
        if isinstance(value, dict):
            return {_UTF16.sub("|wide", str(key)): renamed(inner) for key, inner in value.items()}
        return [renamed(inner) for inner in value] if isinstance(value, list) else value

    content = dict(document.content)
    if "utf16le" in document.text and "detection" in content:
        content["detection"] = renamed(content["detection"])
    return content


def detection_of_rule(rule: SigmaRule, document: Document, reading: Reading) -> s.Detection:
    """The rule that pySigma has read; raises `QueryError` as `detection_of`."""
    try:
        if reading.pipeline is not None:
            reading.pipeline.apply(rule)
        parsed = [condition.parsed for condition in rule.detection.parsed_condition]
        conditions = [condition_of(tree, reading.placeholders) for tree in parsed]
    except QueryError as error:
        raise _with_place_of_value(error, document) from error
    except FAILURES as error:
        raise _with_place(error, document) from error
    source = s.LogSource(rule.logsource.category, rule.logsource.product, rule.logsource.service)
    return s.Detection(
        about(rule), source, conditions[0] if len(conditions) == 1 else s.Some(tuple(conditions))
    )


def about(rule: SigmaRuleBase) -> s.About:
    """The description of a rule: title, level, tags."""
    return s.About(
        title=rule.title or "",
        id=str(rule.id or ""),
        name=rule.name or "",
        level=rule.level.name.lower() if rule.level else "",
        status=rule.status.name.lower() if rule.status else "",
        tags=tuple(map(str, rule.tags or ())),
    )


def condition_of(node: object, placeholders: Placeholders) -> s.Condition:
    """The condition that pySigma has parsed; raises `QueryError` for unsupported values."""
    match node:
        case ConditionAND(args=args):
            return s.Every(tuple(condition_of(part, placeholders) for part in args))
        case ConditionOR(args=args):
            return s.Some(tuple(condition_of(part, placeholders) for part in args))
        case ConditionNOT(args=[part]):
            return s.Negated(condition_of(part, placeholders))
        case ConditionFieldEqualsValueExpression(field=name, value=value):
            return test_of(name, value, placeholders)
        case ConditionValueExpression(value=value):
            return keyword_of(value, placeholders)
        case _:
            raise QueryError(
                "the condition refers to detections that do not exist", hint="see the names after of"
            )


# ------------------------------------------------------------------------------------ what is wrong


def _refuse_shapes(document: Document) -> None:
    """Raises `QueryError` for malformed detections that pySigma does not check."""
    content = document.content
    if not isinstance(content.get("id") or "", str):
        raise document.error("an id is a text", "id", expected="a UUID")
    if "action" in content:
        raise document.error(
            "action: is of an older Sigma", "action", hint="write the rules out, or correlate them"
        )
    detection = content.get("detection")
    if not isinstance(detection, dict):
        return
    for name, tests in detection.items():
        if name in ("condition", "timeframe"):
            continue
        for path, key, values in _items(tests, ("detection", name)):
            _refuse_regexes(document, path, key, values)
            for value in values:
                if not isinstance(value, str | int | float | None):
                    raise document.error(
                        f"{key} is compared with {_KINDS.get(type(value), 'a value of another kind')}",
                        *path,
                        expected="a text, a number, true, false, null, or a list of these",
                        hint="put it in quotes" if isinstance(value, date) else "",
                    )
    if "timeframe" in detection:
        raise document.error(
            "timeframe belongs to an aggregation, and the condition has none",
            "detection",
            "timeframe",
            hint="condition: selection | count() by user > 5, or write a correlation",
        )
    conditions = detection.get("condition", [])
    for one in conditions if isinstance(conditions, list) else [conditions]:
        if not isinstance(one, str) or not one.strip() or len(one) > _MOST_CONDITION:
            raise document.error(
                "a condition is a text", "detection", "condition", expected="names with and, or, not, 1 of"
            )


def _refuse_regexes(
    document: Document, path: Sequence[str | int], key: str, values: Iterable[object]
) -> None:
    """Raises `QueryError` for invalid regular expressions, which RE2 would report on the terminal."""
    modifiers = key.split("|")[1:]
    if "re" not in modifiers or "expand" in modifiers:
        return
    for value in values:
        if isinstance(value, str):
            try:
                parse_regex(with_flags(value, flags_of(modifiers)))
            except QueryError as error:
                raise document.error(
                    error.message, *path, hint=error.hint, expected=error.expected
                ) from error


def _items(
    tests: object, path: tuple[str | int, ...]
) -> Iterator[tuple[tuple[str | int, ...], str, list[Any]]]:
    """The tests of a detection: the path, the key and the values."""
    if isinstance(tests, dict):
        for key, value in tests.items():
            yield (*path, key), key, value if isinstance(value, list) else [value]
    elif isinstance(tests, list):
        for index, inner in enumerate(tests):
            yield from _items(inner, (*path, index))


_KINDS: Final = {dict: "a mapping", list: "a list in a list", date: "a date", datetime: "a time"}
"""The kinds of YAML values that no field can be compared with."""
_INCOMPATIBLE: Final = re.compile(r"Modifier (\w+) incompatible to value type of '(.*)'", re.DOTALL)
"""pySigma's message for a value that a modifier does not accept."""
_MODIFIERS: Final = {modifier.__name__: name for name, modifier in modifier_mapping.items()}
_BYTES: Final = re.compile(r"\bb'(.*)'$")
"""RE2's message about a regular expression, as Python prints bytes."""


def _with_place(error: Exception, document: Document) -> QueryError:
    """The error of pySigma with its place in the text."""
    path = _path_of_mistake(document)
    message = _BYTES.sub(r"\1", str(error).split(" in file ")[0])
    if isinstance(error, RecursionError):
        message = "this rule is nested too deeply"
    elif incompatible := _INCOMPATIBLE.match(message):
        name, value = incompatible.groups()
        value = "null" if value.startswith("<sigma.types.SigmaNull") else repr(value)
        message = f"the modifier {_MODIFIERS.get(name, name)} does not take {value}"
    elif not isinstance(error, SigmaError):
        message = f"this is not a valid rule: {message}"
    return document.error(message, *(path or _SECTIONS.get(type(error).__name__, ())))


def _with_place_of_value(error: QueryError, document: Document) -> QueryError:
    """An error of values with its place in the rule."""
    return document.error(
        error.message,
        *(_path_of_mistake(document) or ("detection",)),
        hint=error.hint,
        expected=error.expected,
    )


_SECTIONS: Final = {
    "SigmaLogsourceError": ("logsource",),
    "SigmaConditionError": ("detection", "condition"),
    "SigmaDetectionError": ("detection",),
    "ParseException": ("detection", "condition"),
    "RecursionError": ("detection", "condition"),
    "SigmaTitleError": ("title",),
    "SigmaLevelError": ("level",),
    "SigmaStatusError": ("status",),
    "SigmaIdentifierError": ("id",),
    "SigmaDateError": ("date",),
    "SigmaModifiedError": ("modified",),
    "SigmaNameError": ("name",),
}


def _path_of_mistake(document: Document) -> tuple[str | int, ...]:
    """The path to the first test that cannot be read on its own; empty if all can."""
    detection = document.content.get("detection")
    if not isinstance(detection, dict):
        return ()
    for name, tests in detection.items():
        if name == "condition":
            continue
        for path, key, value in _items(tests, ("detection", name)):
            try:
                item = SigmaDetectionItem.from_mapping(_UTF16.sub("|wide", key), value)
                for one in item.value:
                    keyword_of(one, {}) if item.field is None else test_of(item.field, one, {})
            except (QueryError, *FAILURES):
                return path
    return ()
