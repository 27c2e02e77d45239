"""Random sequences by stages and samples, the events that they read, and what they mean there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

from estero.automata.cea import EventPredicate
from estero.errors import QueryError
from estero.language.tree.expressions import Attribute, In, Literal
from estero.language.tree.schema import Schema
from estero.plan.plan import Layout, Plan
from estero.plan.samples import plan_sample
from estero.plan.sequences import plan_sequence
from estero.plan.stages import KeyField, Stage, stand_in
from estero.queries.query import Query
from estero.queries.statement import Statement
from estero.reference import event_sequences as reference

LETTERS = "ABCD"
FIELDS = ("k", "m")
LISTS = ("l",)
COLUMNS = pa.schema(
    [
        ("t", pa.int64()),
        ("c", pa.string()),
        ("k", pa.string()),
        ("m", pa.string()),
        ("l", pa.list_(pa.string())),
    ]
)
Row = dict[str, Any]


@dataclass(frozen=True)
class Drawn:
    """A stage: the letters that it is satisfied by, and its key."""

    letters: tuple[str, ...]
    keys: tuple[KeyField, ...]
    missing: bool = False

    @property
    def planned(self) -> Stage:
        """As a plan has it."""
        condition = In(Attribute("c"), tuple(map(Literal, self.letters)))
        return Stage(EventPredicate(("Event",), condition), self.keys, self.missing)

    def meant(self, events: Sequence[Row]) -> reference.Stage:
        """As the reference has it."""
        optional = [field.optional for field in self.keys]
        keys = [
            reference.keys_of([event.get(field.attribute or "") for field in self.keys], optional)
            if event["c"] in self.letters
            else []
            for event in events
        ]
        return reference.Stage(keys, self.missing)


@dataclass(frozen=True)
class Staged:
    """A sequence, or a sample if it is in no order: `most` for each key. Its span is in seconds."""

    stages: tuple[Drawn, ...]
    span: int | None
    until: Drawn | None = None
    ordered: bool = True
    most: int = 1

    @property
    def query(self) -> Query:
        """As users have it."""
        return Query(StagedStatement.of(self))

    def with_letters(self, other: Mapping[str, str]) -> Staged:
        """The same with other letters in the place of each."""

        def renamed(stage: Drawn) -> Drawn:
            return replace(stage, letters=tuple(sorted(other[letter] for letter in stage.letters)))

        until = None if self.until is None else renamed(self.until)
        return replace(self, stages=tuple(map(renamed, self.stages)), until=until)

    def meant(self, events: Sequence[Row]) -> list[reference.Places]:
        """The results over events in order."""
        until = None if self.until is None else self.until.meant(events)
        stages = [stage.meant(events) for stage in self.stages]
        asked = reference.EventSequence(stages, self.span, until)
        return reference.evaluate_sequence(asked, [event["t"] for event in events])


@dataclass(frozen=True)
class StagedStatement(Statement):
    """The statement of a sequence that has no text."""

    made_by = "eql"
    staged: Staged

    @classmethod
    def of(cls, staged: Staged) -> StagedStatement:
        """The statement of a sequence."""
        labels = [str(number) for number in range(1, len(staged.stages) + 1)]
        stages = [stage.planned for stage in staged.stages]
        return cls(stand_in(stages, labels, _nanoseconds(staged.span)), staged)

    def __str__(self) -> str:
        return repr(self.staged)

    def _errors(self, schema: Schema | None, type_column: str | None) -> list[QueryError]:
        del schema, type_column
        return []

    def _plan(self, layout: Layout) -> Plan:
        until = None if self.staged.until is None else self.staged.until.planned
        stages = [stage.planned for stage in self.staged.stages]
        if not self.staged.ordered:
            return plan_sample(stages, layout, most=self.staged.most, text=str(self))
        return plan_sequence(
            stages, layout, until=until, span_ns=_nanoseconds(self.staged.span), text=str(self)
        )

    def type_names(self) -> list[tuple[str, ...]]:
        return [("Event",)]


def _nanoseconds(span: int | None) -> int | None:
    return None if span is None else span * 10**9


@st.composite
def staged(draw: st.DrawFn, *, listed: bool = True) -> Staged:
    """Sequences of two to five stages; keys may be lists."""
    width = draw(st.integers(0, 2))
    names = [*FIELDS, *(LISTS if listed else ()), None]
    by_stage = draw(st.booleans())
    shared = [KeyField(draw(st.sampled_from(names)), draw(st.booleans())) for _ in range(width)]

    def keys() -> tuple[KeyField, ...]:
        if not by_stage:
            return tuple(shared)
        return tuple(replace(field, attribute=draw(st.sampled_from(names))) for field in shared)

    def stage(*, missing: bool) -> Drawn:
        letters = draw(st.sets(st.sampled_from(LETTERS), min_size=1, max_size=2))
        return Drawn(tuple(sorted(letters)), keys(), missing)

    missing = draw(st.lists(st.booleans(), min_size=2, max_size=5).filter(lambda drawn: not all(drawn)))
    stages = [stage(missing=one) for one in missing]
    if draw(st.booleans()):  # runs: a stage that is repeated
        place = draw(st.integers(0, len(stages) - 1))
        stages.insert(place, stages[place])
    spans = st.integers(0, 6)
    span = draw(spans if missing[0] or missing[-1] else st.one_of(st.none(), spans))
    return Staged(tuple(stages), span, draw(st.one_of(st.none(), st.builds(stage, missing=st.just(False)))))


@st.composite
def samples(draw: st.DrawFn) -> Staged:
    """Samples of two to four conditions, with one key or two, and one to four for each key."""
    sequence = draw(staged())
    stages = [replace(stage, missing=False) for stage in sequence.stages][:4]
    if not stages[0].keys:
        keys = (KeyField("k"),)
        stages = [replace(stage, keys=keys) for stage in stages]
    return Staged(tuple(stages), None, ordered=False, most=draw(st.integers(1, 4)))


@st.composite
def dense_samples(draw: st.DrawFn) -> tuple[Staged, list[Row]]:
    """Samples of two to four conditions that events often share, and events with few keys, in runs."""
    keys = (KeyField("k", draw(st.booleans())),)
    letters = st.sets(st.sampled_from("ABC"), min_size=1, max_size=3)
    stages = [Drawn(tuple(sorted(drawn)), keys) for drawn in draw(st.lists(letters, min_size=2, max_size=4))]
    run = st.tuples(st.sampled_from("AABBC"), st.sampled_from(["x", "x", "x", None]), st.integers(1, 4))
    marks = [mark for *mark, count in draw(st.lists(run, max_size=6)) for _ in range(count)]
    events: list[Row] = [
        {"t": time, "c": letter, "k": key, "m": None, "l": None} for time, (letter, key) in enumerate(marks)
    ]
    return Staged(tuple(stages), None, ordered=False, most=draw(st.integers(1, 9))), events


@st.composite
def rows(draw: st.DrawFn, *, max_size: int = 24) -> list[Row]:
    """Events in order of time, several at one time."""
    values = st.sampled_from(["x", "y", None])
    event: st.SearchStrategy[Row] = st.fixed_dictionaries(
        {
            "step": st.sampled_from([0, 1, 1, 2]),
            "c": st.sampled_from(LETTERS),
            "k": st.sampled_from(["x", "x", "y", None]),
            "m": values,
            "l": st.one_of(st.none(), st.lists(values, max_size=3)),
        }
    )
    time, events = 0, []
    for drawn in draw(st.lists(event, max_size=max_size)):
        time += drawn.pop("step")
        events.append({"t": time, **drawn})
    return events


def table_of(events: Sequence[Row]) -> pa.Table:
    """The events as a table."""
    return pa.Table.from_pylist(list(events), schema=COLUMNS)
