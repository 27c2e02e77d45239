"""A query and what is known of its events → everything that is wrong, all at once, in order of place.

`check_query` gathers what four checks note: the pattern's shape and types (here), the filters
(check_filters.py), where their variables are bound (check_scopes.py), and the clauses (check_clauses.py).
Without a schema only what needs none is checked.
"""

from __future__ import annotations

from dataclasses import dataclass

from estero.errors import QueryError, Span
from estero.language.check.clauses import check_alternatives, check_clauses
from estero.language.check.filters import check_filter
from estero.language.check.kinds import NUMBERS, kind_of
from estero.language.check.labels import KnownTypes, bound_names, labels_of
from estero.language.check.problems import Problems
from estero.language.check.scopes import check_scopes
from estero.language.syntax.parser import parse_query
from estero.language.tree.names import SPELLING, listed, some, suggestion
from estero.language.tree.pattern import (
    EventType,
    Filter,
    Iteration,
    Keep,
    Link,
    Optional,
    PartitionBy,
    Pattern,
    Rename,
    Sequence,
)
from estero.language.tree.query import QueryTree
from estero.language.tree.schema import Kind, Schema
from estero.language.tree.selection import label_types
from estero.language.tree.words import quoted

__all__ = ["check_query", "kind_of", "labels_of"]


def check_query(tree: QueryTree, schema: Schema | None = None) -> list[QueryError]:
    """All errors of a query, in order of place; the empty list if there is none.

    A tree without a text is checked as its canonical text, so that every error has a place.

    >>> from estero.language.syntax.parser import parse_query
    >>> [error.message for error in check_query(parse_query("SELECT x WHERE a AS y WITHIN 0 EVENTS"))]
    ['no event is marked x', 'a window has to be longer than 0 events']
    """
    if not tree.text:
        try:
            tree = parse_query(str(tree))
        except QueryError as error:
            return [error]
    problems = Problems(tree.text)
    known = KnownTypes(schema, tree.streams)
    _PatternCheck(tree, known, problems).run()
    check_clauses(tree, known, problems)
    check_scopes(tree.pattern, problems)
    return problems.in_order()


