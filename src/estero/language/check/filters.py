"""Filters: variables that are bound, attributes that exist, kinds that fit, predicates that are known."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from estero.errors import Span
from estero.language.check.kinds import NUMBERS, KindChecker
from estero.language.check.known_types import KnownTypes
from estero.language.check.problems import Problems
from estero.language.check.set_predicates import known_predicates, registered
from estero.language.tree import expressions as e
from estero.language.tree.names import SPELLING, listed, some, suggestion
from estero.language.tree.pattern import EventType, Filter
from estero.language.tree.schema import Kind
from estero.language.tree.selection import label_types
from estero.language.tree.words import AGGREGATES, SCALAR_FUNCTIONS, SET_PREDICATES, quoted


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

    def kind(self, node: e.Node) -> Kind | None:
        match node:
            case e.EventFilter(variable, predicate):
                if self._is_bound(variable, node.span):
                    KindChecker(self._marked_by(variable).look_up, self._problems).truth(predicate)
                return Kind.BOOL
            case e.Aggregate():
                return self._aggregate(node)
            case e.SetPredicate():
                self._set_predicate(node)
                for argument in node.arguments:
                    if isinstance(argument, e.VariableReference):
                        self._is_bound(argument.variable, argument.span)
                    else:
                        self.kind(argument)
                is_known = node.name in SET_PREDICATES or registered(node.name) is not None
                return Kind.BOOL if is_known else None
            case _:
                return super().kind(node)

    def _marked_by(self, variable: str) -> _MarkedBy:
        return _MarkedBy(variable, self._types.get(variable), self._known, self._problems)

    def _attribute_of_variable(self, attribute: e.Attribute) -> Kind | None:
        if attribute.variable is None:
            self._no_variable(attribute)
            return None
        if not self._is_bound(attribute.variable, attribute.span):
            return None
        return self._marked_by(attribute.variable).kind(attribute.name, attribute.span)

    def _no_variable(self, attribute: e.Attribute) -> None:
        name = attribute.name
        message = f"{name} has no variable in front of it"
        if name in self._bound:
            message = f"{name} is a variable, and its events are not one value"
            hint = f"write {quoted(name)}[…] for a condition on them"
        elif self._problems.text[attribute.span.start : attribute.span.end].startswith('"'):
            hint = f"strings are written in single quotes: '{name}'"
        else:
            variable = quoted(next(iter(self._types), "x"))
            hint = f"write {variable}[…{quoted(name)}…] for a condition on each event marked {variable}"
        self._problems.add(message, attribute.span, expected="X[…] or X.a with X a variable", hint=hint)

    def _is_bound(self, variable: str, span: Span) -> bool:
        if variable not in self._bound:
            start = self._problems.text.find(quoted(variable), span.start, span.end)
            place = Span(start, start + len(quoted(variable))) if start >= 0 else span
            self._problems.no_label(variable, self._bound, place)
        return variable in self._bound

    def _aggregate(self, node: e.Aggregate) -> Kind | None:
        if not self._is_bound(node.variable, node.span) or node.attribute is None:
            return Kind.INT if node.function == "count" else None
        kind = self._marked_by(node.variable).kind(node.attribute, node.span)
        if node.function == "count":
            return Kind.INT
        if node.function not in ("sum", "avg", "stddev"):
            return kind
        if kind is not None and kind not in NUMBERS:
            self._problems.add(
                f"{node.function} takes numbers, and {node.variable}.{node.attribute} is {kind.value}",
                node.span,
                expected="an attribute with integers or floats",
                hint=f"count({quoted(node.variable)}.{quoted(node.attribute)}) takes values of any kind",
            )
            return None
        return kind if node.function == "sum" else Kind.FLOAT

    def _set_predicate(self, node: e.SetPredicate) -> None:
        """Note it where a predicate is not known, or does not take these arguments."""
        predicate = registered(node.name)
        if node.name in SET_PREDICATES:
            self._built_in(node)
        elif predicate is None:
            text = self._problems.text[node.span.start : node.span.end]
            length = len(text.partition("(")[0].rstrip())
            known = known_predicates()
            self._problems.add(
                f"there is no predicate {node.name}",
                Span(node.span.start, node.span.start + length),
                expected=some(known),
                hint=suggestion(node.name, (*known, *AGGREGATES, *SCALAR_FUNCTIONS))
                or f"make a function one: @estero.predicate above def {node.name}(…)",
            )
        elif not predicate.takes(len(node.arguments)):
            self._problems.add(
                f"{node.name} takes {predicate.arguments}, not {len(node.arguments)}",
                node.span,
                expected=f"{node.name}{predicate.signature}",
                hint="each of X, X.a and constants is one argument",
            )
        elif all(isinstance(each, e.Literal) for each in node.arguments):
            self._problems.add(
                f"{node.name} is not about any variable",
                node.span,
                expected=f"{node.name}(X) or {node.name}(X.a)",
                hint="name at least one variable: without one it says the same of all complex events",
            )

    def _built_in(self, node: e.SetPredicate) -> None:
        match node.arguments:
            case (e.Attribute(_, str()) as attribute,):
                self.not_opaque(attribute, self.kind(attribute))
            case (e.VariableReference(variable),):
                self._problems.add(
                    f"{node.name} takes values, and {variable} is a variable",
                    node.span,
                    expected=f"{node.name}(X.a)",
                    hint=f"name the attribute: {node.name}({quoted(variable)}.…)",
                )
            case _:
                self._problems.add(
                    f"{node.name} takes one attribute of a variable",
                    node.span,
                    expected=f"{node.name}(X.a)",
                    hint="join several by AND",
                )


@dataclass(frozen=True, slots=True)
class _MarkedBy:
    """The events that one variable marks; `types` None: it is bound outside of the filtered pattern."""

    variable: str
    types: tuple[EventType, ...] | None
    known: KnownTypes
    problems: Problems

    def look_up(self, attribute: e.Attribute) -> Kind | None:
        """The kind of an attribute inside ``X[…]``."""
        if attribute.variable is not None:
            self.problems.add(
                f"{attribute.variable}.{attribute.name} names a variable inside {self.variable}[…]",
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
        is_quoted = self.problems.text[span.start : span.end].startswith('"')
        hint = f"strings are written in single quotes: '{name}'" if is_quoted else SPELLING
        if name.lower() in ("none", "nil", "nan"):
            hint = "test for a missing value with IS NULL"
        self.problems.no_attribute(
            name,
            attributes,
            self.problems.inner_span(span, quoted(name)),
            f"{of} has no attribute {name}",
            hint,
        )
