"""Checks of the list of SELECT: labels with their attributes, and named expressions."""

from __future__ import annotations

from collections.abc import Mapping

from estero.errors import Span
from estero.language.check.filters import AT_THE_END, VariablesChecker
from estero.language.check.inside import note_inside
from estero.language.check.known_types import KnownTypes, naming_the_time
from estero.language.check.problems import Problems
from estero.language.check.set_predicates import known_predicates
from estero.language.tree import expressions as e
from estero.language.tree import query as q
from estero.language.tree.functions import AGGREGATES, SCALAR_FUNCTIONS
from estero.language.tree.marks import marks_of
from estero.language.tree.names import listed, some, suggestion
from estero.language.tree.paths import column_of
from estero.language.tree.pattern import EventType
from estero.language.tree.schema import Kind
from estero.language.tree.selection import DECIDED_TIME, FIXED, label_types, times_of
from estero.language.tree.whole import DURATION
from estero.language.tree.words import named, quoted

Types = Mapping[str, tuple[EventType, ...]]


def check_selected(tree: q.QueryTree, known: KnownTypes, problems: Problems) -> None:
    """Notes errors of the list of SELECT."""
    types = label_types(tree.pattern)
    names: set[str] = set()
    for item in tree.select or ():
        match item:
            case q.SelectItem():
                _check_item(item, tree, types, known, problems)
            case q.SelectExpression():
                _check_name(item, tree, types, names, problems)
                _SelectChecker(tree, types, known, problems).of_a_column(item.expression)
            case q.EveryLabel():
                pass


def _check_item(
    item: q.SelectItem,
    tree: q.QueryTree,
    types: dict[str, tuple[EventType, ...]],
    known: KnownTypes,
    problems: Problems,
) -> None:
    if item.label not in types:
        place = Span(item.span.start, min(item.span.end, item.span.start + len(quoted(item.label))))
        strategy = item.label.upper() if item.label.upper() in q.Strategy.__members__ else ""
        before = f"a strategy comes before what is shown: SELECT {strategy} *" if strategy else ""
        if hint := _of_the_whole(item.label, tree):
            problems.add(f"no event is marked {item.label}", place, expected=some(tuple(types)), hint=hint)
        else:
            problems.no_label(item.label, types, place, before)
        return
    kinds = known.together(types[item.label])
    for attribute in item.attributes or ():
        missing = kinds is not None and attribute not in kinds
        if missing and not note_inside(attribute, kinds or {}, known.schema, item.span, problems):
            name = column_of(attribute)
            message = f"the events marked {item.label} have no attribute {name}"
            problems.no_attribute(name, kinds or {}, problems.inner_span(item.span, quoted(name)), message)


def _of_the_whole(name: str, tree: q.QueryTree) -> str:
    """The hint for a value of the complex event in place of a label; empty for other names."""
    shown = quoted(name)
    if name in times_of(tree):
        return f"every answer with a time has a column {shown}: leave it out"
    if name == DURATION:
        return "name it: duration AS lasted"
    if name == DECIDED_TIME:
        return AT_THE_END
    if any(name in bracket.alternatives for bracket in tree.partition_by):
        return f"a key is always shown: leave it out (or show it again: {shown} AS {quoted(f'{name}_shown')})"
    return ""


def _check_name(
    item: q.SelectExpression, tree: q.QueryTree, types: Types, names: set[str], problems: Problems
) -> None:
    """Notes an expression with the name of another column, and adds its name to `names`."""
    name = item.name
    keys = [named(bracket.alternatives[0]) for bracket in tree.partition_by]
    what = (
        "every answer has a column"
        if name in FIXED
        else "a key of the partition is shown as"
        if name in keys
        else "a label of the pattern is called"
        if name in types
        else "another expression is called"
        if name in names
        else ""
    )
    names.add(name)
    if what:
        problems.add(
            f"{what} {name}",
            problems.inner_span(item.span, quoted(name)),
            expected="another name after AS",
            hint=f"for example {quoted(f'{name}_shown')}",
        )


