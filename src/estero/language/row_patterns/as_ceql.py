"""MATCH_RECOGNIZE → the query in CEQL whose complex events include its matches.

PATTERN becomes a contiguous pattern over the rows of a partition, and DEFINE its filters. A match is one of
several complex events: it is chosen by the preferences of SQL, and by where the search continues after a
match. Conditions that read a row outside of the match, or the match so far, have no counterpart, which an
error says.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import permutations
from typing import Final

from sqlglot import exp

from estero.errors import QueryError, Span
from estero.language.row_patterns.check import read_expressions
from estero.language.row_patterns.clauses import raise_all
from estero.language.row_patterns.expressions import Names
from estero.language.row_patterns.scalars_as_ceql import Unsaid, as_ceql, window_as_ceql
from estero.language.row_patterns.slots import (
    Address,
    Aggregate,
    Count,
    Expression,
    Label,
    MatchNumber,
    Slot,
    Value,
)
from estero.language.row_patterns.tree import (
    Anchor,
    Choice,
    Excluded,
    Nothing,
    Permutation,
    Repetition,
    RowPattern,
    RowPatternClause,
    Scalar,
    Variable,
    nodes_of,
)
from estero.language.row_patterns.tree import Sequence as PatternSequence
from estero.language.row_patterns.words import words_of
from estero.language.tree.words import quoted

_MOST_PERMUTED: Final = 5


def clause_as_ceql(clause: RowPatternClause, stream: str) -> str:
    """The text of the query over one stream; raises `QueryError` with everything that it cannot express."""
    return _Translation(clause, stream).query()


@dataclass(frozen=True)
class _Condition:
    """A part of a condition of DEFINE, with its references to other rows."""

    tree: exp.Expr
    slots: Sequence[Slot]
    others: frozenset[Slot]


@dataclass(frozen=True)
class _Said:
    """The non-empty matches of a pattern; `may_be_empty` says whether it also accepts the empty match."""

    text: str
    may_be_empty: bool = False


class _Translation:
    """The parts of one query."""

    def __init__(self, clause: RowPatternClause, stream: str) -> None:
        self._clause, self._stream = clause, quoted(stream)
        self._errors: list[QueryError] = []
        self._names = Names(clause, _columns(clause), stream)
        conditions, _ = read_expressions(_without_measures(self._names))
        self._define = {entry.name.casefold(): entry.expression for entry in clause.define}
        self._conditions = {key: list(_parts(condition)) for key, condition in conditions.items()}
        self._labels = {key: quoted(variable.name) for key, variable in clause.variables.items()}
        self._leaves: Counter[str] = Counter()
        self._linked: Counter[tuple[str, exp.Expr]] = Counter()

    def query(self) -> str:
        """The whole text."""
        pattern = self._pattern()
        keys = [self._key(entry, "PARTITION BY") for entry in self._clause.partition_by]
        time = [self._key(entry, "ORDER BY") for entry in self._clause.order_by][:1]
        window = self._window(time)
        raise_all(self._errors)
        labels = [*self._labels.values(), *(quoted(subset.variable.name) for subset in self._clause.subsets)]
        partition = f" PARTITION BY {', '.join(f'[{key}]' for key in keys)}" if keys else ""
        return f"SELECT {', '.join(labels)} FROM {self._stream} WHERE {pattern}{partition}{window}"

    # ------------------------------------------------------------------------------------------ the pattern

    def _pattern(self) -> str:
        pattern, is_first = self._clause.pattern, False
        if isinstance(pattern, PatternSequence) and pattern.parts[0] == Anchor("start"):
            pattern, is_first = PatternSequence(pattern.parts[1:]), True
        for anchor in {node for node in nodes_of(pattern) if isinstance(node, Anchor)}:
            hint = "^ may be the first part of PATTERN" if anchor.at == "start" else ""
            self._wrong(
                f"{anchor} in PATTERN has no counterpart in CEQL here", self._clause.pattern_span, hint
            )
        if self._clause.rows != "one" and any(isinstance(node, Excluded) for node in nodes_of(pattern)):
            self._wrong("the exclusion {- -} has no counterpart in CEQL", self._clause.pattern_span)
        said = self._said(pattern)
        for key, parts in self._conditions.items():
            for part in parts:
                if part.others and self._linked[key, part.tree] < self._leaves[key]:
                    self._unlinked(key, part)
        if said.may_be_empty:
            self._wrong(
                "PATTERN may match no row, which has no counterpart in CEQL",
                self._clause.pattern_span,
                "write + in place of *, or add a variable",
            )
        return f"START({said.text})" if is_first else said.text

    def _said(self, pattern: RowPattern) -> _Said:
        match pattern:
            case Variable():
                return _Said(self._leaf(pattern))
            case Anchor() | Nothing():
                return _Said("", may_be_empty=True)
            case Excluded(part):
                return self._said(part)
            case Choice(alternatives):
                return _either([self._said(part) for part in alternatives])
            case Permutation(parts):
                if len(parts) > _MOST_PERMUTED:
                    self._wrong(
                        f"PERMUTE of {len(parts)} parts is not written out", self._clause.pattern_span
                    )
                    return _Said("")
                return _either([self._sequence(order) for order in permutations(parts)])
            case Repetition():
                return self._repeated(pattern)
        return self._sequence(pattern.parts)

    def _leaf(self, variable: Variable) -> str:
        """A row of a variable: its labels, and the conditions of DEFINE on the row alone."""
        key = variable.key
        self._leaves[key] += 1
        labels = [self._labels[key]]
        labels += [
            quoted(subset.variable.name)
            for subset in self._clause.subsets
            if key in {part.key for part in subset.of}
        ]
        text = self._stream + "".join(f" AS {label}" for label in labels)
        own = [part for part in self._conditions.get(key, ()) if not part.others]
        filters = [self._scalar(key, part, lambda slot: quoted(self._column(slot))) for part in own]
        if not filters:
            return f"({text})"
        return f"({text} FILTER {self._labels[key]}[{' AND '.join(f'({text})' for text in filters)}])"

    def _repeated(self, repeated: Repetition) -> _Said:
        inner = self._said(repeated.part)
        least = 1 if inner.may_be_empty else max(repeated.least, 1)
        bounds = f"{least},{'' if repeated.most is None else repeated.most}"
        text = inner.text
        if not text or repeated.most != 1:
            text = text and f"({text} :{{{bounds}}})"
        if isinstance(repeated.part, Variable) and repeated.most != 1:
            text = self._filtered(text, self._from_round_to_round(repeated.part.key))
        return _Said(text, may_be_empty=inner.may_be_empty or repeated.least == 0)

    def _from_round_to_round(self, key: str) -> list[str]:
        """The condition with PREV on all rows of a repeated variable but the first."""
        label = self._labels[key]

        def column(slot: Slot) -> str:
            name = f"{label}.{quoted(self._column(slot))}"
            return f"prev({name})" if _shift(slot) else name

        return [
            self._scalar(key, part, column, of_all=True)
            for part in self._conditions.get(key, ())
            if _reads_before(part)
        ]

    def _sequence(self, parts: Sequence[RowPattern]) -> _Said:
        """Adjacent parts in order."""
        flat = list(_flat(parts))
        said = [self._said(part) for part in flat]
        filters = [text for place in range(len(flat)) for text in self._links(flat, place)]
        spoken = [part for part in said if part.text]
        if all(part.may_be_empty for part in spoken):
            # a non-empty match begins with one of the parts
            alternatives = [_joined([_Said(part.text), *spoken[n + 1 :]]) for n, part in enumerate(spoken)]
            text = " OR ".join(f"({alternative})" for alternative in alternatives)
            text = f"({text})" if len(alternatives) > 1 else text
            return _Said(self._filtered(text, filters), may_be_empty=True)
        return _Said(self._filtered(f"({_joined(spoken)})", filters))

    # --------------------------------------------------------------------- what one variable says of another

    def _links(self, parts: Sequence[RowPattern], place: int) -> Iterator[str]:
        """The conditions of DEFINE on the variable of a part and on those before it."""
        leaf = _leaf_of(parts[place])
        if leaf is None:
            return
        for part in self._conditions.get(leaf.key, ()):
            text = None
            if _reads_before(part):
                text = self._of_row_before(leaf.key, part, parts, place) if place else None
            elif part.others:
                text = self._of_others(leaf.key, part, parts, place)
            if text is not None:
                self._linked[leaf.key, part.tree] += 1
                yield text

    def _of_row_before(
        self, key: str, part: _Condition, parts: Sequence[RowPattern], place: int
    ) -> str | None:
        """The condition with PREV on a variable's first row, which follows the last of the previous part."""
        before = _leaf_of(parts[place - 1])
        if before is None or _least(parts[place - 1]) == 0:
            return None
        self._check_once((key, before.key), parts, self._define[key])
        last = self._end("last", before.key, parts[place - 1])
        first = self._end("first", key, parts[place])

        def column(slot: Slot) -> str:
            return (last if _shift(slot) else first).format(quoted(self._column(slot)))

        return self._if_there(key, parts[place], self._scalar(key, part, column))

    def _of_others(self, key: str, part: _Condition, parts: Sequence[RowPattern], place: int) -> str | None:
        """A condition on rows of earlier variables."""
        leaves = {leaf.key: at for at in range(place) if (leaf := _leaf_of(parts[at])) is not None}
        ends: dict[Slot, str] = {}
        for slot in part.others:
            rows = _rows_read(slot)
            at = leaves.get(rows) if rows is not None else None
            if at is None or rows is None or _least(parts[at]) == 0:
                return None
            self._check_once((key, rows), parts, self._define[key])
            assert isinstance(slot, Value)  # noqa: S101 - no other slot has one variable
            ends[slot] = self._end("last" if slot.address.last else "first", rows, parts[at])

        def column(slot: Slot) -> str:
            return ends.get(slot, f"{self._labels[key]}.{{}}").format(quoted(self._column(slot)))

        is_repeated = isinstance(parts[place], Repetition)
        return self._if_there(key, parts[place], self._scalar(key, part, column, of_all=is_repeated))

    def _if_there(self, key: str, part: RowPattern, text: str) -> str:
        """A filter on rows of a variable that may have no rows."""
        return text if _least(part) else f"(count({self._labels[key]}) = 0 OR {text})"

    def _end(self, function: str, key: str, part: RowPattern) -> str:
        label = self._labels[key]
        return f"{function}({label}.{{}})" if isinstance(part, Repetition) else f"{label}.{{}}"

    def _check_once(self, keys: Sequence[str], parts: Sequence[RowPattern], scalar: Scalar) -> None:
        for key in keys:
            nodes = (node for part in parts for node in nodes_of(part))
            if sum(isinstance(node, Variable) and node.key == key for node in nodes) > 1:
                self._wrong(
                    f"{self._clause.variables[key]} stands more than once beside what a condition reads, and "
                    "CEQL would compare all of its rows",
                    scalar.span,
                    "give its places different names",
                )

    def _unlinked(self, key: str, part: _Condition) -> None:
        """Notes that a condition reads rows of which CEQL cannot express it."""
        variable, span = self._clause.variables[key], self._define[key].span
        if _reads_before(part):
            self._wrong(
                f"PREV in the condition of {variable} reads a row that is not surely in the match and of one "
                "variable, which has no counterpart in CEQL",
                span,
                "PREV can be used for a variable that comes right after another one, as B in (A B+)",
            )
            return
        slots = [slot for slot in part.slots if slot in part.others and _rows_read(slot) is None]
        message, hint = _reason(slots[0] if slots else next(iter(part.others)))
        self._wrong(f"the condition of {variable} {message}, which has no counterpart in CEQL", span, hint)

    # ------------------------------------------------------------------------------------------- conditions

    def _scalar(
        self, key: str, part: _Condition, column: Callable[[Slot], str], *, of_all: bool = False
    ) -> str:
        """The text of a condition; with `of_all` it holds for several rows, and so must be one comparison."""
        if of_all and not _is_comparison(part.tree):
            self._wrong(
                f"the condition of {self._clause.variables[key]} joins comparisons with other rows by OR or "
                "NOT, which has no counterpart in CEQL for a variable of several rows",
                self._define[key].span,
                "join comparisons by AND, or make two variables of it",
            )
            return ""
        try:
            return as_ceql(part.tree, lambda name: column(part.slots[int(name[1:])]))
        except Unsaid as unsaid:
            self._wrong(
                f"the condition of {self._clause.variables[key]} has {unsaid}, which has no counterpart in "
                "CEQL",
                self._define[key].span,
            )
            return ""

    def _column(self, slot: Slot) -> str:
        assert isinstance(slot, Value)  # noqa: S101 - others have been refused
        return self._names.columns[slot.column]

    @staticmethod
    def _filtered(text: str, filters: Sequence[str]) -> str:
        return f"({text} FILTER {' AND '.join(filters)})" if filters else text

    # ------------------------------------------------------------------------------------------------ clauses

    def _key(self, entry: Scalar, part: str) -> str:
        words = words_of(entry.text)
        names = [word.name for word in words if word.is_name and word.upper not in _OF_ORDER]
        signs = [word.text for word in words if not word.is_name]
        if part == "ORDER BY" and any(word.upper == "DESC" for word in words):
            self._wrong("ORDER BY … DESC has no counterpart in CEQL, where time runs forward", entry.span)
        if not names or len(names) > 2 or signs not in ([], ["."]):
            self._wrong(
                f"{part} has an expression, which has no counterpart in CEQL", entry.span, "name a column"
            )
            return ""
        return quoted(names[-1])

    def _window(self, time: Sequence[str]) -> str:
        within = self._clause.within
        if within is None:
            return ""
        try:
            return f" WITHIN {window_as_ceql(within.text, time[0] if time else '')}"
        except Unsaid as unsaid:
            self._wrong(f"WITHIN has {unsaid}, which has no counterpart in CEQL", within.span)
            return ""

    def _wrong(self, message: str, span: Span, hint: str = "") -> None:
        text = self._clause.text
        error = QueryError(message, text=text, span=span, found=text[span.start : span.end], hint=hint)
        if all((other.message, other.span) != (message, span) for other in self._errors):
            self._errors.append(error)


