"""The events without which an automaton accepts nothing, however its runs go.

Each rule of an automaton of any kind (CEA, chain-CEA, PCEA) leads from states to one state on an event. The
events that every accepting run has are found by leaving rules out: if no final state can be reached without
the rules that require a bit, every run reads an event with that bit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import singledispatch
from typing import Any

from estero.automata.cea import CEA
from estero.automata.chain import Chain
from estero.automata.pcea import PCEA

Bits = frozenset[int]


@dataclass(frozen=True, slots=True)
class Need:
    """An event with all the bits of one of `kinds`, which every complex event spans.

    With `first` the first event of its span is one, with `last` the last one is.
    """

    kinds: frozenset[Bits]
    first: bool = False
    last: bool = False


@dataclass(frozen=True, slots=True)
class _Rule:
    """A transition rule: on an event with these bits, a run in each of `sources` becomes one in `target`."""

    sources: tuple[int, ...]
    bits: Bits
    target: int


@dataclass(frozen=True, slots=True)
class _Rules:
    """All rules; runs begin in `initial`, and one accepts in `final`."""

    rules: tuple[_Rule, ...]
    initial: frozenset[int]
    final: frozenset[int]

    def accept_without(self, bit: int) -> bool:
        """Whether some run can accept by the rules that do not require a bit."""
        reached, before = set(self.initial), -1
        rules = [rule for rule in self.rules if bit not in rule.bits]
        while len(reached) > before:
            before = len(reached)
            reached.update(rule.target for rule in rules if reached.issuperset(rule.sources))
        return not reached.isdisjoint(self.final)


def needs(machine: CEA | Chain | PCEA) -> tuple[Need, ...]:
    """The needs of every complex event of an automaton, without duplicates; () if nothing is known."""
    rules = _rules(machine)
    first = (rule.bits for rule in rules.rules if rules.initial.issuperset(rule.sources))
    last = (rule.bits for rule in rules.rules if rule.target in rules.final)
    known = [Need(frozenset(first), first=True), Need(frozenset(last), last=True)]
    ends = {bit for need in known if len(need.kinds) == 1 for kind in need.kinds for bit in kind}
    asked = {bit for rule in rules.rules for bit in rule.bits}
    known += [
        Need(frozenset({frozenset({bit})})) for bit in sorted(asked - ends) if not rules.accept_without(bit)
    ]
    return tuple(need for need in known if need.kinds and all(need.kinds))


@singledispatch
def _rules(machine: Any) -> _Rules:
    raise TypeError(f"an automaton of another kind: {machine!r}")


@_rules.register
def _(machine: CEA) -> _Rules:
    moves = machine.transitions
    rules = [_Rule((move.source,), move.guard.present, move.target) for move in moves]
    return _Rules(tuple(dict.fromkeys(rules)), machine.initial, machine.final)


@_rules.register
def _(machine: Chain) -> _Rules:
    return _Rules(tuple(_gathering(machine.transitions, _source)), frozenset(), machine.final)


@_rules.register
def _(machine: PCEA) -> _Rules:
    return _Rules(tuple(_gathering(machine.transitions, _sources)), frozenset(), machine.final)


def _gathering(moves: Iterable[Any], sources: Callable[[Any], tuple[int, ...]]) -> Iterator[_Rule]:
    rules = (_Rule(sources(move), frozenset({move.predicate}), move.target) for move in moves)
    return iter(dict.fromkeys(rules))


def _source(move: Any) -> tuple[int, ...]:
    return () if move.source is None else (move.source,)


def _sources(move: Any) -> tuple[int, ...]:
    return tuple(source.state for source in move.sources)