class _SelectChecker(VariablesChecker):
    """Kinds of expressions over complex events."""

    def __init__(self, tree: q.QueryTree, types: Types, known: KnownTypes, problems: Problems) -> None:
        super().__init__(types, tuple(types), known, problems)
        self._tree = tree

    def of_a_column(self, expression: e.Node) -> None:
        """Notes errors of the expression of a column."""
        self.as_it_comes(expression, self.kind(expression))
        if expression == e.Literal(None):
            self._problems.add(
                "NULL has no kind of its own",
                expression.span,
                expected="a value, or CAST(NULL AS INTEGER)",
                hint="leave the column out",
            )

    def kind(self, node: e.Node) -> Kind | None:
        if isinstance(node, e.SetPredicate) and node.name not in known_predicates():
            self._problems.add(
                f"unknown function {node.name}",
                self._name_of(node),
                expected=some((*AGGREGATES, *SCALAR_FUNCTIONS), 5),
                hint=suggestion(node.name, (*AGGREGATES, *SCALAR_FUNCTIONS))
                or "for anything else, SELECT the values and compute it from the answer",
            )
            return None
        if isinstance(node, e.EventFilter | e.SetPredicate | e.Previous):
            self._problems.add(
                "prev(…) is for conditions only"
                if isinstance(node, e.Previous)
                else "a condition on sets of events is not a value",
                node.span,
                expected="aggregates such as count(X), attributes X.a, constants and operators",
                hint="conditions go in FILTER",
            )
            return None
        return super().kind(node)

    def _attribute_of_variable(self, attribute: e.Attribute) -> Kind | None:
        if attribute.variable is None:
            return self._kind_of_column(attribute)
        kind = super()._attribute_of_variable(attribute)
        variable = attribute.variable
        if variable in self._types and marks_of(self._tree.pattern, variable).most > 1:
            functions = [f"{name}({attribute})" for name in ("first", "last", "list")]
            self._problems.add(
                f"{variable} can mark several events, so {attribute} is not one value",
                attribute.span,
                expected=listed(functions),
                hint="first and last are of one event, list has all; sum, avg, min and max put them together",
            )
        return kind

    def _kind_of_column(self, attribute: e.Attribute) -> Kind | None:
        """The kind of a column of the answer that an expression may name."""
        name, schema = attribute.name, self._known.schema
        keys = {alternative for bracket in self._tree.partition_by for alternative in bracket.alternatives}
        times = (*times_of(self._tree), DURATION)
        is_time = name in times
        if name in keys and not is_time:
            kinds = set() if schema is None else {self._kind_of_key(name)}
            return next(iter(kinds - {None}), None)
        if is_time:
            if schema is not None and schema.time is None:
                self._problems.add(
                    f"{name} needs a time column",
                    attribute.span,
                    expected="a stream with a time",
                    hint=naming_the_time(schema),
                )
                return None
            time = None if schema is None or schema.time is None else schema.column_kinds.get(schema.time)
            return Kind.DURATION if name == DURATION and time is Kind.TIMESTAMP else time
        selectable = (*times, *sorted(map(named, keys)))
        hint = AT_THE_END if name == DECIDED_TIME else suggestion(name, selectable)
        if name in self._types:
            hint = f"a label is named in the pattern, by WHERE … AS; count({quoted(name)}) counts its events"
        variable = next(iter(self._types), "x")
        self._problems.add(
            f"{named(name)} is not a column of the answer",
            attribute.span,
            expected=f"{some(selectable)}, or X.a with X a label",
            hint=hint or f"an attribute of the event marked {variable} is {quoted(variable)}.{quoted(name)}",
        )
        return None

    def _kind_of_key(self, name: str) -> Kind | None:
        """The kind of a key; None if its alternatives differ."""
        schema = self._known.schema
        names = next(
            bracket.alternatives for bracket in self._tree.partition_by if name in bracket.alternatives
        )
        kinds = (
            {schema.column_kinds.get(alternative) for alternative in names} if schema is not None else set()
        )
        return kinds.pop() if len(kinds) == 1 else None
