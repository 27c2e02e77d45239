"""Conditions on strings by LIKE, ILIKE and regular expressions, and the parts they are certain to need.

`PatternColumns` compiles more than `PlainColumns`: the conditions of many rules, whose strings are searched
together (known_patterns.py).
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial, reduce
from itertools import groupby
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from estero.classify.arrays import array_of, known_in
from estero.classify.columns import ColumnType
from estero.classify.rows.texts import like_test
from estero.classify.vectors.batch_columns import BatchColumns, Mask
from estero.classify.vectors.compile import NotPlainError, PlainColumns, joined
from estero.classify.vectors.conditions import (
    Condition,
    Constant,
    Joined,
    Known,
    NumberList,
    NumberTest,
    TextCondition,
    TextList,
    TextTest,
    mask_of,
    rows_of,
)
from estero.classify.vectors.text_columns import ends_and_letters
from estero.engine.substrings import AT_BEGIN, AT_END
from estero.language.regex.dialects import for_re2
from estero.language.tree import expressions as e
from estero.language.tree.literals import in_lower_case
from estero.language.tree.schema import Kind

_WILD = "_"
_QUOTED: Final = re.compile(r"[\\.+*?()|\[\]{}^$]")
"""The characters with a special meaning in a regular expression."""


@dataclass(frozen=True, slots=True)
class Negation(Condition):
    """The rows in which a condition does not hold: it is false or unknown."""

    part: Condition

    def rows(self, columns: BatchColumns) -> Mask:
        return ~rows_of(self.part, columns)


@dataclass(frozen=True, slots=True)
class Pattern(TextCondition):
    """The rows in which a string is LIKE a pattern, in lower case if case is ignored."""

    column: str
    pattern: str
    ignoring_case: bool = False

    def of_texts(self, texts: pa.Array) -> Mask:
        test = self.test()
        return np.array([text is not None and test(text) for text in texts.to_pylist()], np.bool_)

    def test(self) -> Callable[[str], bool]:
        """The test that a string is LIKE the pattern."""
        test = like_test(self.pattern)
        return (lambda text: test(in_lower_case(text))) if self.ignoring_case else test


@dataclass(frozen=True, slots=True)
class Regex(TextCondition):
    """The rows in which a regular expression in the syntax of RE2 matches somewhere in a string."""

    column: str
    regex: str

    def of_texts(self, texts: pa.Array) -> Mask:
        return mask_of(pc.match_substring_regex(texts, self.regex))


@dataclass(frozen=True, slots=True)
class Related(Condition):
    """The rows in which the string of one column equals, begins with, ends with or contains that of another.

    Both are in lower case if case is ignored.
    """

    columns: tuple[str, str]
    relation: str
    ignoring_case: bool

    def rows(self, columns: BatchColumns) -> Mask:
        one, other = (columns.decoded(name) for name in self.columns)
        if self.ignoring_case:
            one, other = lower_texts(one), lower_texts(other)
        if self.relation == "=":
            return mask_of(pc.equal(*_of_one_type(one, other)))
        related = _RELATIONS[self.relation]
        both = np.flatnonzero(known_in(one) & known_in(other))
        places = array_of(both)
        pairs = zip(one.take(places).to_pylist(), other.take(places).to_pylist(), strict=True)
        mask = np.zeros(len(one), np.bool_)
        mask[both] = [related(text, part) for text, part in pairs]
        return mask


def _of_one_type(one: pa.Array, other: pa.Array) -> tuple[pa.Array, pa.Array]:
    if one.type == other.type:
        return one, other
    return one.cast(pa.large_string()), other.cast(pa.large_string())


_RELATIONS: Final[Mapping[str, Callable[[str, str], bool]]] = {
    "starts_with": str.startswith,
    "ends_with": str.endswith,
    "contains": operator.contains,
}


@dataclass(frozen=True, slots=True)
class SomeColumn(Condition):
    """The rows in which one of several columns of strings satisfies a condition, which names none of them."""

    columns: tuple[str, ...]
    part: TextTest | TextList | Pattern

    def rows(self, columns: BatchColumns) -> Mask:
        of_columns = (rows_of(replace(self.part, column=name), columns) for name in self.columns)
        return reduce(operator.or_, of_columns)


class Needle(NamedTuple):
    """A part in lower case that every string that is LIKE a pattern contains, once lower-cased.

    `where` says where it has to occur (`engine.substrings`). If `certain`, a string that contains it there is
    LIKE the pattern.
    """

    text: str
    where: int
    certain: bool


def needle_of(pattern: Pattern) -> Needle | None:
    r"""The longest part of a pattern without wildcards; None if it has none.

    >>> needle_of(Pattern("s", "%\\cmd.exe", ignoring_case=True)) == Needle("cmd.exe", AT_END, certain=True)
    True
    >>> needle_of(Pattern("s", "A%bcd%e_")) == Needle("bcd", 0, certain=False)
    True
    """
    pieces = _pieces(pattern.pattern)
    runs = []
    for literal, group in groupby(range(len(pieces)), lambda place: pieces[place][1]):
        places = list(group)
        if literal:
            runs.append(("".join(pieces[place][0] for place in places), places[0]))
    if not runs:
        return None
    text, begin = max(runs, key=lambda run: len(run[0]))
    end = begin + len(text)
    where = (AT_BEGIN if begin == 0 else 0) + (AT_END if end == len(pieces) else 0)
    outside = pieces[:begin] + pieces[end:]
    alone = all(piece == ("%", False) for piece in outside)
    lower = in_lower_case(text)
    same = pattern.ignoring_case or (lower == text and text == text.upper())
    return Needle(lower, where, certain=alone and same)


def regex_of(pattern: Pattern) -> str:
    r"""The regular expression of RE2 that matches strings LIKE a pattern; it respects case.

    >>> regex_of(Pattern("s", "a_%\\%.x"))
    '(?s)\\Aa..*%\\.x\\z'
    """
    wild = {"%": ".*", _WILD: "."}
    pieces = _pieces(pattern.pattern)
    parts = [_QUOTED.sub(r"\\\g<0>", letter) if literal else wild[letter] for letter, literal in pieces]
    return rf"(?s)\A{''.join(parts)}\z"


def _pieces(pattern: str) -> list[tuple[str, bool]]:
    """The letters of a pattern, each with whether it is literal; successive ``%`` are one."""
    pieces: list[tuple[str, bool]] = []
    letters = iter(pattern)
    for letter in letters:
        if letter == "\\":
            pieces.append((next(letters, "\\"), True))
        elif letter not in {"%", _WILD}:
            pieces.append((letter, True))
        elif letter == _WILD or pieces[-1:] != [("%", False)]:
            pieces.append((letter, False))
    return pieces


class PatternColumns(PlainColumns):
    """Compiles plain conditions, LIKE and regular expressions, and ``coalesce(p, FALSE)``."""

    def column(self, name: str) -> ColumnType | None:
        """The form in which expressions read a column; None if it is NULL in every event."""
        return self.read(name)

    def condition(self, node: e.Node, *, is_true: bool = True) -> Condition:
        """The rows in which a condition is true, or false; raises `NotPlainError`."""
        match node:
            case e.Call("coalesce", (part, e.Literal(bool() as otherwise))) if not otherwise:
                certain = self.condition(part)
                return certain if is_true else negated(certain)
            case e.SomeElement(e.Attribute(name, None), element, inside):
                some = joined(map(partial(self._of_elements, name, element), parts_of(inside)), some=True)
                return _true_or_false(name, some, is_true=is_true)
            case e.SomeAttribute():
                some = self._of_some(node)
                return some if is_true else negated(some)
            case e.Ilike():
                return self.condition(node.as_like, is_true=is_true)
            case e.Like(operand, pattern):
                return self._like(operand, [pattern], is_true=is_true)
            case e.Call("starts_with" | "ends_with" | "contains" as name, (one, other)):
                return self._placed(name, one, other, is_true=is_true)
            case e.Comparison("=" | "!=" as sign, e.Call("lower") as operand, e.Literal(str() as text)):
                return self._like(operand, [as_pattern(text)], is_true=is_true == (sign == "="))
            case e.Comparison(
                "=" | "!=" as sign, e.Attribute() | e.Call("lower") as one, e.Call("lower") as other
            ):
                return self._related(one, other, "=", is_true=is_true == (sign == "="))
            case e.Comparison("=" | "!=" as sign, e.Attribute() as one, e.Attribute() as other):
                return self._related(one, other, "=", is_true=is_true == (sign == "="))
            case e.In(e.Call("lower") as operand, members):
                return self._like(operand, list(map(_exactly, members)), is_true=is_true)
            case e.Matches(operand, regex):
                return self._matches(operand, regex, is_true=is_true)
        return super().condition(node, is_true=is_true)

    def _of_elements(self, name: str, element: str, node: e.Node) -> Condition:
        """The rows in which an element of a list of strings satisfies a test, which reads such an element."""
        column = self.types.get(name)
        if column is None or column.element is None or column.element.kind is not Kind.STRING:
            raise NotPlainError
        if name not in self._events.names:
            raise NotPlainError
        kind = self._events.field(name).type.value_type
        of_element = PatternColumns({name: column.element}, pa.schema([(name, kind)]))
        condition = of_element.condition(e.substituted(node, partial(_as_attribute, name, element)))
        if not all(map(is_asked, _joined_by_or(condition))):
            raise NotPlainError
        return condition

    def _of_some(self, node: e.SomeAttribute) -> Condition:
        """The rows in which one of several columns of strings satisfies a test."""
        texts = [name for name, _ in map(self._text, node.attributes) if name is not None]
        of_one = PatternColumns({"": ColumnType(Kind.STRING)}, pa.schema([("", pa.string())]))
        test = of_one.condition(e.substituted(node.condition, partial(_as_attribute, "", node.element)))
        parts = _joined_by_or(test)
        asked = [part for part in parts if isinstance(part, TextTest | TextList | Pattern) and is_asked(part)]
        if not texts or len(asked) < len(parts):
            return self.condition(node.spread)
        return joined((SomeColumn(tuple(texts), part) for part in asked), some=True)

    def _like(self, operand: e.Node, patterns: Sequence[str], *, is_true: bool) -> Condition:
        name, ignoring_case = self._text(operand)
        if name is None:
            return Constant(holds=False)
        some: list[Condition] = []
        for pattern in patterns:
            if pattern and not pattern.strip("%"):
                some.append(Known(name))
            elif not ignoring_case or in_lower_case(pattern) == pattern:
                some.append(Pattern(name, pattern, ignoring_case))
        return _true_or_false(name, joined(some, some=True), is_true=is_true)

    def _placed(self, name: str, one: e.Node, other: e.Node, *, is_true: bool) -> Condition:
        """The test that a string begins with, ends with or contains a constant, or the string of a column."""
        match other:
            case e.Literal(str() as text):
                before, behind = _AROUND[name]
                return self._like(one, [before + as_pattern(text) + behind], is_true=is_true)
            case e.Attribute() | e.Call("lower"):
                return self._related(one, other, name, is_true=is_true)
        raise NotPlainError

    def _related(self, one: e.Node, other: e.Node, relation: str, *, is_true: bool) -> Condition:
        (first, lower), (second, also) = self._text(one), self._text(other)
        if lower != also:
            raise NotPlainError
        if first is None or second is None:
            return Constant(holds=False)
        related = Related((first, second), relation, lower)
        return related if is_true else joined([Known(first), Known(second), negated(related)], some=False)

    def _matches(self, operand: e.Node, regex: str, *, is_true: bool) -> Condition:
        name, ignoring_case = self._text(operand)
        if ignoring_case:
            raise NotPlainError
        if name is None:
            return Constant(holds=False)
        return _true_or_false(name, Regex(name, for_re2(regex)), is_true=is_true)

    def _text(self, operand: e.Node) -> tuple[str | None, bool]:
        """The column of strings that is read, None for one of NULLs, and whether in lower case."""
        ignoring_case = isinstance(operand, e.Call) and operand.name == "lower"
        if isinstance(operand, e.Call) and ignoring_case:
            (operand,) = operand.arguments
        match operand:
            case e.Attribute(name, None):
                column = self.column(name)
                if column is not None and column.kind is not Kind.STRING:
                    raise NotPlainError
                return (None if column is None else name), ignoring_case
        raise NotPlainError


def lower_texts(texts: pa.Array) -> pa.Array:
    """The strings in lower case, letter by letter; NULLs stay."""
    ends, letters = ends_and_letters(texts)
    own = letters[ends[0] : ends[-1]]
    if not own.size or own.max() < 128:
        return pc.ascii_lower(texts)
    return pa.array([text if text is None else in_lower_case(text) for text in texts.to_pylist()], texts.type)


def parts_of(condition: e.Node) -> tuple[e.Node, ...]:
    """The parts of a condition that OR joins."""
    return condition.parts if isinstance(condition, e.Or) else (condition,)


def _joined_by_or(condition: Condition) -> tuple[Condition, ...]:
    return condition.parts if isinstance(condition, Joined) and condition.some else (condition,)


def _as_attribute(name: str, element: str, node: e.Node) -> e.Node | None:
    return e.Attribute(name) if isinstance(node, e.Element) and node.name == element else None


def is_asked(condition: Condition) -> bool:
    """Whether a condition compares a column with constants or a pattern, so that searches can be shared."""
    match condition:
        case TextTest(_, "=", _) | TextList(_, _, False) | Pattern() | SomeColumn():
            return True
        case NumberTest(_, "=", int()) | NumberList(_, _, False):
            return all(isinstance(number, int) for number in constants_of(condition))
    return False


def constants_of(condition: Condition) -> tuple[str | int, ...]:
    """The constants with which a condition compares a column."""
    match condition:
        case TextTest(_, _, text):
            return (text,)
        case TextList(_, texts, _):
            return tuple(sorted(texts))
        case NumberTest(_, _, number):
            return (number,)
        case NumberList(_, numbers, _):
            return tuple(dict.fromkeys(numbers))
    return ()


def negated(part: Condition) -> Condition:
    """The rows in which a condition does not hold: it is false or unknown."""
    match part:
        case Constant(holds):
            return Constant(holds=not holds)
        case Negation(inner):
            return inner
        case Joined(parts, some):
            return joined(map(negated, parts), some=not some)
    return Negation(part)


def as_pattern(text: str) -> str:
    """The LIKE pattern that only one text matches."""
    return "".join(f"\\{letter}" if letter in {"%", _WILD, "\\"} else letter for letter in text)


def _exactly(member: e.Literal | e.Range) -> str:
    if isinstance(member, e.Literal) and isinstance(member.value, str):
        return as_pattern(member.value)
    raise NotPlainError


def _true_or_false(name: str, condition: Condition, *, is_true: bool) -> Condition:
    """The rows in which a condition on a column is true, or those in which it is false."""
    return condition if is_true else joined([Known(name), negated(condition)], some=False)


_AROUND = {"starts_with": ("", "%"), "ends_with": ("%", ""), "contains": ("%", "%")}
