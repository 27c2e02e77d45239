"""The reference semantics of detections in Sigma: a rule as in YAML, applied to one event at a time.

It reads values, modifiers and conditions by itself, from Sigma's specification (version 2), and shares
nothing with the translation to queries: no parser of rules, no pattern of LIKE, no expression.
"""

from __future__ import annotations

import base64
import ipaddress
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from fnmatch import translate
from typing import Any, Final

Event = Mapping[str, Any]

_FLATTENED: Final = ("Event.EventData", "Event.System")
_DASHES: Final = "-/\u2013\u2014\u2015"
_LETTERS: Final = re.compile(r"\s*(\(|\)|[^\s()]+)")


def detects(
    detection: Mapping[str, Any], event: Event, placeholders: Mapping[str, Sequence[str]] | None = None
) -> bool:
    """Whether the detection section of a rule matches an event.

    >>> detects({"s": {"name|endswith": "d.exe"}, "condition": "s"}, {"name": "CMD.EXE"})
    True
    """
    named = {name: asked for name, asked in detection.items() if name != "condition"}
    condition = detection["condition"]
    values = placeholders or {}

    def holds(name: str) -> bool:
        return _holds(named[name], event, values)

    conditions = condition if isinstance(condition, list) else [condition]
    return any(_Condition(text, tuple(named), holds).value() for text in conditions)


def values_of(event: Event, name: str) -> list[Any]:
    """The values of a field: those of its name or path, else those in the containers of Windows' events.

    A list has the values of its elements, and is missing if it is empty; a field of a list of structs has the
    values of all of these.
    """
    direct = [value for value in (event.get(name), _at(event, name.split("."))) if value is not None]
    if direct:
        return list(_elements(direct[0]))
    flat = [value for key, value in event.items() if key in {f"{start}.{name}" for start in _FLATTENED}]
    if any(value is not None for value in flat):
        return list(_elements(flat))
    raw = event.get("Event", event)
    data = raw.get("UserData") if isinstance(raw, Mapping) else None
    inside = [] if not isinstance(raw, Mapping) else [raw.get("EventData"), data, raw.get("System")]
    inside += (
        [inner for inner in data.values() if isinstance(inner, Mapping)] if isinstance(data, Mapping) else []
    )
    stored = []
    for container in inside:
        if isinstance(container, Mapping):
            value = _at(container, name.split("."))
            stored += [*_elements(value)]
    return stored


def _elements(value: Any) -> Iterator[Any]:
    if isinstance(value, list):
        for inner in value:
            yield from _elements(inner)
    elif value is not None:
        yield value


def _at(event: Any, path: Sequence[str]) -> Any:
    for place, step in enumerate(path):
        if isinstance(event, list):
            return [_at(inner, path[place:]) for inner in event]
        event = event.get(step) if isinstance(event, Mapping) else None
    return event


# ------------------------------------------------------------------------------------ conditions


class _Condition:
    """A condition, read and evaluated from left to right; NOT binds closer than AND, AND closer than OR."""

    def __init__(self, text: str, names: Sequence[str], holds: Callable[[str], bool]) -> None:
        self._words = _LETTERS.findall(text)
        self._names = names
        self._holds = holds

    def value(self) -> bool:
        return self._or()

    def _or(self) -> bool:
        value = self._and()
        while self._words[:1] == ["or"]:
            self._words.pop(0)
            value = self._and() or value
        return value

    def _and(self) -> bool:
        value = self._not()
        while self._words[:1] == ["and"]:
            self._words.pop(0)
            value = self._not() and value
        return value

    def _not(self) -> bool:
        word = self._words.pop(0)
        if word == "not":
            return not self._not()
        if word == "(":
            value = self._or()
            self._words.pop(0)
            return value
        if self._words[:1] == ["of"]:
            self._words.pop(0)
            pattern = self._words.pop(0)
            asked = [name for name in self._names if _is_named(name, pattern)]
            return all(map(self._holds, asked)) if word == "all" else any(map(self._holds, asked))
        return self._holds(word)


def _is_named(name: str, pattern: str) -> bool:
    if pattern == "them":
        return not name.startswith("_")
    return re.fullmatch(translate(pattern), name) is not None and name.startswith("_") <= pattern.startswith(
        "_"
    )