_OF_ORDER: Final = frozenset({"ASC", "DESC", "NULLS", "FIRST", "LAST"})


def _columns(clause: RowPatternClause) -> list[str]:
    """All names in conditions, which include the columns."""
    scalars = [entry.expression for entry in clause.define]
    return list(
        dict.fromkeys(word.name for scalar in scalars for word in words_of(scalar.text) if word.is_name)
    )


def _without_measures(names: Names) -> Names:
    clause = names.clause
    return Names(
        RowPatternClause(clause.pattern, clause.define, subsets=clause.subsets, text=clause.text),
        names.columns,
        names.relation,
    )


def _parts(condition: Expression) -> Iterator[_Condition]:
    """The parts of a conjunction."""
    waiting = [condition.tree]
    while waiting:
        tree = waiting.pop(0).unnest()
        if isinstance(tree, exp.And):
            waiting[:0] = [tree.left, tree.right]
            continue
        if isinstance(tree, exp.Boolean) and tree.this:
            continue
        numbers = {int(column.name[1:]) for column in tree.find_all(exp.Column)}
        others = frozenset(
            slot for number, slot in enumerate(condition.slots) if number in numbers and not _is_of_row(slot)
        )
        yield _Condition(tree, condition.slots, others)


def _is_comparison(tree: exp.Expr) -> bool:
    """Whether a condition is one comparison; BETWEEN is two that must both hold."""
    return isinstance(tree, _COMPARISONS) and not any(
        isinstance(node, (*_COMPARISONS, exp.Connector, exp.Not)) for node in tree.walk() if node is not tree
    )


