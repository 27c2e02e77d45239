"""What the last event of a run says of the values that registers would hold, so that they need not hold them.

A comparison between events that are far apart is one between neighbours where every event in between carries
the value: ``x.k = y.k AND y.k = z.k`` says ``x.k = z.k``. Of each register that is set, a run knows how its
values compare with the last marked event.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from estero.automata.cea import CEA, LabelSet, Transition
from estero.automata.chain import Neighbours
from estero.automata.registers import CHECKS, Action
from estero.automata.residual import ALL_MARKED, Hidden, Key, carries
from estero.language.tree.expressions import ComparisonOperator, Node

Use = tuple[Key, Action, Node]


@dataclass(frozen=True, slots=True)
class Register:
    """A register that is unset by `scope`; `origins` are the numbers of the residuals it is for."""

    scope: Hidden | None
    stores: tuple[Use, ...]
    checks: tuple[Use, ...]
    origins: frozenset[int]

    @property
    def of_equality(self) -> bool:
        """Whether all values that it holds have to be the same."""
        return all(action == Action.STORE_SAME for _, action, _ in self.stores)


@dataclass(frozen=True, slots=True)
class Fact:
    """All values of a register are in `relation` to `expression` of the last event; if `held`, it is one."""

    relation: ComparisonOperator
    expression: Node
    held: bool


Facts = Mapping[int, frozenset[Fact]]
"""For each register that is set and still matters: what is known of it."""


@dataclass(frozen=True, slots=True)
class Step:
    """What a transition asks of its event and of the one before, and what is known of registers after it.

    `comparisons` are given with the residuals they are for; `not_null` are expressions of the event.
    """

    comparisons: Mapping[Neighbours, frozenset[int]]
    not_null: tuple[Node, ...]
    facts: Facts


@dataclass(frozen=True, slots=True)
class NotCarried:
    """Why what register number `register` holds is not known of the last event, where it matters."""

    register: int
    reason: str


_RELATION: Mapping[Action, ComparisonOperator] = {
    Action.LESS: ">",
    Action.LESS_OR_EQUAL: ">=",
    Action.GREATER: "<",
    Action.GREATER_OR_EQUAL: "<=",
    Action.EQUAL: "=",
    Action.NOT_EQUAL: "!=",
}
"""How a register compares with the value that passes the check."""


class Carried:
    """Takes the transitions of an automaton, and says what neighbours have to be compared by."""

    def __init__(self, automaton: CEA, registers: Sequence[Register]) -> None:
        self._registers = registers
        self._predicates = automaton.predicates
        self._live = [_live(automaton, each) for each in registers]
        self._avoidable = [_avoidable(automaton, each) for each in registers]

    def take(self, facts: Facts, transition: Transition) -> Step | NotCarried:
        """A transition that marks an event, where `facts` are known of the one before; or why it fails."""
        facts = {
            number: known
            for number, known in facts.items()
            if self._registers[number].scope not in transition.hidden
        }
        asked: dict[Neighbours, frozenset[int]] = {}
        for number, relation, value in self._open_checks(facts, transition, asked):
            known = _after(facts[number], asked)
            if not any(each.expression == value and _implies(each.relation, relation) for each in known):
                both = f"{self._stored(number)} and {self._event(transition)}"
                return NotCarried(number, f"{both} are compared, and other events come between them")
        found: dict[int, frozenset[Fact]] = {}
        for number in range(len(self._registers)):
            if transition.target not in self._live[number]:
                continue
            after = self._after(number, facts, transition, asked)
            if after is None:
                return NotCarried(number, self._not_carried(number, transition))
            if after:
                found[number] = after
        checks = [use for register in self._registers for use in _of(transition, register.checks)]
        not_null = dict.fromkeys(value for _, action, value in checks if action == Action.NOT_NULL)
        return Step(asked, tuple(not_null), found)

    def _open_checks(
        self, facts: Facts, transition: Transition, asked: dict[Neighbours, frozenset[int]]
    ) -> list[tuple[int, ComparisonOperator, Node]]:
        """Asks for what can be checked between neighbours; the other checks, as register, relation, value.

        What is stored beside a value that it has to be equal to in the end is checked at once.
        """
        found: list[tuple[int, ComparisonOperator, Node]] = []
        for number, known in facts.items():
            register = self._registers[number]
            for _, action, value in _of(transition, register.checks):
                relation = _RELATION.get(action)
                if relation is not None and not self._ask(asked, number, known, relation, value):
                    found.append((number, relation, value))
            if register.of_equality and transition.target not in self._avoidable[number]:
                for _, _, value in _of(transition, register.stores):
                    self._ask(asked, number, known, "=", value)
        return found

    def _ask(
        self,
        asked: dict[Neighbours, frozenset[int]],
        number: int,
        known: Iterable[Fact],
        relation: ComparisonOperator,
        value: Node,
    ) -> bool:
        """Asks for a comparison that is true just when all of a register's values are so related."""
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
    ) -> frozenset[Fact] | None:
        """What is known of a register after a transition: nothing if it is unset, None if too little."""
        stores = _of(transition, self._registers[number].stores)
        values = {value for _, _, value in stores}
        if number not in facts:
            return None if len(values) > 1 else frozenset(Fact("=", value, held=True) for value in values)
        known = _after(facts[number], asked)
        if not stores:
            return frozenset(known) or None
        if len(values) > 1:
            return None
        (value,) = values
        action = stores[0][1]
        if action == Action.STORE:
            return frozenset({Fact("=", value, held=True)})
        relations = {each.relation for each in known if each.expression == value}
        if "=" in relations:
            return frozenset({Fact("=", value, held=True)})
        if action == Action.STORE_LARGEST and relations & {"<", "<="}:
            return frozenset({Fact("<=", value, held=True)})
        if action == Action.STORE_SMALLEST and relations & {">", ">="}:
            return frozenset({Fact(">=", value, held=True)})
        return None

    def _not_carried(self, number: int, transition: Transition) -> str:
        register, stored = self._registers[number], self._stored(number)
        if _of(transition, register.stores):
            return f"every event of {stored} is compared with later ones, not only the last before them"
        what = "the key of" if register.of_equality else "what is compared of"
        return f"{self._event(transition)} would have to carry {what} {stored}"

    def _event(self, transition: Transition) -> str:
        types = [name for bit in transition.guard.present for name in self._predicates[bit].types]
        return event_name(transition.labels, types)

    def _stored(self, number: int) -> str:
        return " and ".join(dict.fromkeys(self._name(key) for key, _, _ in self._registers[number].stores))

    @staticmethod
    def _name(key: Key) -> str:
        name = key.variable if isinstance(key, Hidden) else key
        return "the events before it" if name == ALL_MARKED else name


