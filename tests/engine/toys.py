"""Small automata with registers, streams for them, and what they find when every run is followed alone."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from unittest.mock import patch

import numpy as np
from hypothesis import strategies as st

from estero.engine import recognizer
from estero.engine.batch import EventBatch
from estero.engine.cursor import (
    CONSUME_ANY,
    CONSUME_ANY_ASKED,
    CONSUME_NONE,
    CONSUME_PARTITION,
    CONSUME_PARTITION_ASKED,
)
from estero.engine.recognizer import Recognizer
from estero.engine.runs import cea_runs as cea_runs_module
from estero.engine.runs.kinds import cea_runs
from estero.engine.runs.numbered_events import Settings
from estero.engine.runs.spans.run_spans import MAX
from estero.engine.runs.split import split_runs
from estero.engine.runs.split.ranks import LAST, NEXT
from estero.engine.runs.split.registers import (
    EQUAL,
    FAR,
    GREATER,
    GREATER_OR_EQUAL,
    LESS,
    LESS_OR_EQUAL,
    NEAR,
    NOT_EQUAL,
    NOT_NULL,
    RESET,
    STORE,
    STORE_LARGEST,
    STORE_SAME,
    STORE_SMALLEST,
    RegisterTables,
)
from estero.engine.runs.tables import Automaton

DEAD = -1
NEARLY = 2
"""Values that are less than this above another are near to it."""
Step = tuple[int, int, int]
"""Action, register, value column."""
Steps = tuple[tuple[Step, ...], ...]
Found = tuple[int, int, tuple[tuple[int, int], ...]]
"""Start, end, marks as (event, label set)."""


@dataclass(frozen=True, slots=True)
class ToyRow:
    skip: int
    edges: tuple[tuple[int, int], ...] = ()


@dataclass(slots=True)
class Toy:
    """A deterministic automaton; its events have one of `classes` bit words, here equal to their class."""

    rows: dict[tuple[int, int], ToyRow]
    final: frozenset[int]
    steps: Steps
    registers: int = 0
    classes: list[int] = field(default_factory=lambda: [0])

    def row(self, state: int, event_class: int) -> ToyRow:
        return self.rows.get((state, self.classes[event_class]), ToyRow(DEAD if state == 0 else state))

    def class_of(self, bits: int) -> int:
        if bits not in self.classes:
            self.classes.append(bits)
        return self.classes.index(bits)

    def accepts(self, state: int) -> bool:
        return state in self.final

    def continues(self, state: int) -> bool:
        return state not in self.final or any(
            row.edges or row.skip != DEAD for (source, _), row in self.rows.items() if source == state
        )

    def tables(self) -> RegisterTables:
        first = np.cumsum([0, *(len(steps) for steps in self.steps)]).astype(np.int32)
        flat = [step for steps in self.steps for step in steps]
        action, register, value = np.array(flat, np.int32).reshape(-1, 3).T
        return RegisterTables(self.registers, first, action, register, value, np.full(value.size, NEARLY))


class FrugalToy(Toy):
    """A toy that says in which states a register can still be checked."""

    def live_registers(self, state: int) -> list[bool]:
        reached, fresh = {state}, [state]
        checked = set()
        while fresh:
            source = fresh.pop()
            for (start, _), row in self.rows.items():
                if start != source:
                    continue
                for mark, target in row.edges:
                    checked |= {step[1] for step in self.steps[mark] if LESS <= step[0] < STORE}
                    fresh += [target] if target not in reached else []
                    reached.add(target)
                if row.skip != DEAD and row.skip not in reached:
                    fresh.append(row.skip)
                    reached.add(row.skip)
        return [register in checked for register in range(self.registers)]

    def register_reaches(self, state: int) -> list[int | None]:
        del state
        return [None] * self.registers


@dataclass(frozen=True, slots=True)
class ToyEvent:
    bits: int
    values: tuple[int | None, ...] = ()
    key: int = 0
    ordinal: int = 0
    stamp: int = 0


@dataclass(frozen=True, slots=True)
class Run:
    state: int
    registers: tuple[int | str | None, ...]
    start: int
    marks: tuple[tuple[int, int], ...]


@dataclass(slots=True)
class Brute:
    """Follows each run alone. `asked` says at which ends the consumer consumes."""

    toy: Toy
    window: int | None = None
    gaps: bool = False
    order: int = 0
    visible: Sequence[bool] = ()
    consume: int = CONSUME_NONE
    first_bit: int | None = None
    ordinals: bool = False

    def answers(self, events: Sequence[ToyEvent], keyed: bool) -> list[set[Found]]:
        runs: defaultdict[int, list[Run]] = defaultdict(list)
        seen: dict[int, int] = {}
        found = []
        for place, event in enumerate(events):
            key = event.key if keyed else 0
            if self.gaps and runs[key]:
                for _ in range(seen[key] + 1, event.ordinal):
                    runs[key] = [
                        moved for run in runs[key] for moved in self.moves(run, 0, place, (None,) * 9)
                    ]
            bits = event.bits
            first = event.ordinal == 0 if self.ordinals or not keyed else key not in seen
            if self.first_bit is not None and first:
                bits |= 1 << self.first_bit
            seen[key] = event.ordinal
            begin = Run(0, (None,) * self.toy.registers, place, ())
            moved = [
                after
                for run in [begin, *runs[key]]
                if self.window is None or event.stamp - events[run.start].stamp <= self.window
                for after in self.moves(run, bits, place, event.values)
            ]
            ended = self.chosen(
                {(run.start, place, run.marks) for run in moved if self.toy.accepts(run.state)}
            )
            runs[key] = [run for run in moved if self.toy.continues(run.state)]
            found.append(ended)
            if ended and (self.consume in (CONSUME_ANY, CONSUME_PARTITION) or asked_at(place)):
                if self.consume in (CONSUME_ANY, CONSUME_ANY_ASKED):
                    runs.clear()
                if self.consume in (CONSUME_PARTITION, CONSUME_PARTITION_ASKED):
                    runs[key] = []
        return found

    def moves(self, run: Run, bits: int, place: int, values: Sequence[int | None]) -> Iterator[Run]:
        row = self.toy.rows.get((run.state, bits), ToyRow(DEAD if run.state == 0 else run.state))
        for mark, target in row.edges:
            after = registers_after(self.toy.steps[mark], run.registers, values)
            if after is not None:
                yield Run(target, after, run.start, (*run.marks, (place, mark)))
        if row.skip != DEAD:
            yield Run(row.skip, run.registers, run.start, run.marks)

    def chosen(self, ended: set[Found]) -> set[Found]:
        if not ended or self.order not in (MAX, NEXT, LAST):
            return ended
        if self.order == MAX:
            supports = {frozenset(event for event, _ in found[2]) for found in ended}
            return {
                found
                for found in ended
                if not any(frozenset(event for event, _ in found[2]) < other for other in supports)
            }

        def support(found: Found) -> list[int]:
            return [event for event, mark in found[2] if not self.visible or self.visible[mark]]

        def rank(found: Found) -> list[int]:
            places = support(found)
            return places[::-1] if self.order == LAST else [-place for place in places]

        best = max(map(rank, ended))
        return {found for found in ended if rank(found) == best}


def asked_at(place: int) -> bool:
    """Whether the consumer consumes after an end at this event: sometimes."""
    return place % 3 != 1


def registers_after(
    steps: Sequence[Step], before: Sequence[int | str | None], values: Sequence[int | None]
) -> tuple[int | str | None, ...] | None:
    """Registers are None (unset), a number, or "spoilt"; None if a check fails."""
    now = list(before)
    for action, register, column in steps:
        value = values[column]
        held = now[register]
        if action == RESET:
            now[register] = None
        elif action == NOT_NULL:
            if value is None:
                return None
        elif action < STORE:
            if held is None:
                continue
            if value is None or not isinstance(held, int):
                return None
            checks = {
                LESS: value < held,
                LESS_OR_EQUAL: value <= held,
                GREATER: value > held,
                GREATER_OR_EQUAL: value >= held,
                EQUAL: value == held,
                NOT_EQUAL: value != held,
                NEAR: (value - held) % 2**64 < NEARLY,
                FAR: (value - held) % 2**64 >= NEARLY,
            }
            if not checks[action]:
                return None
        elif value is None or (held == "spoilt" and action != STORE):
            now[register] = "spoilt"
        elif action == STORE or not isinstance(held, int):
            now[register] = value
        elif action == STORE_SAME:
            now[register] = value if value == held else "spoilt"
        else:
            now[register] = {STORE_LARGEST: max, STORE_SMALLEST: min}[action](value, held)
    return tuple(now)


def batch_of(events: Sequence[ToyEvent], values: int) -> EventBatch:
    keys = np.zeros((len(events), 2), np.uint64)
    keys[:, 0] = [event.key for event in events]
    rows = [event.values[:values] for event in events]
    numbers = np.array([[value or 0 for value in row] for row in rows], np.int64)
    return EventBatch(
        np.array([event.stamp for event in events], np.int64),
        np.array([[event.bits] for event in events], np.uint64),
        ordinal=np.array([event.ordinal for event in events], np.int64),
        partition=keys,
        values=numbers.reshape(len(events), values),
        valid=np.array([[value is not None for value in row] for row in rows], np.bool_).reshape(
            len(events), values
        ),
    )


@contextmanager
def tiny_pools() -> Iterator[None]:
    """Everything begins so small that it has to grow, and the arena to be compacted, again and again."""
    with (
        patch.object(cea_runs_module, "_SMALLEST_ARENA", 16),
        patch.multiple(cea_runs_module, _FEW_KEYS=1, _MANY_KEYS=2),
        patch.multiple(recognizer, _REPORTED_AT_ONCE=2, _KEYED_AT_ONCE=3),
        patch.object(cea_runs_module, "CAPACITY", 2),
        patch.object(split_runs, "CAPACITY", 2),
    ):
        yield


def recognized(
    toy: Automaton, settings: Settings, events: Sequence[ToyEvent], cuts: Sequence[int] = ()
) -> list[list[Found]]:
    """What the engine finds at each event, batch after batch."""
    engine = Recognizer(cea_runs(toy, settings))
    found: list[list[Found]] = [[] for _ in events]
    bounds = sorted({0, len(events), *(cut for cut in cuts if cut < len(events))})
    width = max((len(event.values) for event in events), default=0)
    for first, last in pairwise(bounds):
        for roots in engine.push(batch_of(events[first:last], width)):
            number = len(roots.event)
            assert roots.event.tolist() == sorted(roots.event.tolist())
            counts = engine.counts(roots)
            asked = settings.consume in (CONSUME_ANY_ASKED, CONSUME_PARTITION_ASKED)
            if asked:
                assert len(set(roots.event.tolist())) == 1
                if asked_at(int(roots.event[0])):
                    engine.consume()
            before = sum(map(len, found))
            for matches in engine.matches(roots):
                for place, (a, b) in enumerate(zip(matches.offsets[:-1], matches.offsets[1:], strict=True)):
                    marks = zip(matches.event[a:b].tolist(), matches.marks[a:b].tolist(), strict=True)
                    start, end = int(matches.start[place]), int(matches.end[place])
                    found[end].append((start, end, tuple(marks)))
            assert sum(counts) == sum(map(len, found)) - before
            assert len(counts) == number
    return found


CHAIN = (STORE, STORE, EQUAL, EQUAL, NOT_EQUAL, LESS, GREATER_OR_EQUAL, STORE_SAME, STORE_LARGEST, RESET)


def programs(marks: int, registers: int, values: int, actions: Sequence[int]) -> st.SearchStrategy[Steps]:
    """Steps for each label set."""
    if registers == 0:
        return st.just(((),) * marks)
    step = st.tuples(st.sampled_from(actions), st.integers(0, registers - 1), st.integers(0, values - 1))
    steps = st.lists(step, max_size=3).map(lambda steps: tuple(sorted(steps)))
    return st.tuples(*[steps] * marks)


@st.composite
def wild_toys(draw: st.DrawFn, registers: int, values: int, quiet_gaps: bool = False) -> Toy:
    """Automata of up to 5 states and 3 label sets over bit words 0 … 3, without any sense."""
    states = draw(st.integers(2, 5))
    inner = st.integers(1, states - 1)
    final = frozenset({states - 1}) if quiet_gaps else draw(st.frozensets(inner, min_size=1))
    some_edges = st.lists(st.tuples(st.integers(0, 2), inner), max_size=2, unique_by=lambda edge: edge[0])
    rows = {}
    for state in range(states):
        for bits in range(4):
            stays = DEAD if state == 0 else state
            skip = draw(st.sampled_from([stays, stays, stays, DEAD]) | inner)
            edges = draw(some_edges)
            if bits == 0 and quiet_gaps:
                edges = []
                skip = DEAD if state == 0 or skip in final else skip
            rows[state, bits] = ToyRow(skip, tuple(sorted(edges)))
    if quiet_gaps:
        rows |= {(states - 1, bits): ToyRow(DEAD) for bits in range(4)}
    steps = draw(programs(3, registers, values, range(14)))
    return draw(st.sampled_from([Toy, FrugalToy]))(rows, final, steps, registers)


@st.composite
def chains(draw: st.DrawFn, registers: int, values: int, quiet_gaps: bool = False) -> Toy:
    """Sequences of up to 4 events some of which repeat, such as ``A ; B+ ; C``; states wait."""
    length = draw(st.integers(2, 4))
    letters = [draw(st.integers(1, 3)) for _ in range(length)]
    rows: dict[tuple[int, int], ToyRow] = {}
    for state in range(length):
        repeats = state > 0 and draw(st.booleans())
        strict = state > 0 and quiet_gaps and draw(st.booleans())
        for bits in range(4):
            edges = [(draw(st.integers(0, 1)), state + 1)] if bits & letters[state] else []
            if repeats and bits & letters[state - 1] and bits & draw(st.integers(1, 3)):
                edges.append((2, state))
            rows[state, bits] = ToyRow(DEAD if state == 0 or strict else state, tuple(edges))
    final = length
    rows |= {(final, bits): ToyRow(DEAD) for bits in range(4)}
    steps = draw(programs(3, registers, values, CHAIN))
    return draw(st.sampled_from([Toy, FrugalToy]))(rows, frozenset({final}), steps, registers)


def toys(registers: int, values: int, quiet_gaps: bool = False) -> st.SearchStrategy[Toy]:
    """Automata; with `quiet_gaps` events with no bit set are neither marked nor accepted at."""
    return wild_toys(registers, values, quiet_gaps) | chains(registers, values, quiet_gaps)


@st.composite
def streams(draw: st.DrawFn, size: int, values: int, keys: int, gaps: bool = False) -> list[ToyEvent]:
    """Up to `size` events; places in their partitions leave gaps if `gaps`."""
    ordinals: defaultdict[int, int] = defaultdict(int)
    events = []
    stamp = 0
    bits = st.sampled_from([1, 2, 3, 1, 2, 3, 0])
    value = st.sampled_from([0, 1, 0, 1, 2, -1, None])
    for _ in range(draw(st.integers(1, size))):
        key = draw(st.integers(0, keys - 1))
        place = ordinals[key] + (draw(st.integers(0, 2)) if gaps else 0)
        ordinals[key] = place + 1
        stamp += draw(st.integers(0, 2))
        numbers = tuple(draw(value) for _ in range(values))
        events.append(ToyEvent(draw(bits), numbers, key, place, stamp))
    return events