_COMPARISONS: Final = (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.Between)


def _is_of_row(slot: Slot) -> bool:
    return isinstance(slot, Value) and slot.address == Address()


def _shift(slot: Slot) -> int:
    return slot.address.shift if isinstance(slot, Value) else 0


def _reads_before(part: _Condition) -> bool:
    """Whether a part compares the previous row with its own, and reads no earlier one."""
    return bool(part.others) and all(
        isinstance(slot, Value) and slot.address == Address(shift=-1) for slot in part.others
    )


def _rows_read(slot: Slot) -> str | None:
    """The single variable whose first or last row a slot reads."""
    if not isinstance(slot, Value) or slot.address.rows is None or len(slot.address.rows) != 1:
        return None
    address = slot.address
    return next(iter(slot.address.rows)) if not address.offset and not address.shift else None


def _reason(slot: Slot) -> tuple[str, str]:
    """The reason why a slot cannot be expressed, and what can be written instead."""
    match slot:
        case Aggregate() | Count():
            return (
                "reads an aggregate of the match so far",
                "CEQL compares aggregates of whole complex events",
            )
        case Label():
            return "reads CLASSIFIER", ""
        case MatchNumber():
            return "reads MATCH_NUMBER", ""
        case Value(Address(shift=shift)) if shift > 0:
            return "reads NEXT, a row that has not come", "turn it round: PREV in the variable behind"
        case Value(Address(shift=shift)) if shift < 0:
            return "reads a row further back than the one before", "PREV(x) can be said"
        case Value(Address(rows=None)):
            return "reads the match so far by FIRST or LAST", "name the variable, as in FIRST(A.x)"
    return (
        "reads rows of a variable that is not surely before it",
        "a variable of the same sequence, before it and not optional, can be read",
    )


def _flat(parts: Sequence[RowPattern]) -> Iterator[RowPattern]:
    for part in parts:
        match part:
            case Excluded(inner) | Repetition(inner, 1, 1):
                yield from _flat([inner])
            case PatternSequence(inner_parts):
                yield from _flat(inner_parts)
            case _:
                yield part


def _leaf_of(part: RowPattern) -> Variable | None:
    """The variable of a part, once or repeated."""
    if isinstance(part, Repetition):
        part = part.part
    return part if isinstance(part, Variable) else None


def _least(part: RowPattern) -> int:
    return part.least if isinstance(part, Repetition) else 1


def _either(said: Sequence[_Said]) -> _Said:
    texts = list(dict.fromkeys(part.text for part in said if part.text))
    text = f"({' OR '.join(texts)})" if len(texts) > 1 else "".join(texts)
    return _Said(text, any(part.may_be_empty for part in said))


def _joined(parts: Sequence[_Said]) -> str:
    """A part after another one; one of them accepts rows whatever the others do."""
    return " : ".join(f"({part.text})?" if part.may_be_empty else part.text for part in parts)
