"""Rewrites equalities that give all events of a pattern one key into PARTITION BY of the query.

Equalities divide values into classes, whether they are written as FILTER or as nested PARTITION BY, inside or
around an iteration. If one class has a value of every event that a run can mark, and runs do not depend on
other events, the pattern finds the same complex events in the whole stream as in its partitions by that
value.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice, product
from typing import Final

from estero.automata.cea import CEA, Transition, why_others_matter
from estero.automata.compile.compile_pattern import Compiled, compile_pattern
from estero.automata.correlated.neighbours import event_name
from estero.automata.correlated.push_down import Decision
from estero.automata.exploration import leaving, merged, reached
from estero.automata.registers import Action
from estero.automata.residual import Hidden, Key, Residual
from estero.language.tree import pattern as p
from estero.language.tree.conditions import conjoined, conjuncts
from estero.language.tree.expressions import Attribute, Comparison
from estero.language.tree.expressions import Node as Condition
from estero.language.tree.query import Consume, KeyBracket, QueryTree, Strategy
from estero.language.tree.schema import Schema, type_names
from estero.language.tree.selection import label_types

CAP: Final = 2_000
"""The most sets of events, and the most candidates of a key, that are examined."""

Term = tuple[Key, str]
"""A variable and an attribute of its events."""
KeyOf = Mapping[str, str]
"""The key attribute of each type of events."""
_NO_KEY: Final = "its equalities do not give all its events one key"


@dataclass(frozen=True, slots=True)
class Partitioned:
    """An equivalent of a pattern: `pattern`, without the equalities, in each partition by `keys`."""

    keys: tuple[KeyBracket, ...]
    pattern: p.Pattern


def partitioned(tree: QueryTree, schema: Schema, compiled: Compiled | None = None) -> QueryTree | str:
    """The query with PARTITION BY for equalities of its pattern, or a phrase on why there is none.

    `compiled` is the automaton of its pattern, if it has been compiled already.

    Complex events with one end are in one partition, so that strategies, LIMIT and CONSUME BY ANY choose
    among the same ones. STRICT and CONSUME BY PARTITION are different in partitions.
    """
    if tree.strategy is Strategy.STRICT:
        return "the strategy STRICT depends on the events in between"
    if tree.consume is Consume.PARTITION:
        return "CONSUME BY PARTITION depends on the partitions of the query"
    partition = as_partition(tree.pattern, schema, tree.streams, compiled)
    if isinstance(partition, str):
        return partition
    new = tuple(key for key in partition.keys if key not in tree.partition_by)
    return replace(tree, pattern=partition.pattern, partition_by=(*tree.partition_by, *new))


def as_partition(
    pattern: p.Pattern, schema: Schema, streams: tuple[str, ...] = (), compiled: Compiled | None = None
) -> Partitioned | str:
    """The keys that all events of a complex event of `pattern` share, and the rest of the pattern.

    Or the reason why partitions by a key are not equivalent, as a phrase. `compiled` as in `partitioned`.
    """
    shared = _shared(compiled or compile_pattern(pattern, streams), schema)
    if isinstance(shared, str):
        return shared
    chosen: list[KeyOf] = []
    brackets: list[KeyBracket] = []
    for key in shared.candidates(schema):
        taken = {pair for earlier in chosen for pair in earlier.items()}
        if taken.isdisjoint(key.items()) and shared.by(key):
            bracket = _bracket(key, schema)
            if bracket is not None:
                chosen.append(key)
                brackets.append(bracket)
    if not chosen:
        return _NO_KEY
    return Partitioned(tuple(brackets), _Rewriting(tuple(chosen), schema, streams).of(pattern, ()))


def common_key(
    patterns: Sequence[Compiled], schema: Schema, suits: Callable[[KeyOf], bool]
) -> KeyOf | tuple[int, str]:
    """The key attribute of each type that the events of complex events of all patterns share.

    The last pattern has all types and all equalities of the others. If there is no such key, the number of
    the first pattern whose events share none that `suits`, and the reason as a phrase.
    """
    shared: list[_Shared] = []
    for number, compiled in enumerate(patterns):
        of_pattern = _shared(compiled, schema)
        if isinstance(of_pattern, str):
            return number, of_pattern
        shared.append(of_pattern)
    furthest = 0
    for key in shared[-1].candidates(schema):
        if suits(key):
            numbered = enumerate(shared)
            failed = next((number for number, of_pattern in numbered if not of_pattern.by(key)), None)
            if failed is None:
                return key
            furthest = max(furthest, failed)
    return furthest, _NO_KEY


# ---------------------------------------------------------------------------- what is equal, and when


@dataclass(frozen=True, slots=True)
class _Equality:
    """An equality of all values of `terms`, if two variables have events or, with `alone`, if one has."""

    terms: frozenset[Term]
    alone: bool

    def among(self, present: frozenset[Key]) -> frozenset[Term]:
        """The terms that are equal and not NULL if exactly the variables `present` have events."""
        terms = frozenset(term for term in self.terms if term[0] in present)
        return terms if self.alone or len({key for key, _ in terms}) > 1 else frozenset()


_Kind = tuple[frozenset[Key], tuple[str, ...]]
"""The variables that an event belongs to, and the types that it can have."""


@dataclass(frozen=True, slots=True)
class _Shared:
    """The equalities between events of a run, and the kinds of events that runs mark."""

    equalities: Sequence[_Equality]
    kinds: Mapping[Transition, _Kind]
    together: Iterable[frozenset[_Kind]]

    def candidates(self, schema: Schema) -> Iterator[KeyOf]:
        """The candidates of a key, `CAP` of them at most."""
        return islice(_candidates(self.kinds.values(), self.equalities, schema), CAP)

    def by(self, key: KeyOf) -> bool:
        """Whether in each run all events have the same value, not NULL, as their key."""
        return all(_share(key, run, self.equalities) for run in self.together)


def _shared(compiled: Compiled, schema: Schema) -> _Shared | str:
    """The shared values of a pattern's events, or the reason why they give no partition, as a phrase."""
    why = why_others_matter(compiled.automaton)
    if why:
        return why
    equalities = list(_equalities(compiled.residuals, compiled.automaton, schema))
    if not equalities:
        return "no equality between its events holds for the whole complex event"
    kinds = _kinds(compiled.automaton, equalities)
    if isinstance(kinds, str):
        return kinds
    together = _together(compiled.automaton, kinds)
    return together if isinstance(together, str) else _Shared(equalities, kinds, together)