def event_name(labels: LabelSet, types: Iterable[str]) -> str:
    """What to call an event with these labels: a variable rather than one of its types."""
    own = set(types)
    return min(labels, key=lambda label: (label in own, label))


def _of(transition: Transition, uses: Iterable[Use]) -> list[Use]:
    return [use for use in uses if carries(transition.labels, transition.hidden, use[0])]


def _after(known: Iterable[Fact], asked: Iterable[Neighbours]) -> set[Fact]:
    """What is known with regard to the event at hand."""
    found: set[Fact] = set()
    for fact in known:
        for each in asked:
            if each.left == fact.expression:
                relation = _composed(fact.relation, each.operator)
                if relation is not None:
                    found.add(Fact(relation, each.right, held=relation == "="))
    return found


def _composed(one: ComparisonOperator, two: ComparisonOperator) -> ComparisonOperator | None:
    """What a and c are to each other if a is `one` to b and b is `two` to c."""
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
    """The states in which what the register holds can still matter."""
    live: set[int] = set()
    changed = True
    while changed:
        changed = False
        for each in automaton.transitions:
            if each.source in live or register.scope in each.hidden:
                continue
            checked = any(action in CHECKS for _, action, _ in _of(each, register.checks))
            anew = any(action == Action.STORE for _, action, _ in _of(each, register.stores))
            if checked or (each.target in live and not anew):
                live.add(each.source)
                changed = True
    return live


def _avoidable(automaton: CEA, register: Register) -> set[int]:
    """The states from which a run can accept, or unset the register, without checking it."""
    found = set(automaton.final)
    changed = True
    while changed:
        changed = False
        for each in automaton.transitions:
            if each.source in found:
                continue
            checked = any(action in CHECKS for _, action, _ in _of(each, register.checks))
            if register.scope in each.hidden or (not checked and each.target in found):
                found.add(each.source)
                changed = True
    return found
