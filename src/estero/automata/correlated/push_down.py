"""Pushes residual filters down into registers, which runs check as they go, or says why they stay residual.

A comparison of two variables holds for all pairs of their events. The first event of a pair leaves its value
in a register, which holds the largest, the smallest or the only value so far, and the second event is checked
against it. A pair that violates the filter ends the run at once.

If a place of the pattern has several instances, the beginning of an instance unsets its registers. If one
variable is bound around that place, all instances inside one binding are compared with the same events, so
that the registers of both last as long as the binding.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple, cast

from estero.automata.cea import CEA
from estero.automata.correlated.separated import separated
from estero.automata.exploration import leaving, reached
from estero.automata.registers import Action, RegisterProgram, Step, Value
from estero.automata.residual import ALL_MARKED, Agreement, Apartness, Hidden, Key, Residual
from estero.language.check.kinds import kind_of
from estero.language.tree import expressions as e
from estero.language.tree.conditions import variables_of
from estero.language.tree.schema import HASHED, Kind, Schema
from estero.language.tree.whole import ENDS


class _Pair(NamedTuple):
    """The actions of ``first op second``: how the first event is stored, and how the second is checked."""

    store: Action
    check: Action
    mirrored: e.ComparisonOperator
    """The operator of the same comparison as ``second op first``."""


_PAIRS: Mapping[e.ComparisonOperator, _Pair] = {
    "<": _Pair(Action.STORE_LARGEST, Action.GREATER, ">"),
    "<=": _Pair(Action.STORE_LARGEST, Action.GREATER_OR_EQUAL, ">="),
    ">": _Pair(Action.STORE_SMALLEST, Action.LESS, "<"),
    ">=": _Pair(Action.STORE_SMALLEST, Action.LESS_OR_EQUAL, "<="),
    "=": _Pair(Action.STORE_SAME, Action.EQUAL, "="),
    "!=": _Pair(Action.STORE, Action.NOT_EQUAL, "!="),
}
STORED_BY: Mapping[Action, e.ComparisonOperator] = {pair.check: operator for operator, pair in _PAIRS.items()}
"""The relation of the value of a register to a value that passes the check."""

_BEFORE = " before"
"""The suffix of the variable of the previous event; no variable has such a name."""
_COMPARED = frozenset({Kind.BOOL, Kind.INT, Kind.FLOAT, Kind.TIMESTAMP, Kind.DURATION})


class PushedDown(NamedTuple):
    """The registers (None: there are none), the filters that stay residual, and the reasons."""

    program: RegisterProgram | None
    residuals: tuple[Residual, ...]
    reasons: Mapping[Residual, str]


def push_down(residuals: Sequence[Residual], automaton: CEA, schema: Schema) -> PushedDown:
    """Turns residual filters of `automaton` into registers, if registers can express them exactly.

    A run passes all checks of the program if and only if its marks satisfy all `residuals` except the
    returned ones.
    """
    decide = Decision(automaton, schema)
    drafts: list[Draft] = []
    reasons: dict[Residual, str] = {}
    for residual in residuals:
        decided = decide.drafts(residual)
        if isinstance(decided, str):
            reasons[residual] = decided
        else:
            drafts += decided
    left = tuple(residual for residual in residuals if residual in reasons)
    return PushedDown(_program(drafts, automaton) if drafts else None, left, reasons)


Use = tuple[Key, Action, e.Node]
"""An action of the events of a variable on a register, with the value of an expression over one event."""


@dataclass(frozen=True, slots=True)
class Draft:
    """A register that the label `scope` unsets, with the actions that store into it and check it.

    A register of strings stands for two registers, one for each hash.
    """

    scope: Hidden | None
    stores: tuple[Use, ...]
    checks: tuple[Use, ...]
    of_strings: bool = False


def _program(drafts: Iterable[Draft], automaton: CEA) -> RegisterProgram:
    """The program of the drafts; registers with the same stored values become one."""
    begun = {label for transition in automaton.transitions for label in transition.hidden}
    registers: dict[object, int] = {}
    values: dict[Value, int] = {}
    steps: dict[Step, None] = {}
    hashes = ((draft, hashed) for draft in drafts for hashed in ((0, 1) if draft.of_strings else (None,)))
    for draft, hashed in hashes:
        checks, stores = (
            [(key, action, Value(value, types_of(key, automaton), hashed)) for key, action, value in uses]
            for uses in (draft.checks, draft.stores)
        )
        register = registers.setdefault((draft.scope, *stores), len(registers))
        if draft.scope is not None and draft.scope in begun:
            steps[Step(draft.scope, Action.RESET, register, 0)] = None
        for key, action, value in (*checks, *stores):
            number = values.setdefault(value, len(values))
            steps[Step(key, action, 0 if action == Action.NOT_NULL else register, number)] = None
    return RegisterProgram(len(registers), tuple(values), tuple(steps))


def types_of(key: Key, automaton: CEA) -> tuple[str, ...]:
    """The types of the events that can carry `key`, in order; none if they can be of any type."""
    types = [
        automaton.types_of(transition.guard)
        for transition in automaton.transitions
        if transition.carries(key)
    ]
    if any(kind is None for kind in types):
        return ()
    return tuple(sorted({name for kind in types for name in kind or ()}))


@dataclass(frozen=True, slots=True)
class _Side:
    """One side of a comparison: an expression over the events of one variable."""

    key: Key
    value: e.Node
    kind: Kind


class _StaysResidualError(Exception):
    """The reason why registers cannot express a residual, as a phrase."""


class Decision:
    """Turns residuals into drafts of registers, or says in a phrase why they stay residual.

    With `by_keys` values are compared as keys of an index: then strings can be compared by ``!=``, which
    registers of two hashes cannot do, and an integer with a float by equality.
    """

    def __init__(self, automaton: CEA, schema: Schema, *, by_keys: bool = False) -> None:
        self._automaton = automaton
        self._schema = schema
        self._by_keys = by_keys

    def drafts(self, residual: Residual) -> list[Draft] | str:
        """The registers of a residual, or the reason why it stays residual, as a phrase."""
        try:
            return self._drafts(residual)
        except _StaysResidualError as reason:
            return str(reason)

    def _drafts(self, residual: Residual) -> list[Draft]:
        if residual.refuted:
            raise _StaysResidualError("it must be false, which is known only when all its events are present")
        if any(key in ENDS for _, key in residual.bindings):
            raise _StaysResidualError("it concerns the whole complex event")
        match residual.condition:
            case e.Comparison() as comparison if e.has_previous(comparison):
                return [self._with_previous(residual, comparison)]
            case e.Comparison() as comparison:
                return self._comparison(residual, comparison)
            case Apartness():
                raise _StaysResidualError("events of another part can come between the two")
            case Agreement() as agreement:
                return [self._agreement(residual, agreement)]
            case e.SetPredicate():
                raise _StaysResidualError("a set predicate needs all its events at once")
            case _:
                raise _StaysResidualError("it is more than a comparison of two variables")

    # ------------------------------------------------------------------------------ comparisons

    def _comparison(self, residual: Residual, comparison: e.Comparison) -> list[Draft]:
        """The registers for the pairs whose left event comes first, and for the other pairs."""
        comparison = self._by_sides(residual, comparison)
        left, right = (self._side(residual, side) for side in (comparison.left, comparison.right))
        operator = comparison.operator
        _check_compared(left.kind, operator, right.kind, by_keys=self._by_keys)
        scope = self._scope(residual, [left.key, right.key])
        if self._on_one_event(left.key, right.key):
            raise _StaysResidualError("one event can belong to both variables")
        drafts: list[Draft] = []
        for first, pair, second in (
            (left, _PAIRS[operator], right),
            (right, _PAIRS[_PAIRS[operator].mirrored], left),
        ):
            if not self._follows([first.key, second.key], scope):
                continue
            if operator == "!=" and self._follows([first.key, first.key, second.key], scope):
                raise _StaysResidualError("a register holds one value, and this one must differ from several")
            stores = ((first.key, pair.store, first.value),)
            checks = ((second.key, pair.check, second.value),)
            drafts.append(Draft(scope, stores, checks, first.kind in HASHED))
        return drafts

    def _by_sides(self, residual: Residual, comparison: e.Comparison) -> e.Comparison:
        """The comparison with one variable on each side, for which terms may change sides."""
        try:
            for side in (comparison.left, comparison.right):
                self._side(residual, side)
        except _StaysResidualError:
            separate = partial(
                separated,
                comparison,
                self._kind_of,
                self._schema.time,
                partial(self._is_later, residual),
            )
            moved = separate()
            if moved is not None:
                return moved
            rounded = separate(exactly=False)
            if rounded is None:
                raise
            written = e.substituted(rounded, partial(_as_previous, dict(residual.bindings)))
            raise _StaysResidualError(
                f"it computes floats from two events; written as {written}, which may round differently, it "
                "would be evaluated as runs advance"
            ) from None
        return comparison

    def _is_later(self, residual: Residual, one: str, other: str) -> bool:
        """Whether no event of `other` comes after an event of `one`."""
        if _BEFORE in (one, other):
            return other == _BEFORE
        keys = dict(residual.bindings)
        return not self._follows([keys[one], keys[other]], None)

    def _kind_of(self, expression: e.Node) -> Kind | None:
        names = {node.name for node in expression.walk() if isinstance(node, e.Attribute)}
        return kind_of(e.without_variable(expression), {name: self._kind(name) for name in names})

    def _side(self, residual: Residual, expression: e.Node) -> _Side:
        nodes = list(expression.walk())
        if any(isinstance(node, e.Aggregate) for node in nodes):
            raise _StaysResidualError("an aggregate is known only when all its events are present")
        attributes = [node for node in nodes if isinstance(node, e.Attribute)]
        variables = {node.variable for node in attributes if node.variable is not None}
        if len(variables) != 1:
            raise _StaysResidualError(
                "one side has arithmetic over two variables" if variables else "one side is a constant"
            )
        kinds = {node.name: self._kind(node.name) for node in attributes}
        value = e.without_variable(expression)
        kind = kind_of(value, kinds)
        key = dict(residual.bindings)[variables.pop()]
        if kind is None:
            raise _StaysResidualError("one side is always NULL")
        if not types_of(key, self._automaton):
            raise _StaysResidualError("its events can be of any type")
        return _Side(key, value, kind)

    def _kind(self, name: str) -> Kind:
        """The kind of a column, which must be the same in all types that have it."""
        attributes = [*self._schema.types.values(), self._schema.shared or {}]
        kinds = {attribute[name] for attribute in attributes if name in attribute} - {Kind.NULL}
        if len(kinds) != 1:
            raise _StaysResidualError(f"the kind of {name} is not known")
        return kinds.pop()

    # -------------------------------------------------------------------------------------- sets

    def _with_previous(self, residual: Residual, comparison: e.Comparison) -> Draft:
        """A register of the previous event's value; each event is compared with it and stores its own."""
        variables = variables_of(comparison)
        if len(variables) != 1:
            raise _StaysResidualError("it compares an event and the one before it with others")
        (variable,) = variables
        key = dict(residual.bindings)[variable]
        within = replace(residual, bindings=(*residual.bindings, (_BEFORE, key)))
        apart = self._by_sides(within, cast(e.Comparison, e.substituted(comparison, _named_before)))
        sides = (apart.left, apart.right)
        variables_by_side = [variables_of(side) for side in sides]
        if variables_by_side not in ([{variable}, {_BEFORE}], [{_BEFORE}, {variable}]):
            raise _StaysResidualError("it does not compare an event with the one before it")
        operator = apart.operator
        if variables_by_side[0] == {variable}:
            sides, operator = (sides[1], sides[0]), _PAIRS[operator].mirrored
        before, here = (self._side(within, side) for side in sides)
        _check_compared(before.kind, operator, here.kind, by_keys=self._by_keys)
        check = _PAIRS[operator].check
        stores, checks = ((key, Action.STORE, before.value),), ((key, check, here.value),)
        return Draft(self._scope(residual, [key]), stores, checks, before.kind in HASHED)

    def _agreement(self, residual: Residual, agreement: Agreement) -> Draft:
        attributes = [e.Attribute(key.attribute, key.variable) for key in agreement.keys if key.variable]
        alternatives = [key.attribute for key in agreement.keys if key.variable is None]
        if alternatives:
            key = dict(residual.bindings)[ALL_MARKED]
            attributes.append(e.Attribute(self._first(alternatives, key), ALL_MARKED))
        sides = [self._side(residual, attribute) for attribute in attributes]
        scope = self._scope(residual, [side.key for side in sides])
        for side in sides:
            _check_compared(sides[0].kind, "=", side.kind, by_keys=self._by_keys)
        for place, side in enumerate(sides):
            for other in sides[place + 1 :]:
                if side.value != other.value and self._on_one_event(side.key, other.key):
                    raise _StaysResidualError("one event can have two of the keys")
        return Draft(
            scope,
            tuple((side.key, Action.STORE_SAME, side.value) for side in sides),
            tuple(
                (side.key, check, side.value) for side in sides for check in (Action.NOT_NULL, Action.EQUAL)
            ),
            sides[0].kind in HASHED,
        )

    def _first(self, alternatives: Sequence[str], key: Key) -> str:
        """The first of these attributes that the events of a variable have, the same for all their types."""
        if len(alternatives) == 1:
            return alternatives[0]
        tables = [self._schema.attributes_of(name) or {} for name in types_of(key, self._automaton)]
        first = {
            next((alternative for alternative in alternatives if alternative in table), None)
            for table in tables
        }
        if len(first) != 1 or None in first:
            raise _StaysResidualError("a key is the first of several attributes that an event has")
        return next(alternative for alternative in alternatives if alternative in first)

    # ---------------------------------------------------------------------------- places, order

    def _scope(self, residual: Residual, keys: Sequence[Key]) -> Hidden | None:
        """The label that begins the instance whose events are compared; None for the complex event."""
        if residual.place is None:
            return None
        around = {key for key in keys if not (isinstance(key, Hidden) and key.place == residual.place)}
        if len(around) == len(set(keys)):
            raise _StaysResidualError("all its variables are bound outside of the part that it filters")
        outer = {key.place if isinstance(key, Hidden) else None for key in around}
        if len(outer) > 1:
            raise _StaysResidualError("its variables are bound at several places")
        place = outer.pop() if outer else residual.place
        return None if place is None else Hidden(place)

    def _on_one_event(self, one: Key, other: Key) -> bool:
        return any(
            transition.carries(one) and transition.carries(other)
            for transition in self._automaton.transitions
        )

    def _follows(self, keys: Sequence[Key], scope: Hidden | None) -> bool:
        """Whether events with these keys can follow one another in a run, inside one `scope`."""
        first, *others = keys
        inside = leaving(
            transition for transition in self._automaton.transitions if scope not in transition.hidden
        )
        states = {
            transition.target for transition in self._automaton.transitions if transition.carries(first)
        }
        for key in others:
            after = reached(states, lambda state: [transition.target for transition in inside[state]])
            states = {
                transition.target
                for state in after
                for transition in inside[state]
                if transition.carries(key)
            }
        return bool(states)


