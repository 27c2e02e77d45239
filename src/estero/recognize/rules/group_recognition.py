"""The recognition of a group of rules, and what each of them reads of events that are classified for all."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from estero.answers.rule_rows import RuleTable
from estero.automata.cea import EventPredicate
from estero.classify.arrays import array_of, numbers_in
from estero.classify.column_names import BITS, HELD_ERA, KEYS, numbered
from estero.engine.pairs import pairs_by_row
from estero.engine.walk.roots import by_end
from estero.plan.plan import Classification, Plan
from estero.recognize.batch_columns import numbers_of
from estero.recognize.ended_sets import EndedSets
from estero.recognize.excerpts import Excerpt
from estero.recognize.metrics import number_of_ends
from estero.recognize.recognition import Recognition
from estero.recognize.rules.asked_bits import AskedBits
from estero.recognize.rules.conditions.asked_conditions import Rows
from estero.recognize.rules.conditions.begun_rules import AskedRules, BegunRules, RuleConditions
from estero.recognize.rules.conditions.dispatch import HeldRows
from estero.recognize.rules.group_rules import GroupRules
from estero.recognize.rules.groups import RULE, RuleGroup

_MIX: Final = np.uint64(0x9E3779B97F4A7C15)
"""An odd number that spreads the places of rules over the words of keys."""


class RuleCounts(NamedTuple):
    """How many complex events end for some rules, by name, and exact numbers."""

    names: list[str]
    numbers: list[int]


class GroupRecognition:
    """One recognition for a group of rules, whose events are classified for `everything`.

    `time` is the type in which times are shown, None for no time. Where conditions are `dispatched`, by
    their places there, of which there may be more later, `everything` says only the types of events.
    `since` and `untold` are those of `GroupRules`; without them all rules are there from the beginning. With
    `state`, from `Recognition.snapshot`, it goes on from there; raises ValueError where events in it are of
    no rule.
    """

    def __init__(  # noqa: PLR0913 (what a state has of a group)
        self,
        group: RuleGroup,
        everything: Classification,
        events: pa.Schema,
        *,
        time: pa.DataType | None = None,
        endless: bool = False,
        dispatched: Mapping[EventPredicate, int] | None = None,
        since: Mapping[int, int] | None = None,
        untold: Collection[int] = (),
        state: bytes | None = None,
    ) -> None:
        since = dict.fromkeys(range(len(group.names)), 0) if since is None else since
        self.rules: GroupRules = GroupRules(group, since, frozenset(untold))
        self._keyed = group.plans[0].keyed
        self._dispatched = dispatched
        self._begun = BegunRules(group.plan, resumed=state is not None)
        self._asked_rules = AskedRules()
        self.reads(everything, events)
        own = self._excerpt.schema
        self._events = own if group.shape is None else _with_rules(own, keyed=self._keyed)
        self.recognition: Recognition = Recognition(
            group.plan, self._events, time=time, endless=endless, state=state
        )
        if state is not None:
            self._check_rules()

    def _check_rules(self) -> None:
        store = self.recognition.store
        if self.group.shape is not None:
            rules = numbers_of(store.take(np.arange(store.first, store.next), [RULE]), RULE)
            if ((rules < 0) | (rules >= len(self.names))).any():
                raise ValueError("an event belongs to a rule that there is not")

    # --------------------------------------------------------------------------------- its rules

    @property
    def group(self) -> RuleGroup:
        """Its rules by their places, also those that are left out."""
        return self.rules.group

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the rules, by their places in the group; some may be left out."""
        return self.group.names

    @property
    def plans(self) -> dict[str, Plan]:
        """See `GroupRules.plans`."""
        return self.rules.plans

    def is_like(self, other: GroupRecognition) -> bool:
        """Whether rules of another group could be rules of this one."""
        shape = self.group.shape
        same = shape is not None and shape == other.group.shape
        return same and self.is_dispatched == other.is_dispatched

    @property
    def is_dispatched(self) -> bool:
        """Whether its conditions are dispatched."""
        return self._dispatched is not None

    def reads(self, everything: Classification, events: pa.Schema) -> None:
        """Events are classified for `everything` from now on."""
        plans = {place: self.group.plans[place] for place in self.rules.since}
        if self.group.shape is None and not self.is_dispatched:
            ((place, since),) = self.rules.since.items()
            self._excerpt = Excerpt(plans[place].classification, everything, events, since=since)
            return
        (first, *_) = plans.values()
        self._excerpt = Excerpt(_silent(first), everything, events)
        if self._dispatched is not None:
            self._asked_rules = AskedRules(
                [RuleConditions.of(rule, plan, self._dispatched) for rule, plan in sorted(plans.items())]
            )
            return
        places = {predicate: place for place, predicate in enumerate(everything.predicates)}
        self._asked = AskedBits(plans, places, self.rules.since)
        self._words = numbered(BITS, events.names)

    def add(self, name: str, plan: Plan, since: int, *, told: bool = True) -> None:
        """Adds a rule of the same shape, which sees the events since an era; `reads` is called next.

        It gets the place of one that was left out, if nothing is left of that. Unless it is `told`, what it
        gives is kept to itself until `tell`.
        """
        self.rules = self.rules.added(self._free_place(), name, plan, since, told=told)

    def _free_place(self) -> int:
        """The first place without a rule of which no event is kept; else the one behind the last."""
        store, left_out = self.recognition.store, self.rules.left_out
        if left_out and self.recognition.remembers_events_alone:
            used = numbers_of(store.take(np.arange(store.first, store.next), [RULE]), RULE)
            return min(left_out.difference(np.unique(used).tolist()), default=len(self.names))
        return len(self.names)

    def tell(self, name: str) -> None:
        """Gives what a rule gives from now on."""
        self.rules = self.rules.telling(name)

    def leave_out(self, name: str) -> None:
        """Leaves a rule out from now on."""
        for place in self.rules.places_of(name):
            self.rules = self.rules.without(place)
            self._asked_rules = self._asked_rules.without(place)

    # ------------------------------------------------------------------------------- recognition

    def push(self, classified: pa.RecordBatch, held: HeldRows | None = None) -> Iterator[EndedSets]:
        """The compact sets that end in this batch, or that its times decide.

        Where its conditions are dispatched, `held` are the rows for which each holds.
        """
        if self.is_dispatched:
            if held is not None:
                yield from self._push_dispatched(classified, held)
        else:
            yield from self.recognition.recognize(self._of(classified))

    def _push_dispatched(self, classified: pa.RecordBatch, held: HeldRows) -> Iterator[EndedSets]:
        since = self.rules.since
        eras = numbers_of(classified, HELD_ERA) if any(since.values()) else None
        begun = self._begun.among(classified, len(self.names))
        segments = [
            (own, rule, bit)
            for rows, rule, bit in self._asked_rules.mattering(held, begun)
            if (own := _since(rows, eras, since[rule])).size
        ]
        if segments:
            parts, of_rules, bits = zip(*segments, strict=True)
            for pairs in pairs_by_row(parts, of_rules, bits, classified.num_rows):
                yield from self.recognition.recognize(self._taken(classified, *pairs))

    def tables(self, ended: EndedSets) -> Iterator[RuleTable]:
        """The complex events of some sets, with their rules."""
        reader = self.recognition.reader
        if self.group.shape is None:
            for table in reader.tables(ended):
                yield RuleTable(self.names, np.zeros(table.num_rows, np.int64), table)
            return
        for table, begun in reader.tables_with_starts(ended, [RULE]):
            rules = numbers_of(begun, RULE)
            kept = self._told(rules)
            if kept is None:
                yield RuleTable(self.names, rules, table)
            elif kept.size:
                yield RuleTable(self.names, rules[kept], table.take(array_of(kept)))

    def placed_rows(self, ended: EndedSets) -> Iterator[pa.RecordBatch]:
        """The rows of the same complex events in the common table, with nothing of events but positions."""
        rule = None if self.group.shape is None else RULE
        for rows, rules in self.recognition.reader.placed_rows(ended, self.names, rule):
            kept = self._told(rules)
            if kept is None:
                yield rows
            elif kept.size:
                yield rows.take(array_of(kept))

    def _told(self, rules: NDArray[np.int64]) -> NDArray[np.intp] | None:
        """The rows, of which these are the rules, but for those of silent ones; None for all of them."""
        silent = self.rules.silent
        kept = np.flatnonzero(~np.isin(rules, list(silent))) if silent else rules
        return None if kept.size == rules.size else kept

    def counts(self, ended: EndedSets) -> RuleCounts:
        """How many complex events some sets have, by rule; LIMIT is respected."""
        reader = self.recognition.reader
        if self.group.shape is None:
            return RuleCounts([self.names[0]], [sum(number for _, number in reader.counts(ended))])
        ends, numbers = self.recognition.recognizer.counts_by_end(ended.roots, reader.limit)
        rules = self.recognition.store.numbers(np.asarray(ends, np.int64), RULE)
        total = np.zeros(len(self.names), object)  # exact, however many
        np.add.at(total, rules, np.array(numbers, object))
        total[list(self.rules.silent)] = 0
        names, kept = self.names, np.flatnonzero(total)
        return RuleCounts([names[rule] for rule in kept.tolist()], total[kept].tolist())

    def ends(self, ended: EndedSets) -> RuleCounts:
        """At how many events some sets end, by rule."""
        if self.group.shape is None:
            return RuleCounts([self.names[0]], [number_of_ends([ended])])
        events = ended.roots.event
        if events.size > 1:
            events, _ = by_end(ended.roots)
        rules, silent = self.recognition.store.numbers(events, RULE), self.rules.silent
        if rules.size == 1 and not silent:
            return RuleCounts([self.names[rules.item()]], [1])
        kept, numbers = np.unique(rules[~np.isin(rules, list(silent))], return_counts=True)
        return RuleCounts([self.names[rule] for rule in kept.tolist()], numbers.tolist())

    def _of(self, classified: pa.RecordBatch) -> pa.RecordBatch:
        """The events of each rule: an event is there once for every rule that wants it, in order of rules."""
        if self.group.shape is None:
            return self._excerpt.of(classified)
        eras = numbers_of(classified, HELD_ERA) if HELD_ERA in classified.schema.names else None
        rows, rules, word = self._asked.pairs([numbers_of(classified, name) for name in self._words], eras)
        return self._taken(classified, rows, rules, word)

    def _taken(
        self,
        classified: pa.RecordBatch,
        rows: NDArray[np.int64],
        rules: NDArray[np.int64],
        word: NDArray[np.int64],
    ) -> pa.RecordBatch:
        """Events with their rules, which are a part of their keys, and a word of bits."""
        columns = self._excerpt.columns_taken(classified, rows, [word])
        if self.group.shape is not None:
            of_rules = rules.view(np.uint64)
            if self._keyed:
                place = self._events.get_field_index(KEYS[1])
                second = numbers_in(columns[place]).view(np.uint64)
                columns[place] = array_of(second ^ ((of_rules + np.uint64(1)) * _MIX))
            else:
                columns += [array_of(of_rules), array_of(np.zeros_like(of_rules))]
            columns.append(array_of(rules))
        return pa.RecordBatch.from_arrays(columns, schema=self._events)


def _since(rows: Rows, eras: NDArray[np.int64] | None, since: int) -> Rows:
    """The rows of events that came in an era or a later one."""
    return rows if eras is None or not since else rows[eras[rows] >= since]


def _silent(plan: Plan) -> Classification:
    """What a plan asks of events, but for its conditions."""
    return replace(plan.classification, predicates=())


def _with_rules(events: pa.Schema, *, keyed: bool) -> pa.Schema:
    """The columns of a group's events: those of one rule, keys, and the rule."""
    fields: Sequence[pa.Field] = [pa.field(RULE, pa.int64())]
    if not keyed:
        fields = [*(pa.field(name, pa.uint64()) for name in KEYS), *fields]
    return pa.schema([*events, *fields])
