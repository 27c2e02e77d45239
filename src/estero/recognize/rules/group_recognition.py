"""The recognition of a group of rules, and the part of classified events that each rule reads."""

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
from estero.classify.column_names import BITS, HELD_ERA, KEYS, POSITION, TIME, numbered
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
from estero.recognize.rules.conditions.spanning import SpanningEvents
from estero.recognize.rules.group_rules import GroupRules
from estero.recognize.rules.groups import RULE, RuleGroup

_MIX: Final = np.uint64(0x9E3779B97F4A7C15)
"""An odd number that distributes the places of rules over the words of keys."""


class RuleCounts(NamedTuple):
    """The names of some rules, and the exact numbers of their complex events."""

    names: list[str]
    numbers: list[int]


class GroupRecognition:
    """The recognition of a group of rules, whose events are classified for `everything`.

    - `time`: the type in which times are shown; None if there is no time.
    - `dispatched`: the places of dispatched conditions, to which more may be added; `everything` then only
      classifies the types of events.
    - `since`, `withheld`: see `GroupRules`; without them, all rules exist from the beginning.
    - `spanning`: whether only the answers to the whole stream are read, so that events in none of them may be
      left out.
    - `state`: the result of `Recognition.snapshot`, from which the recognition resumes.

    Raises ValueError if the state has events of unknown rules.
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
        withheld: Collection[int] = (),
        state: bytes | None = None,
        spanning: bool = False,
    ) -> None:
        since = dict.fromkeys(range(len(group.names)), 0) if since is None else since
        self.rules: GroupRules = GroupRules(group, since, frozenset(withheld))
        self._keyed = group.plans[0].keyed
        self._dispatched = dispatched
        self._begun = BegunRules(group.plan, resumed=state is not None)
        self._asked_rules = AskedRules()
        self._spanning: SpanningEvents | None = None
        self.reads(everything, events)
        own = self._excerpt.schema
        self._events = own if group.shape is None else _with_rules(own, keyed=self._keyed)
        self.recognition: Recognition = Recognition(
            group.plan, self._events, time=time, endless=endless, state=state
        )
        if (
            spanning
            and dispatched is not None
            and group.shape is not None
            and group.plan.opening_bits is None
        ):
            self._spanning = SpanningEvents(group.plan, self._asked_rules.conditions, len(group.names))
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
        """The rules by their places, including those that are left out."""
        return self.rules.group

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the rules, by their places in the group, including those that are left out."""
        return self.group.names

    @property
    def plans(self) -> dict[str, Plan]:
        """See `GroupRules.plans`."""
        return self.rules.plans

    def is_like(self, other: GroupRecognition) -> bool:
        """Whether the rules of another group could be added to this one."""
        shape = self.group.shape
        same = shape is not None and shape == other.group.shape
        return same and self.is_dispatched == other.is_dispatched

    @property
    def is_dispatched(self) -> bool:
        """Whether its conditions are dispatched."""
        return self._dispatched is not None

    def reads(self, everything: Classification, events: pa.Schema) -> None:
        """Sets the classification of the events that are pushed from now on."""
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

    def add(self, name: str, plan: Plan, since: int, *, reported: bool = True) -> None:
        """Adds a rule of the same shape, which sees the events from an era on; call `reads` next.

        It takes the place of a removed rule of which nothing is left, if there is one. Unless `reported`,
        its answers are withheld until `report` is called.
        """
        self.rules = self.rules.added(self._free_place(), name, plan, since, reported=reported)

    def _free_place(self) -> int:
        """The first place of a removed rule of which no event is left, else the one after the last."""
        store, left_out = self.recognition.store, self.rules.left_out
        if left_out and self.recognition.remembers_events_alone:
            used = numbers_of(store.take(np.arange(store.first, store.next), [RULE]), RULE)
            return min(left_out.difference(np.unique(used).tolist()), default=len(self.names))
        return len(self.names)

    def report(self, name: str) -> None:
        """Stops withholding the answers of a rule."""
        self.rules = self.rules.reporting(name)

    def leave_out(self, name: str) -> None:
        """Removes a rule."""
        for place in self.rules.places_of(name):
            self.rules = self.rules.without(place)
            self._asked_rules = self._asked_rules.without(place)

    # ------------------------------------------------------------------------------- recognition

    def prepare(self, held: HeldRows) -> None:
        """Works out what several recognitions ask of a batch that is pushed next."""
        if self._spanning is not None:
            self._spanning.prepare(held)

    def push(self, classified: pa.RecordBatch, held: HeldRows | None = None) -> Iterator[EndedSets]:
        """The compact sets that end in this batch, or that its times decide.

        If conditions are dispatched, `held` are the rows for which each condition holds.
        """
        if self.is_dispatched:
            if held is not None:
                yield from self._push_dispatched(classified, held)
        else:
            yield from self.recognition.recognize(self._of(classified))

    def _push_dispatched(self, classified: pa.RecordBatch, held: HeldRows) -> Iterator[EndedSets]:
        if self._spanning is not None:
            stamps = numbers_of(classified, POSITION if self.group.plan.by_position else TIME)
            for pairs in self._spanning.of(held, stamps):
                yield from self.recognition.recognize(self._taken(classified, *pairs))
            return
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
        """The complex events of some compact sets, with their rules."""
        reader = self.recognition.reader
        if self.group.shape is None:
            for table in reader.tables(ended):
                yield RuleTable(self.names, np.zeros(table.num_rows, np.int64), table)
            return
        for table, begun in reader.tables_with_starts(ended, [RULE]):
            rules = numbers_of(begun, RULE)
            kept = self._reported(rules)
            if kept is None:
                yield RuleTable(self.names, rules, table)
            elif kept.size:
                yield RuleTable(self.names, rules[kept], table.take(array_of(kept)))

    def placed_rows(self, ended: EndedSets) -> Iterator[pa.RecordBatch]:
        """The rows of some compact sets in the common table, with only the positions of events."""
        rule = None if self.group.shape is None else RULE
        for rows, rules in self.recognition.reader.placed_rows(ended, self.names, rule):
            kept = self._reported(rules)
            if kept is None:
                yield rows
            elif kept.size:
                yield rows.take(array_of(kept))

    def _reported(self, rules: NDArray[np.int64]) -> NDArray[np.intp] | None:
        """The rows of rules whose answers are not withheld; None for all rows."""
        silent = self.rules.silent
        kept = np.flatnonzero(~np.isin(rules, list(silent))) if silent else rules
        return None if kept.size == rules.size else kept

    def counts(self, ended: EndedSets) -> RuleCounts:
        """The number of complex events of some compact sets, by rule; respects LIMIT."""
        reader = self.recognition.reader
        if self.group.shape is None:
            return RuleCounts([self.names[0]], [sum(number for _, number in reader.counts(ended))])
        recognizer, store, size = self.recognition.recognizer, self.recognition.store, len(self.names)
        words = recognizer.words(ended.roots) if reader.limit is None else None
        if words is None:
            ends, numbers = recognizer.counts_by_end(ended.roots, reader.limit)
            total = np.zeros(size, object)  # exact for any number
            np.add.at(total, store.numbers(np.asarray(ends, np.int64), RULE), np.array(numbers, object))
        else:
            total = np.bincount(store.numbers(ended.roots.event, RULE), words, size).astype(np.int64)
        total[list(self.rules.silent)] = 0
        names, kept = self.names, np.flatnonzero(total)
        return RuleCounts([names[rule] for rule in kept.tolist()], total[kept].tolist())

    def ends(self, ended: EndedSets) -> RuleCounts:
        """The number of events at which some compact sets end, by rule."""
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
        """The events of each rule in order of rules; an event occurs once for every rule that it concerns."""
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
        """The events with their rules, which become a part of their keys, and a word of bits."""
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
    """The rows of events from an era on."""
    return rows if eras is None or not since else rows[eras[rows] >= since]


def _silent(plan: Plan) -> Classification:
    """The classification that a plan needs, without its conditions."""
    return replace(plan.classification, predicates=())


def _with_rules(events: pa.Schema, *, keyed: bool) -> pa.Schema:
    """The columns of a group's events: those of one rule, its keys, and the rule."""
    fields: Sequence[pa.Field] = [pa.field(RULE, pa.int64())]
    if not keyed:
        fields = [*(pa.field(name, pa.uint64()) for name in KEYS), *fields]
    return pa.schema([*events, *fields])