def _holds(asked: Any, event: Event, placeholders: Mapping[str, Sequence[str]]) -> bool:
    """Whether a named part of a detection holds."""
    if isinstance(asked, Mapping):
        return all(_item_holds(key, value, event, placeholders) for key, value in asked.items())
    if isinstance(asked, list) and any(isinstance(one, Mapping | list) for one in asked):
        return any(_holds(one, event, placeholders) for one in asked)
    return _item_holds("", asked, event, placeholders)


def _item_holds(key: str, given: Any, event: Event, placeholders: Mapping[str, Sequence[str]]) -> bool:
    field, *modifiers = key.split("|")
    values = given if isinstance(given, list) else [given]
    if field and not values:
        values = [None]
    joined = all if "all" in modifiers else any
    asked = [one for one in modifiers if one not in ("all", "neq")]
    if field:
        held = joined(_field_holds(field, value, asked, event, placeholders) for value in values)
        return not held if "neq" in modifiers else held
    texts = list(_texts(event))
    return joined(
        any(_is(text, value, [*asked, "contains"], placeholders) for text in texts) for value in values
    )


def _texts(value: Any) -> Iterator[str]:
    """All texts of an event."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for inner in value.values():
            yield from _texts(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _texts(inner)


# ------------------------------------------------------------------------------------ values


def _field_holds(
    field: str, value: Any, modifiers: Sequence[str], event: Event, placeholders: Mapping[str, Sequence[str]]
) -> bool:
    stored = values_of(event, field)
    if "exists" in modifiers:
        return bool(stored) is bool(value)
    if value is None:
        return not stored
    if "fieldref" in modifiers:
        pairs = [
            (text_of(one).lower(), text_of(two).lower()) for one in stored for two in values_of(event, value)
        ]
        begins, ends = _ends(modifiers)
        return any(
            (two in one)
            if begins and ends
            else one.startswith(two)
            if begins
            else one.endswith(two)
            if ends
            else one == two
            for one, two in pairs
        )
    return any(
        _is(text_of(one), value, modifiers, placeholders)
        for one in stored
        if not isinstance(one, Mapping | list)
    )


def _ends(modifiers: Sequence[str]) -> tuple[bool, bool]:
    inside = "contains" in modifiers
    return inside or "startswith" in modifiers, inside or "endswith" in modifiers


def text_of(value: Any) -> str:
    """The text of a value of an event: whole numbers without a point, truth values in lower case."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value)


def _is(text: str, value: Any, modifiers: Sequence[str], placeholders: Mapping[str, Sequence[str]]) -> bool:
    """Whether a text matches a value and its modifiers."""
    for operator, compare in _COMPARISONS.items():
        if operator in modifiers:
            number = _number(text)
            return number is not None and compare(number, value)
    if "cidr" in modifiers:
        return _is_in(text, value)
    if "re" in modifiers:
        return re.search(_regex(value), text, _flags(modifiers)) is not None
    patterns = [list(_read(text_of(value)))]
    for modifier in modifiers:
        patterns = [changed for pattern in patterns for changed in _changed(pattern, modifier, placeholders)]
    cased = "cased" in modifiers
    return any(_fits(text, pattern, cased=cased) for pattern in patterns)


_COMPARISONS: Final[Mapping[str, Callable[[float, float], bool]]] = {
    "gt": lambda one, two: one > two,
    "gte": lambda one, two: one >= two,
    "lt": lambda one, two: one < two,
    "lte": lambda one, two: one <= two,
}


def _number(text: str) -> float | None:
    try:
        return float(text) if text == text.strip() and text.isascii() else None
    except ValueError:
        return None


def _is_in(text: str, network: str) -> bool:
    try:
        return ipaddress.ip_address(text) in ipaddress.ip_network(network)
    except ValueError:
        return False


def _regex(value: Any) -> str:
    return re.sub(r"\$(?=\)|\||$)", r"(?:$)", str(value))


def _flags(modifiers: Sequence[str]) -> re.RegexFlag:
    flags = re.RegexFlag(re.ASCII)
    for letters, flag in (
        (("i", "ignorecase"), re.IGNORECASE),
        (("m", "multiline"), re.MULTILINE),
        (("s", "dotall"), re.DOTALL),
    ):
        if any(letter in modifiers for letter in letters):
            flags |= flag
    return flags


