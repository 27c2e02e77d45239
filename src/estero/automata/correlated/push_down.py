"""Which residual filters a run checks as it goes, by registers, and why the others stay residual.

A comparison of two variables holds for all pairs of their events. Whichever event of a pair comes first
leaves its value in a register, the largest, the smallest or the only one so far, and the other is checked
against it. A pair that violates the filter ends the run at once.

Where a place of the pattern has several instances, a register is unset where an instance begins. If one
variable is bound around that place, all instances inside one binding are compared with the same events,
so the registers of both last as long as the binding.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from estero.automata.cea import CEA, FIRST, Transition
from estero.automata.registers import Action, RegisterProgram, Step, Value
from estero.automata.residual import ALL_MARKED, Agreement, Hidden, Key, Residual, carries
from estero.language.check.kinds import kind_of
from estero.language.tree.expressions import (
    Aggregate,
    Arithmetic,
    Attribute,
    Call,
    Comparison,
    ComparisonOperator,
    Literal,
    Negative,
    Node,
    SetPredicate,
    without_variable,
)
from estero.language.tree.schema import Kind, Schema

_STORE: Mapping[ComparisonOperator, Action] = {
    "<": Action.STORE_LARGEST,
    "<=": Action.STORE_LARGEST,
    ">": Action.STORE_SMALLEST,
    ">=": Action.STORE_SMALLEST,
    "=": Action.STORE_SAME,
    "!=": Action.STORE,
}
"""What the first event of a pair leaves, in ``first op second``."""
_CHECK: Mapping[ComparisonOperator, Action] = {
    "<": Action.GREATER,
    "<=": Action.GREATER_OR_EQUAL,
    ">": Action.LESS,
    ">=": Action.LESS_OR_EQUAL,
    "=": Action.EQUAL,
    "!=": Action.NOT_EQUAL,
}
"""How the second event is checked against it."""
_MIRRORED: Mapping[ComparisonOperator, ComparisonOperator] = {
    "=": "=",
    "!=": "!=",
    "<": ">",
    "<=": ">=",
    ">": "<",
    ">=": "<=",
}
_IN_ORDER: Mapping[str, Action] = {"increasing": Action.GREATER, "decreasing": Action.LESS}
_COMPARED = frozenset({Kind.BOOL, Kind.INT, Kind.FLOAT, Kind.TIMESTAMP})


class PushedDown(NamedTuple):
    """The registers (None: there is no use for them), what stays residual, and why it does."""

    program: RegisterProgram | None
    residuals: tuple[Residual, ...]
    reasons: Mapping[Residual, str]


def push_down(residuals: Sequence[Residual], automaton: CEA, schema: Schema) -> PushedDown:
    """The residual filters of `automaton` as registers, where registers can say exactly the same.

    The runs that pass all checks of the program are those whose marks satisfy all `residuals` that are
    not returned. Set predicates called ``increasing`` and ``decreasing`` are taken for the built-in ones.
    """
    decide = Decision(automaton, schema)
    drafts: list[Draft] = []
    reasons: dict[Residual, str] = {}
    for residual in residuals:
        found = decide.drafts(residual)
        if isinstance(found, str):
            reasons[residual] = found
        else:
            drafts += found
    left = tuple(residual for residual in residuals if residual in reasons)
    return PushedDown(_program(drafts, automaton) if drafts else None, left, reasons)


Use = tuple[Key, Action, Value]


@dataclass(frozen=True, slots=True)
class Draft:
    """One register: unset by the label `scope`, and what stores into it and checks it."""

    scope: Hidden | None
    stores: tuple[Use, ...]
    checks: tuple[Use, ...]


def _program(drafts: Iterable[Draft], automaton: CEA) -> RegisterProgram:
    """The drafts with numbers; registers into which the same is stored are one."""
    begun = {label for transition in automaton.transitions for label in transition.hidden}
    registers: dict[tuple[Hidden | None, tuple[Use, ...]], int] = {}
    values: dict[Value, int] = {}
    steps: dict[Step, None] = {}
    for draft in drafts:
        register = registers.setdefault((draft.scope, draft.stores), len(registers))
        if draft.scope is not None and draft.scope in begun:
            steps[Step(draft.scope, Action.RESET, register, 0)] = None
        for key, action, value in (*draft.checks, *draft.stores):
            number = values.setdefault(value, len(values))
            steps[Step(key, action, 0 if action == Action.NOT_NULL else register, number)] = None
    return RegisterProgram(len(registers), tuple(values), tuple(steps))


@dataclass(frozen=True, slots=True)
class _Side:
    """One side of a comparison: an expression over the events of one variable."""

    key: Key
    expression: Node
    kind: Kind


class Decision:
    """Turns residuals into drafts, or says in a phrase why not.

    `strings_differ` where ``!=`` of strings can be told by their hashes, both at once; one register cannot.
    """

    def __init__(self, automaton: CEA, schema: Schema, *, strings_differ: bool = False) -> None:
        self._automaton = automaton
        self._schema = schema
        self._strings_differ = strings_differ
        self._leaving: list[list[Transition]] = [[] for _ in range(automaton.states)]
        for transition in automaton.transitions:
            self._leaving[transition.source].append(transition)

    def drafts(self, residual: Residual) -> list[Draft] | str:
        """What to do about it, or why it stays residual."""
        if residual.refuted:
            return "it must fail, which is known when all its events are there"
        match residual.condition:
            case Comparison():
                return self._comparison(residual, residual.condition)
            case Agreement():
                return self._agreement(residual, residual.condition)
            case SetPredicate(name, (Attribute(_, str()) as argument,)) if name in _IN_ORDER:
                return self._in_order(residual, argument, _IN_ORDER[name])
            case SetPredicate():
                return "a set predicate needs all its events at once"
            case _:
                return "it is more than a comparison of two variables"

    # ------------------------------------------------------------------------------ comparisons

    def _comparison(self, residual: Residual, comparison: Comparison) -> list[Draft] | str:
        left, right = (self._side(residual, each) for each in (comparison.left, comparison.right))
        if isinstance(left, str) or isinstance(right, str):
            return left if isinstance(left, str) else str(right)
        operator = comparison.operator
        unfit = _why_not_compared(left.kind, operator, right.kind)
        if self._strings_differ and operator == "!=" and left.kind is right.kind is Kind.STRING:
            unfit = ""
        scope = self._scope(residual, [left.key, right.key])
        if unfit or isinstance(scope, str):
            return unfit or str(scope)
        if self._on_one_event(left.key, right.key):
            return "one event can carry both variables"
        found: list[Draft] = []
        for first, operator_, second in ((left, operator, right), (right, _MIRRORED[operator], left)):
            if not self._follows([first.key, second.key], scope):
                continue
            if operator_ == "!=" and self._follows([first.key, first.key, second.key], scope):
                return "values that must differ from several others are more than a register holds"
            found += self._directed(first, operator_, second, scope)
        return found

    def _directed(
        self, first: _Side, operator: ComparisonOperator, second: _Side, scope: Hidden | None
    ) -> list[Draft]:
        """The registers for pairs of which `first` comes first."""
        numbers = (0, 1) if first.kind is Kind.STRING else (None,)
        return [
            Draft(
                scope,
                ((first.key, _STORE[operator], self._value(first, hashed)),),
                ((second.key, _CHECK[operator], self._value(second, hashed)),),
            )
            for hashed in numbers
        ]

    def _side(self, residual: Residual, expression: Node) -> _Side | str:
        nodes = list(expression.walk())
        if any(isinstance(node, Aggregate) for node in nodes):
            return "an aggregate is known when all its events are there"
        attributes = [node for node in nodes if isinstance(node, Attribute)]
        variables = {node.variable for node in attributes if node.variable is not None}
        if len(variables) != 1:
            return "arithmetic over two variables in one side" if variables else "one side is a constant"
        kinds = {node.name: self._kind(node.name) for node in attributes}
        for name, kind in kinds.items():
            if kind is None:
                return f"the kind of {name} is not known"
        known = {name: kind for name, kind in kinds.items() if kind is not None}
        if any(_may_overflow(node, known) for node in nodes):
            return "arithmetic on integers may overflow, which is an error for marked events only"
        kind = kind_of(without_variable(expression), known)
        key = self._key(residual, variables.pop())
        if kind is None or not self._types(key):
            return "one side is always NULL" if kind is None else "its events can be of any type"
        return _Side(key, expression, kind)

    # -------------------------------------------------------------------------------------- sets

    def _in_order(self, residual: Residual, argument: Attribute, check: Action) -> list[Draft] | str:
        side = self._side(residual, argument)
        if isinstance(side, str):
            return side
        scope = self._scope(residual, [side.key])
        if isinstance(scope, str):
            return scope
        if side.kind not in _COMPARED:
            return _ORDER_OF_STRINGS
        value = self._value(side, None)
        return [Draft(scope, ((side.key, Action.STORE, value),), ((side.key, check, value),))]

    def _agreement(self, residual: Residual, agreement: Agreement) -> list[Draft] | str:
        if sum(key.variable is None for key in agreement.keys) > 1:
            return "a key is the first of several attributes that an event has"
        sides: list[_Side] = []
        for each in agreement.keys:
            attribute = Attribute(each.attribute, each.variable or ALL_MARKED)
            side = self._side(residual, attribute)
            if isinstance(side, str):
                return side
            sides.append(side)
        scope = self._scope(residual, [side.key for side in sides])
        if isinstance(scope, str):
            return scope
        if len({side.kind for side in sides}) > 1:
            return _MIXED_NUMBERS
        if not {side.kind for side in sides} <= _COMPARED | {Kind.STRING}:
            return "its values cannot be compared"
        for place, side in enumerate(sides):
            for other in sides[place + 1 :]:
                same = without_variable(side.expression) == without_variable(other.expression)
                if not same and self._on_one_event(side.key, other.key):
                    return "one event can have two of the keys"
        return [
            self._same(sides, scope, hashed)
            for hashed in ((0, 1) if sides[0].kind is Kind.STRING else (None,))
        ]

    def _same(self, sides: Sequence[_Side], scope: Hidden | None, hashed: int | None) -> Draft:
        values = [(side.key, self._value(side, hashed)) for side in sides]
        stores = tuple((key, Action.STORE_SAME, value) for key, value in values)
        checks = [(key, action, value) for key, value in values for action in (Action.NOT_NULL, Action.EQUAL)]
        return Draft(scope, stores, tuple(checks))

    # ---------------------------------------------------------------------- keys, places, order

    def _key(self, residual: Residual, variable: str) -> Key:
        return dict(residual.bindings)[variable]

    def _scope(self, residual: Residual, keys: Sequence[Key]) -> Hidden | str | None:
        """What begins the instance inside which all events are compared; None for the complex event."""
        if residual.place is None:
            return None
        around = {key for key in keys if not (isinstance(key, Hidden) and key.place == residual.place)}
        if len(around) == len(set(keys)):
            return "its variables are all bound around the place of the filter"
        outer = {key.place if isinstance(key, Hidden) else None for key in around}
        if len(outer) > 1:
            return "its variables are bound at several places"
        place = outer.pop() if outer else residual.place
        return None if place is None else Hidden(place)

    def _on_one_event(self, one: Key, other: Key) -> bool:
        return any(_has(each, one) and _has(each, other) for each in self._automaton.transitions)

    def _follows(self, keys: Sequence[Key], scope: Hidden | None) -> bool:
        """Whether events with these keys can follow one another in a run, inside one `scope`."""
        first, *others = keys
        reached = {each.target for each in self._automaton.transitions if _has(each, first)}
        for key in others:
            steps = self._steps_from(reached, scope)
            reached = {each.target for each in steps if _has(each, key)}
        return bool(reached)

    def _steps_from(self, states: Iterable[int], scope: Hidden | None) -> list[Transition]:
        """All transitions that can be taken from there on without leaving the scope."""
        found: list[Transition] = []
        seen = set(states)
        todo = list(seen)
        while todo:
            for transition in self._leaving[todo.pop()]:
                if scope is None or scope not in transition.hidden:
                    found.append(transition)
                    if transition.target not in seen:
                        seen.add(transition.target)
                        todo.append(transition.target)
        return found

    # ------------------------------------------------------------------------------------ values

    def _value(self, side: _Side, hashed: int | None) -> Value:
        return Value(without_variable(side.expression), self._types(side.key), hashed)

    def _types(self, key: Key) -> tuple[str, ...]:
        """The types of the events that can carry `key`, in order; none where they can be of any type."""
        types: dict[str, None] = {}
        for transition in self._automaton.transitions:
            if not _has(transition, key):
                continue
            asked = [self._automaton.predicates[bit] for bit in transition.guard.present]
            asked = [predicate for predicate in asked if predicate != FIRST]
            if not asked:
                return ()
            common = set(asked[0].types).intersection(*(predicate.types for predicate in asked))
            types.update((name, None) for name in asked[0].types if name in common)
        return tuple(sorted(types))

    def _kind(self, name: str) -> Kind | None:
        """The kind of a column: that of the attribute in all types that have it; None where they differ."""
        attributes = [*self._schema.types.values(), self._schema.shared or {}]
        kinds = {each[name] for each in attributes if name in each} - {Kind.NULL}
        return kinds.pop() if len(kinds) == 1 else None


_ORDER_OF_STRINGS = "the order of strings"
_MIXED_NUMBERS = "an integer beside a float"


def _why_not_compared(left: Kind, operator: ComparisonOperator, right: Kind) -> str:
    """Why registers cannot compare values of these kinds; empty where they can."""
    if left is not right:
        return _MIXED_NUMBERS
    if left is Kind.STRING and operator != "=":
        return "strings that must differ" if operator == "!=" else _ORDER_OF_STRINGS
    return "" if left in _COMPARED | {Kind.STRING} else "its values cannot be compared"


def _may_overflow(node: Node, kinds: Mapping[str, Kind]) -> bool:
    """Whether a node computes an integer that may not fit in 64 bits."""
    match node:
        case Negative(Literal()):
            return False
        case Negative() | Arithmetic(operator="+" | "-" | "*") | Call(name="abs"):
            return kind_of(without_variable(node), kinds) is Kind.INT
        case _:
            return False


def _has(transition: Transition, key: Key) -> bool:
    return carries(transition.labels, transition.hidden, key)
