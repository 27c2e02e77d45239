"""Checks of filters: bound variables, existing attributes, kinds that fit, known predicates."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Final

from estero.errors import Span
from estero.language.check.inside import note_inside
from estero.language.check.kinds import COMPARABLE, KindChecker
from estero.language.check.known_types import KnownTypes, naming_the_time
from estero.language.check.problems import Problems
from estero.language.check.set_predicates import known_predicates, registered
from estero.language.tree import expressions as e
from estero.language.tree.functions import AGGREGATES, COMPARED, SCALAR_FUNCTIONS, SET_PREDICATES, SUMMED
from estero.language.tree.names import SPELLING, listed, some, suggestion
from estero.language.tree.paths import column_of, steps_of, variable_in
from estero.language.tree.pattern import EventType, Filter
from estero.language.tree.schema import Kind
from estero.language.tree.selection import DECIDED_TIME, END_TIME, START_TIME, label_types
from estero.language.tree.whole import DEADLINE, DURATION, ENDS, TIME_OF
from estero.language.tree.words import named, quoted

AT_THE_END: Final = (
    "a query whose pattern ends with NOT(…) FOR d has it, in SELECT and in a FILTER after the whole pattern"
)
"""The hint for a misplaced ``decided_time``."""


def check_filter(node: Filter, bound: tuple[str, ...], known: KnownTypes, problems: Problems) -> None:
    """Notes errors of the condition of one FILTER; `bound` are all labels of the whole pattern."""
    VariablesChecker(label_types(node.pattern), bound, known, problems).truth(node.condition)


class VariablesChecker(KindChecker):
    """A checker of the kinds in conditions on variables."""

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
        """The kind of a condition or of a value in it."""
        match node:
            case e.EventFilter(variable, predicate):
                if self._is_bound(variable, node.span):
                    KindChecker(partial(self._attribute_inside, variable), self._problems).truth(predicate)
                return Kind.BOOL
            case e.Aggregate():
                return self._aggregate(node)
            case e.Previous(operand):
                return self.kind(operand)
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

    def _attribute_of_variable(self, attribute: e.Attribute) -> Kind | None:
        if attribute.variable is None:
            self._no_variable(attribute)
            return None
        if attribute.variable in ENDS:
            return self._of_an_end(attribute)
        if not self._is_bound(attribute.variable, attribute.span):
            return None
        return self._kind_of_marked(attribute.variable, attribute.name, attribute.span)

    def _of_an_end(self, attribute: e.Attribute) -> Kind | None:
        """The kind of a time or a key of the first or last event of a complex event."""
        schema = self._known.schema
        if schema is None:
            return None
        if attribute.name == TIME_OF:
            self._problems.add(
                "the times of complex events need a time column",
                attribute.span,
                expected="a stream with a time",
                hint=naming_the_time(schema),
            )
            return None
        if attribute.name == DEADLINE:
            return None if schema.time is None else schema.column_kinds.get(schema.time)
        return schema.column_kinds.get(attribute.name)

    def _attribute_inside(self, variable: str, attribute: e.Attribute) -> Kind | None:
        """The kind of an attribute inside ``X[…]``."""
        first = variable_in(attribute.name)
        if first is None or first[0] not in self._bound:
            return self._kind_of_marked(variable, attribute.name, attribute.span)
        self._problems.add(
            f"{quoted(attribute.name)} names a variable inside {variable}[…]",
            attribute.span,
            expected=f"an attribute of the events marked {variable}",
            hint=f"leave the variable out, or write {quoted(variable)}.a outside the brackets",
        )
        return None

    def _kind_of_marked(self, variable: str, name: str, span: Span) -> Kind | None:
        """The kind of an attribute of a variable's events, if it exists with one kind in all types.

        Also None if the variable is bound outside of the filtered pattern.
        """
        types = self._types.get(variable)
        kinds = None if types is None else self._known.together(types)
        if types is None or kinds is None:
            return None
        kinds_of_name = kinds.get(name)
        if kinds_of_name is None and note_inside(name, kinds, self._known.schema, span, self._problems):
            return None
        if kinds_of_name is None:
            name = column_of(name)
            self._no_attribute(variable, types, name, span, tuple(kinds))
            return None
        if len(kinds_of_name) > 1:
            listed_kinds = listed(sorted(kind.value for kind in kinds_of_name), "and")
            self._problems.add(
                f"{named(name)} is {listed_kinds}, depending on the type",
                span,
                expected=f"an attribute of one kind in all types that {variable} marks",
                hint="mark the types with different variables",
            )
            return None
        return next(iter(kinds_of_name))

    def _no_attribute(
        self, variable: str, types: tuple[EventType, ...], name: str, span: Span, attributes: tuple[str, ...]
    ) -> None:
        names = dict.fromkeys(event_type.name for event_type in types)
        of = listed(names) if variable in names else f"{listed(names)} ({variable})"
        is_quoted = self._problems.text[span.start : span.end].startswith('"')
        hint = f"strings are written in single quotes: '{name}'" if is_quoted else SPELLING
        if not is_quoted and self._problems.text[span.start : span.end] == name:
            hint = f"{SPELLING}; a string is written '{name}'"
        if name.lower() in ("none", "nil", "nan"):
            hint = "test for a missing value with IS NULL"
        place = self._problems.inner_span(span, quoted(name))
        self._problems.no_attribute(name, attributes, place, f"{of} has no attribute {name}", hint)

    def _no_variable(self, attribute: e.Attribute) -> None:
        name, steps = named(attribute.name), steps_of(attribute.name)
        message = f"{name} has no variable in front of it"
        if steps and column_of(attribute.name) in self._bound:
            message = "the events marked with a variable are not numbered"
            hint = "first(a.price) and last(a.price) are values of one event"
        elif name in self._bound:
            message = f"{name} is a variable, and its events are not one value"
            hint = f"write {quoted(name)}[…] for a condition on them"
        elif self._problems.text[attribute.span.start : attribute.span.end].startswith('"'):
            hint = f"strings are written in single quotes: '{name}'"
        elif name == DECIDED_TIME:
            hint = AT_THE_END
        elif name in (START_TIME, END_TIME, DURATION):
            hint = "it is that of the whole complex event: write it in the FILTER after the whole pattern"
        else:
            variable = quoted(next(iter(self._types), "x"))
            inside = f"{variable}[…{quoted(attribute.name)}…]"
            hint = f"write {inside} for a condition on each event marked {variable}"
        self._problems.add(message, attribute.span, expected="X[…] or X.a with X a variable", hint=hint)

    def _is_bound(self, variable: str, span: Span) -> bool:
        if variable not in self._bound:
            start = self._problems.text.find(quoted(variable), span.start, span.end)
            place = Span(start, start + len(quoted(variable))) if start >= 0 else span
            self._problems.no_label(variable, self._bound, place)
        return variable in self._bound

    def _aggregate(self, node: e.Aggregate) -> Kind | None:
        function, variable = AGGREGATES[node.function], node.variable
        if not self._is_bound(variable, node.span) or node.operand is None:
            return function.gives
        inside = KindChecker(partial(self._attribute_inside, variable), self._problems)
        kind = inside.kind(node.operand)
        inside.as_it_comes(node.operand, kind)
        takes = COMPARED if node.distinct else function.takes
        if kind is not None and kind not in takes:
            given = str(e.with_variable(node.operand, variable))
            self._problems.add(
                f"{node.function} takes {'numbers' if takes is SUMMED else 'values that can be compared'}, "
                f"and {given} is {kind.value}",
                node.span,
                expected="integers or floats" if takes is SUMMED else COMPARABLE,
                hint=f"count({given}) takes values of any kind",
            )
            return None
        return function.gives or kind

    def _set_predicate(self, node: e.SetPredicate) -> None:
        """Notes an unknown predicate, or one with wrong arguments."""
        predicate = registered(node.name)
        if node.name in SET_PREDICATES:
            self._built_in(node)
        elif predicate is None:
            known = known_predicates()
            self._problems.add(
                f"unknown predicate {node.name}",
                self._name_of(node),
                expected=some(known),
                hint=suggestion(node.name, (*known, *AGGREGATES, *SCALAR_FUNCTIONS))
                or f"to define it, write @estero.predicate above def {node.name}(…)",
            )
        elif not predicate.takes(len(node.arguments)):
            self._problems.add(
                f"{node.name} takes {predicate.arguments}, not {len(node.arguments)}",
                node.span,
                expected=f"{node.name}{predicate.signature}",
                hint="X, X.a or a constant is one argument each",
            )
        elif all(isinstance(argument, e.Literal) for argument in node.arguments):
            self._problems.add(
                f"{node.name} refers to no variable",
                node.span,
                expected=f"{node.name}(X) or {node.name}(X.a)",
                hint="name at least one variable: without one it says the same of all complex events",
            )

    def _name_of(self, node: e.SetPredicate) -> Span:
        """The span of the name of a predicate in the text."""
        text = self._problems.text[node.span.start : node.span.end]
        return Span(node.span.start, node.span.start + len(text.partition("(")[0].rstrip()))

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
