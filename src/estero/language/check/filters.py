"""Filters: variables that are bound, attributes that exist, kinds that fit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from estero.errors import Span
from estero.language.check.kinds import NUMBERS, KindChecker
from estero.language.check.labels import KnownTypes
from estero.language.check.predicate_arguments import check_set_predicate
from estero.language.check.problems import Problems
from estero.language.check.set_predicates import registered
from estero.language.tree.expressions import (
    Aggregate,
    Attribute,
    EventFilter,
    Node,
    SetPredicate,
    VariableReference,
)
from estero.language.tree.names import SPELLING, listed, some, suggestion
from estero.language.tree.pattern import EventType, Filter
from estero.language.tree.schema import Kind
from estero.language.tree.selection import label_types
from estero.language.tree.words import SET_PREDICATES, quoted


def check_filter(node: Filter, bound: tuple[str, ...], known: KnownTypes, problems: Problems) -> None:
    """Note what is wrong with the condition of one FILTER; `bound` are all labels of the whole pattern."""
    _FilterCheck(label_types(node.pattern), bound, known, problems).truth(node.condition)


class _FilterCheck(KindChecker):
    """Kinds of conditions that speak of variables."""

    def __init__(
        self,
        types: Mapping[str, tuple[EventType, ...]],
        bound: tuple[str, ...],
        known: KnownTypes,
        problems: Problems,
    ) -> None:
        super().__init__(self._attribute_of_variable, problems)
        self._types = types
        self._bound = bound
        self._known = known
        self._problems = problems

    def kind(self, node: Node) -> Kind | None:
        match node:
            case EventFilter(variable, predicate):
                if self._is_bound(variable, node.span):
                    marked = _MarkedBy(variable, self._types.get(variable), self._known, self._problems)
                    KindChecker(marked.look_up, self._problems).truth(predicate)
                return Kind.BOOL
            case Aggregate():
                return self._aggregate(node)
            case SetPredicate():
                self._set_predicate(node)
                is_known = node.name in SET_PREDICATES or registered(node.name) is not None
                return Kind.BOOL if is_known else None
            case _:
                return super().kind(node)

    def _attribute_of_variable(self, attribute: Attribute) -> Kind | None:
        if attribute.variable is None:
            self._no_variable(attribute)
            return None
        if not self._is_bound(attribute.variable, attribute.span):
            return None
        marked = _MarkedBy(
            attribute.variable, self._types.get(attribute.variable), self._known, self._problems
        )
        return marked.kind(attribute.name, attribute.span)

    def _no_variable(self, attribute: Attribute) -> None:
        name = attribute.name
        if name in self._bound:
            message = f"{name} is a variable, and its events are not a value"
            hint = f"write {quoted(name)}[…] for a condition on them"
        elif self._problems.text[attribute.span.start : attribute.span.end].startswith('"'):
            message = f"{name} has no variable in front of it"
            hint = f"single quotes make a string: '{name}'"
        else:
            message = f"{name} has no variable in front of it"
            variable = quoted(next(iter(self._types), "x"))
            hint = f"write {variable}[…{quoted(name)}…] for a condition on each event marked {variable}"
        self._problems.add(message, attribute.span, expected="X[…] or X.a with X a variable", hint=hint)

    def _is_bound(self, variable: str, span: Span) -> bool:
        if variable in self._bound:
            return True
        start = self._problems.text.find(quoted(variable), span.start, span.end)
        place = Span(start, start + len(quoted(variable))) if start >= 0 else span
        self._problems.add(
            f"no event is marked {variable}",
            place,
            expected=some(self._bound) or "no label at all",
            hint=suggestion(variable, self._bound) or f"bind it in the pattern with AS {quoted(variable)}",
        )
        return False

    def _aggregate(self, node: Aggregate) -> Kind | None:
        if not self._is_bound(node.variable, node.span) or node.attribute is None:
            return Kind.INT if node.function == "count" else None
        marked = _MarkedBy(node.variable, self._types.get(node.variable), self._known, self._problems)
        kind = marked.kind(node.attribute, node.span)
        if node.function == "count":
            return Kind.INT
        if node.function in ("sum", "avg", "stddev"):
            if kind is not None and kind not in NUMBERS:
                self._problems.add(
                    f"{node.function} takes numbers, and {node.variable}.{node.attribute} is {kind.value}",
                    node.span,
                    expected="an attribute with integers or floats",
                    hint=f"count({quoted(node.variable)}.{quoted(node.attribute)}) takes values of any kind",
                )
                return None
            return kind if node.function == "sum" else Kind.FLOAT
        return kind

    def _set_predicate(self, node: SetPredicate) -> None:
        check_set_predicate(node, self.kind, self._problems)
        for argument in node.arguments:
            if isinstance(argument, VariableReference):
                self._is_bound(argument.variable, argument.span)
            else:
                self.kind(argument)

    def _refuse_filter(self, node: Node) -> None:
        raise TypeError(f"{type(node).__name__} belongs into a filter")


@dataclass(frozen=True, slots=True)
class _MarkedBy:
    """The events that one variable marks; `types` None: it is bound outside of the filtered pattern."""

    variable: str
    types: tuple[EventType, ...] | None
    known: KnownTypes
    problems: Problems

    def look_up(self, attribute: Attribute) -> Kind | None:
        """The kind of an attribute inside ``X[…]``."""
        if attribute.variable is not None:
            self.problems.add(
                f"{attribute.variable}.{attribute.name} speaks of a variable inside {self.variable}[…]",
                attribute.span,
                expected=f"an attribute of the events marked {self.variable}",
                hint=f"leave the variable out, or write {quoted(self.variable)}.a outside the brackets",
            )
            return None
        return self.kind(attribute.name, attribute.span)

    def kind(self, name: str, span: Span) -> Kind | None:
        """The kind of an attribute, if it exists and all types that have it agree."""
        kinds = self.known.together(self.types) if self.types is not None else None
        if kinds is None:
            return None
        found = kinds.get(name)
        if found is None:
            self._unknown(name, span, tuple(kinds))
            return None
        if len(found) > 1:
            self.problems.add(
                f"{name} is {listed(sorted(kind.value for kind in found), 'and')}, depending on the type",
                span,
                expected=f"an attribute of one kind in all types that {self.variable} marks",
                hint="mark the types with different variables",
            )
            return None
        return next(iter(found))

    def _unknown(self, name: str, span: Span, attributes: tuple[str, ...]) -> None:
        types = listed(tuple(dict.fromkeys(each.name for each in self.types or ())))
        of = types if self.variable in types.split(", ") else f"{types} ({self.variable})"
        quotes = self.problems.text[span.start : span.end].startswith('"')
        hint = suggestion(name, attributes)
        if quotes and not hint:
            hint = f"single quotes make a string: '{name}'"
        if name.lower() in ("none", "nil", "nan"):
            hint = "a value that is missing is asked for with IS NULL"
        self.problems.add(
            f"{of} has no attribute {name}",
            self.problems.inner_span(span, quoted(name)),
            expected=some(attributes) or "no attribute at all",
            hint=hint or SPELLING,
        )
