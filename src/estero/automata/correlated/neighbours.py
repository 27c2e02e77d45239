"""Replaces registers by facts about the last event of a run: how their values compare with its attributes.

A comparison of events that are not neighbours follows from comparisons of neighbours if every event in
between carries the value: ``x.k = y.k AND y.k = z.k`` implies ``x.k = z.k``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from estero.automata.cea import CEA, LabelSet, Transition
from estero.automata.chain import Neighbours
from estero.automata.correlated.push_down import STORED_BY, Use
from estero.automata.registers import CHECKS, Action
from estero.automata.residual import ALL_MARKED, Hidden
from estero.language.tree.expressions import ComparisonOperator, Node


@dataclass(frozen=True, slots=True)
class Register:
    """A register that `scope` unsets; `origins` are the numbers of the residuals that it serves."""

    scope: Hidden | None
    stores: tuple[Use, ...]
    checks: tuple[Use, ...]
    origins: frozenset[int]

    @property
    def of_equality(self) -> bool:
        """Whether all its values must be equal."""
        return all(action == Action.STORE_SAME for _, action, _ in self.stores)

    @property
    def name(self) -> str:
        """The variables whose values it holds."""
        names = (key.variable if isinstance(key, Hidden) else key for key, _, _ in self.stores)
        return " and ".join(dict.fromkeys("the events before it" if n == ALL_MARKED else n for n in names))


@dataclass(frozen=True, slots=True)
class Fact:
    """The `relation` of all values of a register to `expression` of the last event; if `held`, it is one."""

    relation: ComparisonOperator
    expression: Node
    held: bool


Facts = Mapping[int, frozenset[Fact]]
"""The facts about each register that is set and still matters."""


@dataclass(frozen=True, slots=True)
class Step:
    """The comparisons of a transition between its event and the one before, and the facts after it.

    `comparisons` come with the numbers of the residuals that they serve; the expressions `not_null` of the
    event must not be NULL.
    """

    comparisons: Mapping[Neighbours, frozenset[int]]
    not_null: tuple[Node, ...]
    facts: Facts


class NotCarriedError(Exception):
    """An error: the last event does not determine a needed value of a register, which serves `origins`."""

    def __init__(self, register: Register, reason: str) -> None:
        super().__init__(reason)
        self.origins: frozenset[int] = register.origins


class Carried:
    """Derives the comparisons of neighbours from registers, transition by transition."""

    def __init__(self, automaton: CEA, registers: Sequence[Register]) -> None:
        self._registers = registers
        self._automaton = automaton
        self._live = [_live(automaton, register) for register in registers]
        self._avoidable = [_avoidable(automaton, register) for register in registers]

    def take(self, facts: Facts, transition: Transition) -> Step:
        """The step of a transition that marks an event, given the `facts` about the event before.

        Raises `NotCarriedError` if these facts are not enough.
        """
        facts = {
            number: known
            for number, known in facts.items()
            if self._registers[number].scope not in transition.hidden
        }
        asked: dict[Neighbours, frozenset[int]] = {}
        for number, relation, value in self._open_checks(facts, transition, asked):
            known = _after(facts[number], asked)
            if not any(fact.expression == value and _implies(fact.relation, relation) for fact in known):
                register = self._registers[number]
                both = f"{register.name} and {self._event(transition)}"
                reason = f"{both} are compared, and other events come between them"
                raise NotCarriedError(register, reason)
        known_after = {
            number: after
            for number in range(len(self._registers))
            if transition.target in self._live[number]
            and (after := self._after(number, facts, transition, asked))
        }
        checks = [use for register in self._registers for use in _of(transition, register.checks)]
        not_null = dict.fromkeys(value for _, action, value in checks if action == Action.NOT_NULL)
        return Step(asked, tuple(not_null), known_after)

    def _open_checks(
        self, facts: Facts, transition: Transition, asked: dict[Neighbours, frozenset[int]]
    ) -> list[tuple[int, ComparisonOperator, Node]]:
        """Adds checks between neighbours to `asked`; returns the others, as (register, relation, value).

        A stored value that every accepting run compares for equality is checked at once.
        """
        open_checks: list[tuple[int, ComparisonOperator, Node]] = []
        for number, known in facts.items():
            register = self._registers[number]
            for _, action, value in _of(transition, register.checks):
                relation = STORED_BY.get(action)
                if relation is not None and not self._ask(asked, number, known, relation, value):
                    open_checks.append((number, relation, value))
            if register.of_equality and transition.target not in self._avoidable[number]:
                for _, _, value in _of(transition, register.stores):
                    self._ask(asked, number, known, "=", value)
        return open_checks

    def _ask(
        self,
        asked: dict[Neighbours, frozenset[int]],
        number: int,
        known: Iterable[Fact],
        relation: ComparisonOperator,
        value: Node,
    ) -> bool:
        """Adds a comparison that is equivalent to the relation of all values of a register to `value`."""
        for fact in known:
            if fact.relation == "=" or (
                fact.held and fact.relation[0] == relation[0] and fact.relation != "!=" != relation
            ):
                compared = Neighbours(relation, fact.expression, value)
                asked[compared] = asked.get(compared, frozenset()) | self._registers[number].origins
                return True
        return False

    def _after(
        self,
        number: int,
        facts: Facts,
        transition: Transition,
        asked: Mapping[Neighbours, frozenset[int]],
    ) -> frozenset[Fact]:
        """The facts about a register after a transition; none if it is unset."""
        register = self._registers[number]
        stores = _of(transition, register.stores)
        values = {value for _, _, value in stores}
        known = _after(facts[number], asked) if number in facts else set()
        if not stores:
            if number in facts and not known:
                what = "the key of" if register.of_equality else "the compared value of"
                raise NotCarriedError(
                    register, f"{self._event(transition)} would have to carry {what} {register.name}"
                )
            return frozenset(known)
        if len(values) == 1:
            action, (value,) = stores[0][1], values
            relations = {fact.relation for fact in known if fact.expression == value}
            if number not in facts or action == Action.STORE or "=" in relations:
                return frozenset({Fact("=", value, held=True)})
            if action == Action.STORE_LARGEST and relations & {"<", "<="}:
                return frozenset({Fact("<=", value, held=True)})
            if action == Action.STORE_SMALLEST and relations & {">", ">="}:
                return frozenset({Fact(">=", value, held=True)})
        raise NotCarriedError(
            register,
            f"every event of {register.name} is compared with later ones, not only the last before them",
        )

    def _event(self, transition: Transition) -> str:
        return event_name(transition.labels, self._automaton.types_of(transition.guard) or ())


def event_name(labels: LabelSet, types: Iterable[str]) -> str:
    """The name of an event with these labels: a variable rather than one of its types."""
    own = set(types)
    return min(labels, key=lambda label: (label in own, label))


def _of(transition: Transition, uses: Iterable[Use]) -> list[Use]:
    return [use for use in uses if transition.carries(use[0])]


def _after(known: Iterable[Fact], asked: Iterable[Neighbours]) -> set[Fact]:
    """The facts about the current event that follow from those about the one before, and comparisons."""
    facts: set[Fact] = set()
    for fact in known:
        for comparison in asked:
            if comparison.left == fact.expression:
                relation = _composed(fact.relation, comparison.operator)
                if relation is not None:
                    facts.add(Fact(relation, comparison.right, held=relation == "="))
    return facts


def _composed(one: ComparisonOperator, two: ComparisonOperator) -> ComparisonOperator | None:
    """The relation of a to c if a has the relation `one` to b, and b has the relation `two` to c."""
    if one == "=":
        return two
    if two == "=":
        return one
    if "!=" in (one, two) or one[0] != two[0]:
        return None
    return one if len(one) == 1 else two


def _implies(known: ComparisonOperator, wanted: ComparisonOperator) -> bool:
    if known == wanted:
        return True
    if known == "=":
        return wanted in ("<=", ">=")
    return known in ("<", ">") and wanted in (f"{known}=", "!=")


def _live(automaton: CEA, register: Register) -> set[int]:
    """The states in which the value of the register can still matter."""

    def goes_on(transition: Transition) -> bool:
        anew = any(action == Action.STORE for _, action, _ in _of(transition, register.stores))
        return register.scope not in transition.hidden and not anew

    asking = [
        transition.source
        for transition in automaton.transitions
        if register.scope not in transition.hidden and _is_checked(register, transition)
    ]
    return automaton.leading_to(asking, goes_on)


def _avoidable(automaton: CEA, register: Register) -> set[int]:
    """The states from which a run can accept, or unset the register, without checking it."""
    unsetting = [
        transition.source for transition in automaton.transitions if register.scope in transition.hidden
    ]
    return automaton.leading_to(
        (*automaton.final, *unsetting), lambda transition: not _is_checked(register, transition)
    )


def _is_checked(register: Register, transition: Transition) -> bool:
    return any(action in CHECKS for _, action, _ in _of(transition, register.checks))