# A pattern is a list of characters, in which ANY and ONE are wildcards.
ANY: Final = ("any",)
ONE: Final = ("one",)
Letter = str | tuple[str, ...]


def _read(text: str) -> Iterator[Letter]:
    """The characters of a value: a backslash escapes a wildcard or a backslash after it."""
    place = 0
    while place < len(text):
        here, following = text[place], text[place + 1 : place + 2]
        if here == "\\" and following and following in "*?\\":
            yield following
            place += 2
            continue
        yield ANY if here == "*" else ONE if here == "?" else here
        place += 1


def _changed(
    pattern: list[Letter], modifier: str, placeholders: Mapping[str, Sequence[str]]
) -> Iterator[list[Letter]]:
    match modifier:
        case "contains":
            yield [ANY, *pattern, ANY]
        case "startswith":
            yield [*pattern, ANY]
        case "endswith":
            yield [ANY, *pattern]
        case "wide" | "utf16le":
            yield list(_plain(pattern).encode("utf-16-le").decode())
        case "base64":
            yield list(base64.b64encode(_plain(pattern).encode()).decode())
        case "base64offset":
            data = _plain(pattern).encode()
            for shift in range(3):
                yield list(_shifted(data, shift))
        case "windash":
            yield from _dashed(pattern)
        case "expand":
            yield from _expanded(pattern, placeholders)
        case _:
            yield pattern


def _plain(pattern: Sequence[Letter]) -> str:
    return "".join(letter for letter in pattern if isinstance(letter, str))


def _shifted(data: bytes, shift: int) -> str:
    """The characters of Base64 that `data` determines alone, after so many other bytes."""
    bits = "".join(f"{byte:08b}" for byte in data)
    first = -(-8 * shift // 6) * 6 - 8 * shift  # bits of a character that begins before
    whole = len(bits[first:]) // 6
    alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
    return "".join(alphabet[int(bits[first + 6 * i : first + 6 * i + 6], 2)] for i in range(whole))


def _dashed(pattern: list[Letter]) -> Iterator[list[Letter]]:
    """The pattern with any dash or slash in place of one that begins a word."""
    for place, letter in enumerate(pattern):
        before = pattern[place - 1] if place else " "
        behind = pattern[place + 1] if place + 1 < len(pattern) else " "
        if letter in ("-", "/") and not _in_word(before) and _in_word(behind):
            for rest in _dashed(["x", *pattern[place + 1 :]]):
                for dash in _DASHES:
                    yield [*pattern[:place], dash, *rest[1:]]
            return
    yield pattern


def _in_word(letter: Letter) -> bool:
    return isinstance(letter, str) and (letter.isalnum() or letter == "_")


def _expanded(pattern: list[Letter], placeholders: Mapping[str, Sequence[str]]) -> Iterator[list[Letter]]:
    text = "".join(letter if isinstance(letter, str) else "\0" for letter in pattern)
    named = re.search("%([^%\0]+)%", text)
    if named is None:
        yield pattern
        return
    for value in placeholders[named[1]]:
        for rest in _expanded(pattern[named.end() :], placeholders):
            yield [*pattern[: named.start()], *_read(value), *rest]


def _fits(text: str, pattern: Sequence[Letter], *, cased: bool) -> bool:
    """Whether the whole text fits: the places in the pattern that the characters so far can lead to."""
    if not cased:
        text = text.lower()
    places = _closed({0}, pattern)
    for letter in text:
        here = set()
        for place in places:
            asked = pattern[place] if place < len(pattern) else None
            if asked is ANY:
                here.add(place)
            elif asked is ONE or (isinstance(asked, str) and letter == (asked if cased else asked.lower())):
                here.add(place + 1)
        places = _closed(here, pattern)
    return len(pattern) in places


def _closed(places: set[int], pattern: Sequence[Letter]) -> set[int]:
    """The places, and those after wildcards that may be empty."""
    closed = set(places)
    for place in range(len(pattern)):
        if place in closed and pattern[place] is ANY:
            closed.add(place + 1)
    return closed