def _named_before(node: e.Node) -> e.Node | None:
    """``prev(X.a)`` as an attribute of the event before."""
    return replace(node.operand, variable=_BEFORE) if isinstance(node, e.Previous) else None


def _as_previous(bindings: Mapping[str, Key], node: e.Node) -> e.Node | None:
    """An attribute of the event before as ``prev(X.a)``: the inverse of `_named_before`."""
    if not isinstance(node, e.Attribute) or node.variable != _BEFORE:
        return None
    variable = next(name for name, key in bindings.items() if key == bindings[_BEFORE])
    return e.Previous(replace(node, variable=variable))


_ORDER_OF_STRINGS = "it orders strings"


def _check_compared(
    left: Kind, operator: e.ComparisonOperator, right: Kind, *, by_keys: bool = False
) -> None:
    """Raises an error with the reason if registers cannot compare values of these kinds."""
    if left is not right:
        if Kind.DECIMAL in (left, right):
            raise _StaysResidualError("it compares a decimal with an integer")
        if not by_keys or operator not in ("=", "!="):
            raise _StaysResidualError("it compares an integer with a float")
    elif left in HASHED:
        if operator == "!=" and not by_keys:
            raise _StaysResidualError("strings are compared by !=")
        if operator not in ("=", "!="):
            raise _StaysResidualError(_ORDER_OF_STRINGS if left is Kind.STRING else "it orders decimals")
    elif left not in _COMPARED:
        raise _StaysResidualError("its values cannot be compared")
