"""The check of a query against the schema: all its errors at once, in order of place.

`check_query` gathers the errors that the checks note: of the pattern's shape and types (here), the filters
(filters.py), the scopes of their variables (scopes.py), the keys (keys.py), and the clauses (clauses.py).
Without a schema, checks that need one are omitted.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from estero.errors import QueryError
from estero.language.check.absences import check_absences
from estero.language.check.clauses import check_clauses
from estero.language.check.filters import check_filter
from estero.language.check.keys import check_keys
from estero.language.check.known_types import KnownTypes
from estero.language.check.problems import Problems
from estero.language.check.scopes import check_scopes
from estero.language.check.steps import check_steps
from estero.language.check.ticks import in_ticks, select_in_ticks
from estero.language.syntax.parser import parse_query
from estero.language.tree import pattern as p
from estero.language.tree.names import listed, suggestion
from estero.language.tree.parameters import opened
from estero.language.tree.query import QueryTree
from estero.language.tree.schema import Schema
from estero.language.tree.selection import bound_names, label_types, paths_read
from estero.language.tree.whole import with_whole
from estero.language.tree.words import quoted


def check_query(tree: QueryTree, schema: Schema | None = None) -> list[QueryError]:
    """The errors of a query, in order of place; an empty list if there are none.

    A tree without a text is checked as its canonical text, so that every error has a place.

    >>> from estero.language.syntax.parser import parse_query
    >>> [error.message for error in check_query(parse_query("SELECT x WHERE a AS y WITHIN 0 EVENTS"))]
    ['no event is marked x', 'a window must be longer than 0 events']
    """
    if not tree.text:
        try:
            tree = parse_query(str(tree))
        except QueryError as error:
            return [error]
    schema = None if schema is None else schema.reading(paths_read(tree))
    tree = with_whole(tree, None if schema is None else schema.time)
    tree = replace(tree, pattern=in_ticks(tree.pattern, schema), select=select_in_ticks(tree, schema))
    problems = Problems(tree.text)
    known = KnownTypes(schema, tree.streams)
    _PatternCheck(tree, known, problems).run()
    check_clauses(tree, known, problems)
    check_steps(tree.pattern, schema, problems)
    check_absences(tree, schema, problems)
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
            if isinstance(node, p.Sequence)
            for part in node.parts
            if isinstance(part, p.Optional)
        }
        for node in self.tree.pattern.walk():
            match node:
                case p.EventType():
                    self._event_type(node)
                case p.Filter():
                    check_filter(node, bound, self.known, self.problems)
                case p.Iteration():
                    self._iteration(node)
                case p.Sequence():
                    self._sequence(node)
                case p.Optional() if id(node) not in allowed_optionals:
                    self._lonely_optional(node)
                case p.Keep() | p.Rename():
                    self._labels(node)
                case p.PartitionBy():
                    check_keys(node, self.known, self.problems)
                case _:
                    pass

    def _event_type(self, node: p.EventType) -> None:
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

    def _iteration(self, node: p.Iteration) -> None:
        text = self.problems.text
        brace = text.rfind("{", node.span.start, node.span.end)
        span = node.span if brace < 0 else type(node.span)(brace, node.span.end)
        if node.minimum < 1:
            self.problems.add(
                "a repetition happens at least once",
                span,
                expected="{n,m} with m from 1",
                hint="without it the pattern says the same",
            )
        elif node.maximum is not None and node.maximum < node.minimum and not any(opened(node)):
            self.problems.add(
                "the bounds of this repetition are reversed",
                span,
                expected="the smaller number first",
                hint=f"{{{node.maximum},{node.minimum}}}",
            )

    def _sequence(self, node: p.Sequence) -> None:
        if all(isinstance(part, p.Optional) for part in node.parts):
            self.problems.add(
                "every part of this sequence may be missing",
                node.span,
                expected="at least one part without ?",
                hint="remove the ? from a part that must happen",
            )
        for index, part in enumerate(node.parts):
            around: list[p.Link] = [*node.links[max(0, index - 1) : index], *node.links[index : index + 1]]
            if isinstance(part, p.Optional) and any(link.absent or link.lacking for link in around):
                self.problems.add(
                    "a part next to NOT(…) cannot be optional",
                    part.span,
                    expected="a part without ?",
                    hint="write both cases, joined by OR",
                )

    def _lonely_optional(self, node: p.Optional) -> None:
        self.problems.add(
            "an optional pattern must be part of a sequence",
            node.span,
            expected="φ? between ; or :",
            hint="a+ is one or more; ? and * go at the end of a part: a ; (b FILTER …)? ; c",
        )

    def _labels(self, node: p.Keep | p.Rename) -> None:
        types = label_types(node.pattern)
        for label in node.labels if isinstance(node, p.Keep) else (node.old,):
            if label not in types:
                place = self.problems.inner_span(node.span, quoted(label))
                self.problems.no_label(label, types, place, f"bind it inside with AS {quoted(label)}")