def _equalities(residuals: Iterable[Residual], automaton: CEA, schema: Schema) -> Iterator[_Equality]:
    decide = Decision(automaton, schema)
    for residual in residuals:
        drafts = decide.drafts(residual)
        for draft in drafts if not isinstance(drafts, str) else ():
            uses = (*draft.stores, *draft.checks)
            actions = {action for _, action, _ in uses}
            whole = draft.scope is None or not _begins_twice(draft.scope, automaton)
            if whole and actions <= {Action.STORE_SAME, Action.EQUAL, Action.NOT_NULL}:
                terms = frozenset((key, value.name) for key, _, value in uses if isinstance(value, Attribute))
                if all(isinstance(value, Attribute) for _, _, value in uses):
                    yield _Equality(terms, alone=Action.NOT_NULL in actions)


def _begins_twice(place: Hidden, automaton: CEA) -> bool:
    """Whether a run can have two instances of a place."""
    beginning = [transition for transition in automaton.transitions if place in transition.hidden]
    before = automaton.leading_to((transition.source for transition in beginning), lambda _: True)
    return any(transition.target in before for transition in beginning)


def _kinds(automaton: CEA, equalities: Sequence[_Equality]) -> dict[Transition, _Kind] | str:
    """The kind of events that each transition marks, or the event that has none of the keys, as a phrase."""
    keys = {key for equality in equalities for key, _ in equality.terms}
    kinds: dict[Transition, _Kind] = {}
    for transition in automaton.transitions:
        if transition.labels:
            types = automaton.types_of(transition.guard)
            if not types:
                return "its events can be of any type"
            kinds[transition] = frozenset(filter(transition.carries, keys)), tuple(sorted(types))
            if not kinds[transition][0]:
                return f"the key of {event_name(transition.labels, types)} is not known"
    return kinds


def _together(automaton: CEA, kinds: Mapping[Transition, _Kind]) -> set[frozenset[_Kind]] | str:
    """The sets of kinds of events that accepting runs mark, or a phrase that they are too many."""
    after = leaving(kinds)
    start = [(state, frozenset[_Kind]()) for state in automaton.initial]
    combinations = reached(
        start, lambda at: [(transition.target, at[1] | {kinds[transition]}) for transition in after[at[0]]]
    )
    ways = list(islice(combinations, CAP + 1))
    if len(ways) > CAP:
        return f"its events combine in more than {CAP:,} ways"
    return {marked for state, marked in ways if state in automaton.final}


