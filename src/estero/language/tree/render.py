"""Syntax tree → canonical text that parses back to an equal tree, with as few parentheses as that needs."""

from __future__ import annotations

from estero.language.tree.expressions import Node
from estero.language.tree.literals import integer_text
from estero.language.tree.pattern import (
    All,
    As,
    Conjunction,
    Disjunction,
    EventType,
    Filter,
    Iteration,
    Keep,
    Link,
    Optional,
    PartitionBy,
    PartitionKey,
    Pattern,
    Rename,
    Sequence,
    Start,
    Strict,
    Unless,
)
from estero.language.tree.query import (
    AttributeWindow,
    Consume,
    DurationWindow,
    EventWindow,
    KeyBracket,
    QueryTree,
    SelectItem,
    Strategy,
    Window,
)
from estero.language.tree.render_conditions import render_condition
from estero.language.tree.words import quoted

__all__ = ["render_condition", "render_pattern", "render_query", "shortened"]

LOOSE, OR, UNLESS, AND, ALL, SEQUENCE, POSTFIX, ATOM = range(8)
"""How tightly the operators of patterns bind, loosest first."""


def render_query(tree: QueryTree) -> str:
    """The query in canonical text: keywords in capitals, one space between words."""
    clauses = ["SELECT"]
    if tree.strategy is not Strategy.ALL:
        clauses.append(tree.strategy.value)
    clauses.append(_select_list(tree.select))
    if tree.streams:
        clauses.append(f"FROM {_names(tree.streams)}")
    clauses.append(f"WHERE {_where(tree.pattern)}")
    if tree.partition_by:
        clauses.append(f"PARTITION BY {', '.join(map(_bracket, tree.partition_by))}")
    if tree.window is not None:
        clauses.append(f"WITHIN {render_window(tree.window)}")
    if tree.consume is not Consume.NONE:
        clauses.append(f"CONSUME BY {tree.consume.value}")
    if tree.limit is not None:
        clauses.append(f"LIMIT {integer_text(tree.limit)}")
    return " ".join(clauses)


def render_pattern(pattern: Pattern) -> str:
    """The pattern in canonical text, to be read by `parse_pattern`."""
    return _pattern(pattern, LOOSE)


def shortened(pattern: Pattern, most: int = 120) -> str:
    """The text of a pattern, to stand in a sentence: its beginning where it is long."""
    text = render_pattern(pattern)
    return text if len(text) <= most else f"{text[:most].rstrip()} …"


def _where(pattern: Pattern) -> str:
    """The pattern where a PARTITION BY on plain attributes would be taken for the query's clause."""
    tail: Node | Pattern = pattern
    while isinstance(tail, Filter | Keep | PartitionBy):
        if isinstance(tail, PartitionBy) and all(key.variable is None for key in tail.keys):
            return _pattern(pattern, ATOM)
        tail = tail.pattern
    return _pattern(pattern, LOOSE)


def _names(names: tuple[str, ...]) -> str:
    return ", ".join(map(quoted, names))


def _select_list(items: tuple[SelectItem, ...] | None) -> str:
    if items is None:
        return "*"
    return ", ".join(map(_item, items)) if items else "NONE"


def _item(item: SelectItem) -> str:
    if item.attributes is not None:
        return f"{quoted(item.label)}[{_names(item.attributes)}]"
    return '"' + item.label + '"' if item.label.upper() == "NONE" else quoted(item.label)


def _bracket(bracket: KeyBracket) -> str:
    return f"[{_names(bracket.alternatives)}]"


def render_window(window: Window) -> str:
    """The text of a window, as it stands behind WITHIN."""
    match window:
        case EventWindow(events):
            return f"{integer_text(events)} EVENTS"
        case DurationWindow(parts):
            return " ".join(f"{integer_text(amount)} {unit.name}" for amount, unit in parts)
        case AttributeWindow(ticks, attribute):
            return f"{integer_text(ticks)} [{quoted(attribute)}]"


def _pattern(pattern: Pattern, least: int) -> str:
    """The text of a pattern, in parentheses if it binds looser than `least`."""
    level, text = _with_level(pattern)
    return text if level >= least else f"({text})"


def _with_level(pattern: Pattern) -> tuple[int, str]:
    for level, text_of in ((ATOM, _atom), (POSTFIX, _postfix), (LOOSE, _tailed)):
        text = text_of(pattern)
        if text is not None:
            return level, text
    match pattern:
        case Sequence():
            return SEQUENCE, _sequence(pattern)
        case All(parts):
            return ALL, _chain(parts, " ALL ", SEQUENCE)
        case Conjunction(parts):
            return AND, _chain(parts, " AND ", ALL)
        case Unless(inner, forbidden):
            return UNLESS, f"{_pattern(inner, UNLESS)} UNLESS {_pattern(forbidden, AND)}"
        case Disjunction(parts):
            return OR, _chain(parts, " OR ", UNLESS)
        case _:
            raise TypeError(f"{type(pattern).__name__} is not a pattern that has a text")


def _atom(pattern: Pattern) -> str | None:
    match pattern:
        case EventType(name, None):
            return quoted(name)
        case EventType(name, str(stream)):
            return f"{quoted(stream)}>{quoted(name)}"
        case Start(inner):
            return f"START({render_pattern(inner)})"
        case Strict(inner):
            return f"STRICT({render_pattern(inner)})"
        case _:
            return None


def _postfix(pattern: Pattern) -> str | None:
    match pattern:
        case As(inner, variable):
            return f"{_pattern(inner, POSTFIX)} AS {quoted(variable)}"
        case Rename(inner, old, new):
            return f"{_pattern(inner, POSTFIX)} [{quoted(old)} -> {quoted(new)}]"
        case Iteration(inner):
            return f"{_pattern(inner, POSTFIX)}{_repetition(pattern)}"
        case Optional(inner):
            return f"{_pattern(inner, POSTFIX)}?"
        case _:
            return None


def _tailed(pattern: Pattern) -> str | None:
    match pattern:
        case Filter(inner, condition):
            return f"{render_pattern(inner)} FILTER {render_condition(condition)}"
        case Keep(inner, labels):
            return f"{render_pattern(inner)} KEEP [{_names(labels)}]"
        case PartitionBy(inner, keys):
            return f"{render_pattern(inner)} PARTITION BY [{', '.join(map(_key, keys))}]"
        case _:
            return None


def _chain(parts: tuple[Pattern, ...], separator: str, least: int) -> str:
    return separator.join(_pattern(part, least) for part in parts)


def _sequence(sequence: Sequence) -> str:
    text = _pattern(sequence.parts[0], POSTFIX)
    for link, part in zip(sequence.links, sequence.parts[1:], strict=True):
        text += _link(link) + _pattern(part, POSTFIX)
    return text


def _link(link: Link) -> str:
    sign = " : " if link.contiguous else " ; "
    return sign.join(["", *(f"NOT({render_pattern(absent)})" for absent in link.absent), ""])


def _repetition(iteration: Iteration) -> str:
    sign = " :" if iteration.contiguous else ""
    match iteration.minimum, iteration.maximum:
        case 1, None:
            return f"{sign}+"
        case least, None:
            return f"{sign}{{{integer_text(least)},}}"
        case least, most if least == most:
            return f"{sign}{{{integer_text(least)}}}"
        case least, most:
            return f"{sign}{{{integer_text(least)},{integer_text(most)}}}"


def _key(key: PartitionKey) -> str:
    attribute = quoted(key.attribute)
    return attribute if key.variable is None else f"{quoted(key.variable)}.{attribute}"