@dataclass(frozen=True, slots=True)
class _PatternCheck:
    tree: QueryTree
    known: KnownTypes
    problems: Problems

    def run(self) -> None:
        bound = bound_names(self.tree.pattern)
        allowed_optionals = {
            id(part)
            for node in self.tree.pattern.walk()
            if isinstance(node, Sequence)
            for part in node.parts
            if isinstance(part, Optional)
        }
        for node in self.tree.pattern.walk():
            match node:
                case EventType():
                    self._event_type(node)
                case Filter():
                    check_filter(node, bound, self.known, self.problems)
                case Iteration():
                    self._iteration(node)
                case Sequence():
                    self._sequence(node)
                case Optional() if id(node) not in allowed_optionals:
                    self._lonely_optional(node)
                case Keep() | Rename():
                    self._labels(node)
                case PartitionBy():
                    self._partition(node)
                case _:
                    pass

    def _event_type(self, node: EventType) -> None:
        streams = self.tree.streams
        if node.stream is not None and streams and node.stream not in streams:
            self.problems.add(
                f"{node.stream} is not one of the streams in FROM",
                node.span,
                expected=listed(streams),
                hint=suggestion(node.stream, streams)
                or f"FROM {', '.join([*streams, node.stream])} reads it too",
            )
        elif not self.known.exists(node):
            self.known.note_missing(node, self.problems)

    def _iteration(self, node: Iteration) -> None:
        text = self.problems.text
        brace = text.rfind("{", node.span.start, node.span.end)
        span = node.span if brace < 0 else type(node.span)(brace, node.span.end)
        if node.minimum < 1:
            self.problems.add(
                "a repetition happens at least once",
                span,
                expected="{n,m} with n from 1",
                hint="what may be missing is written with ?, as a part of a sequence: (…{1,m})?",
            )
        elif node.maximum is not None and node.maximum < node.minimum:
            self.problems.add(
                "the bounds of this repetition are reversed",
                span,
                expected="the smaller number first",
                hint=f"{{{node.maximum},{node.minimum}}}",
            )

    def _sequence(self, node: Sequence) -> None:
        if all(isinstance(part, Optional) for part in node.parts):
            self.problems.add(
                "every part of this sequence may be missing",
                node.span,
                expected="at least one part without ?",
                hint="take the ? from a part that has to happen",
            )
        for index, part in enumerate(node.parts):
            around: list[Link] = [*node.links[max(0, index - 1) : index], *node.links[index : index + 1]]
            if isinstance(part, Optional) and any(link.absent for link in around):
                self.problems.add(
                    "a part beside NOT(…) cannot be optional",
                    part.span,
                    expected="a part without ?",
                    hint="write the two cases out, joined by OR",
                )

    def _lonely_optional(self, node: Optional) -> None:
        self.problems.add(
            "? makes a part of a sequence optional, and this is not one",
            node.span,
            expected="φ? between ; or :",
            hint="put ? last on the part: (… AS x)?",
        )

    def _labels(self, node: Keep | Rename) -> None:
        types = label_types(node.pattern)
        for label in node.labels if isinstance(node, Keep) else (node.old,):
            if label not in types:
                self.problems.add(
                    f"no event is marked {label}",
                    self.problems.inner_span(node.span, quoted(label)),
                    expected=some(types) or "no label at all",
                    hint=suggestion(label, types) or f"bind it inside with AS {quoted(label)}",
                )

    def _partition(self, node: PartitionBy) -> None:
        types = label_types(node.pattern)
        plain = [key.attribute for key in node.keys if key.variable is None]
        every = _all_types(node.pattern)
        if check_alternatives(every, plain, self._keys_of(node), self.known, self.problems):
            return
        first: tuple[str, Kind] | None = None
        for key in node.keys:
            span = self.problems.inner_span(node.span, quoted(key.attribute))
            if key.variable is not None and key.variable not in types:
                span = self.problems.inner_span(node.span, f"{quoted(key.variable)}.")
                self.problems.add(
                    f"no event is marked {key.variable}",
                    type(span)(span.start, span.end - 1),
                    expected=some(types) or "no label at all",
                    hint=suggestion(key.variable, types) or f"bind it inside with AS {quoted(key.variable)}",
                )
                continue
            marked = types[key.variable] if key.variable is not None else every
            kinds = self.known.together(marked)
            if kinds is not None and key.attribute not in kinds:
                self.problems.add(
                    f"there is no attribute {key.attribute}",
                    span,
                    expected=some(kinds) or "no attribute at all",
                    hint=suggestion(key.attribute, kinds) or SPELLING,
                )
            elif kinds is not None and Kind.OPAQUE in kinds[key.attribute]:
                self.problems.add(
                    f"{key.attribute} cannot be compared, so it cannot be a key",
                    span,
                    expected="an attribute that holds truth values, numbers, strings or timestamps",
                    hint="a field inside it can be a key once it is a column of its own",
                )
            elif kinds is not None:
                first = self._agreeing(first, key.attribute, kinds[key.attribute], span)

    def _keys_of(self, node: PartitionBy) -> Span:
        """The place of the keys: all behind BY."""
        by = self.problems.text.upper().rfind("BY", node.span.start, node.span.end)
        return node.span if by < 0 else Span(by + 3, node.span.end)

    def _agreeing(
        self, first: tuple[str, Kind] | None, name: str, kinds: set[Kind], span: Span
    ) -> tuple[str, Kind] | None:
        """Note it where a key cannot be equal to the first one; the first key and its kind, if known."""
        known = kinds - {Kind.NULL}
        if len(known) != 1:
            return first
        (kind,) = known
        if first is not None and kind is not first[1] and not {kind, first[1]} <= NUMBERS:
            self.problems.add(
                f"{kind.value} cannot be equal to {first[1].value}",
                span,
                expected=f"a key of the kind of {first[0]}, which is {first[1].value}",
                hint="all events of the pattern agree on one value",
            )
        return first or (name, kind)


def _all_types(pattern: Pattern) -> tuple[EventType, ...]:
    return tuple(node for node in pattern.walk() if isinstance(node, EventType))