def _candidates(kinds: Iterable[_Kind], equalities: Sequence[_Equality], schema: Schema) -> Iterator[KeyOf]:
    """All choices of one compared attribute for each type."""
    choices: defaultdict[str, dict[str, None]] = defaultdict(dict)
    terms = sorted({term for equality in equalities for term in equality.terms}, key=str)
    for keys, types in kinds:
        for name in types:
            attributes = schema.attributes_of(name)
            if attributes is not None:
                choices[name] |= {
                    attribute: None for key, attribute in terms if key in keys and attribute in attributes
                }
    names = sorted(choices)
    for chosen in product(*(choices[name] for name in names)):
        yield dict(zip(names, chosen, strict=True))


def _share(key: KeyOf, run: frozenset[_Kind], equalities: Iterable[_Equality]) -> bool:
    """Whether in a run with these kinds all events have the same value, not NULL, as their key."""
    present = frozenset(key for keys, _ in run for key in keys)
    classes = merged(equality.among(present) for equality in equalities)
    return any(
        all(
            any((variable, key[name]) in one for variable in keys)
            for keys, types in run
            for name in types
            if name in key
        )
        for one in classes
        if one
    )


def _bracket(key: KeyOf, schema: Schema) -> KeyBracket | None:
    """The key as alternatives, ordered so that the first of each type is its own; None if impossible."""
    left = list(dict.fromkeys(key.values()))
    if len(left) > 1 and schema.shared is not None:
        return None
    ordered: list[str] = []
    while left:
        # The next attribute is the key of all types that have it, except those with a key before it.
        for name in left:
            having = [type_name for type_name in key if name in (schema.attributes_of(type_name) or ())]
            if all(key[type_name] in (name, *ordered) for type_name in having):
                ordered.append(name)
                left.remove(name)
                break
        else:
            return None
    return KeyBracket(tuple(ordered))


# ------------------------------------------------------------------------------- what is left to say


@dataclass(frozen=True, slots=True)
class _Rewriting:
    """Removes the equalities that follow from partitions by `keys`."""

    keys: tuple[KeyOf, ...]
    schema: Schema
    streams: tuple[str, ...]

    def of(self, pattern: p.Pattern, around: tuple[p.Pattern, ...]) -> p.Pattern:
        """The pattern without these equalities; `around` are the patterns around it, outermost first."""
        inside = (*around, pattern)
        match pattern:
            case p.Filter(inner, condition):
                left = conjoined(part for part in conjuncts(condition) if not self._is_said(part, inside))
                rest = self.of(inner, inside)
                return rest if left is None else replace(pattern, pattern=rest, condition=left)
            case p.PartitionBy(inner, keys) if any(self._agree(key, keys, inside) for key in self.keys):
                return self.of(inner, inside)
            case p.Unless(inner):
                return replace(pattern, pattern=self.of(inner, inside))
            case _:
                return p.with_children(pattern, lambda child: self.of(child, inside))

    def _is_said(self, condition: Condition, inside: tuple[p.Pattern, ...]) -> bool:
        match condition:
            case Comparison("=", Attribute(left, str(one)), Attribute(right, str(other))):
                return any(
                    self._has_key(key, one, left, inside) and self._has_key(key, other, right, inside)
                    for key in self.keys
                )
            case _:
                return False

    def _has_key(self, key: KeyOf, variable: str, attribute: str, inside: tuple[p.Pattern, ...]) -> bool:
        """Whether the attribute is the key of all events that the variable can mark."""
        for pattern in reversed(inside):
            types = label_types(pattern)
            if variable in types:
                return all(key.get(name) == attribute for name in self._names(types[variable]))
        return False

    def _agree(self, key: KeyOf, keys: Sequence[p.PartitionKey], inside: tuple[p.Pattern, ...]) -> bool:
        """Whether a nested PARTITION BY follows from this key."""
        for partition_key in keys:
            if partition_key.variable is not None and not self._has_key(
                key, partition_key.variable, partition_key.attribute, inside
            ):
                return False
        alternatives = [partition_key.attribute for partition_key in keys if partition_key.variable is None]
        types = (
            [event_type for group in label_types(inside[-1]).values() for event_type in group]
            if alternatives
            else []
        )
        for name in self._names(types):
            attributes = self.schema.attributes_of(name) or ()
            first = next((alternative for alternative in alternatives if alternative in attributes), None)
            if first is None or key.get(name) != first:
                return False
        return True

    def _names(self, types: Iterable[p.EventType]) -> set[str]:
        """The names of the types that are in the schema, as there are no events of other types."""
        names = {name for kind in types for name in type_names(kind, self.streams)}
        return {name for name in names if self.schema.attributes_of(name) is not None}
