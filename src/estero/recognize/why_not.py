"""Why not: less restrictive queries are counted, one after the other, until one shows what excludes events.

An event *comes* to a part if it ends a complex event of the sequence up to that part, without the conditions
on the part itself. Then each of these conditions is checked alone, and each structural condition (window,
keys, distances, contiguity, absences) is omitted alone (docs/funnels.md).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import pairwise
from typing import Any, Final, TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from estero.answers.shown_values import shown_values
from estero.answers.why_not import Reason, Step, WhyNot
from estero.automata.cea import EventPredicate
from estero.classify.column_names import BITS, POSITION
from estero.classify.vectors.conditions import ARROW_TESTS
from estero.errors import QueryError
from estero.language.check.queries import check_query
from estero.language.tree import expressions as e
from estero.language.tree import pattern as p
from estero.language.tree.conditions import as_unary
from estero.language.tree.durations import Duration
from estero.language.tree.levels import levels_of, parts_of, prefix_query
from estero.language.tree.names import some
from estero.language.tree.query import (
    Consume,
    QueryTree,
    Selected,
    SelectExpression,
    SelectItem,
    Strategy,
    limit_text,
)
from estero.language.tree.relaxations import (
    EARLIER,
    LATER,
    Relaxation,
    conditions_on,
    in_single_conjuncts,
    relaxations,
    with_conditions,
    without_structure,
)
from estero.language.tree.selection import label_types
from estero.language.tree.whole import as_written, with_whole
from estero.plan.plan import Layout
from estero.plan.rules import plan_of
from estero.recognize.budget import SECONDS, Budget, OutOfTimeError
from estero.recognize.source_run import SourceRun
from estero.recognize.until import AFTER_ALL
from estero.system.cached_property import cached_property

SAMPLE: Final = 50_000
"""The number of complex events of a less restrictive query that are searched for the nearest miss."""
_MOST_TYPES: Final = 60
"""The most types that are distinguished: one word of bits."""

Asked = TypeVar("Asked")
_GAP: Final = "gap"
_NO_CHOICE: Final[dict[str, Any]] = {
    "select": None,
    "strategy": Strategy.ALL,
    "disjoint": False,
    "consume": Consume.NONE,
    "limit": None,
    "per": None,
    "text": "",
}


def why_not(run: SourceRun, sample: int | None = None, seconds: float | None = None) -> WhyNot:
    """Explains why the query of a run does not find more.

    At most `sample` rows are searched for each nearest miss.

    Questions that exceed their part of the `seconds` are left out.
    """
    layout = replace(run.source.layout, schema=run.plan.classification.schema)
    if sample is not None and sample < 1:
        raise ValueError(f"sample must be at least 1, not {sample}")
    if seconds is not None and not seconds > 0:
        raise ValueError(f"seconds must be more than 0, not {seconds}")
    budget = Budget(SECONDS if seconds is None else seconds)
    return WhyNotSearch(run, layout, SAMPLE if sample is None else sample, budget).explanation()


@dataclass(frozen=True)
class WhyNotSearch:
    """The reasons that keep events away from the first part of a sequence that a run lacks."""

    run: SourceRun
    layout: Layout
    sample: int
    budget: Budget
    unanswered: list[str] = field(default_factory=list)

    def explanation(self) -> WhyNot:
        """The explanation."""
        steps, first, asked = self.steps_to_the_part
        part = steps[-1].part if steps else str(asked.pattern)
        loose = replace(asked, pattern=p.unshared(with_conditions(asked.pattern, self._labels)))
        came = self._answered(part, lambda: self.ends(loose))
        reasons: list[Reason] = []
        if came is not None:
            reasons += self._types(asked, came)
            typed = bool(reasons)
            reasons += self._conditions(asked, loose, came)
            reasons += [
                reason
                for reason in self._structure(loose, first, came)
                if reason.kind != "order" or not typed
            ]
        passed = steps[-1].events if steps else self._number_of_ends(str(asked.pattern), asked)
        within = replace(self.run, budget=self.budget)
        number = self._answered("the number of complex events", within.count)
        undecided = self._answered(
            "the number of those that wait for a deadline", lambda: within.undecided().count()
        )
        if passed and number == 0 and undecided == 0:
            reasons.append(Reason("choice", _choice_of(self.run.plan.tree), passed))
        return WhyNot(
            found=number,
            undecided=undecided,
            steps=steps,
            waited_for=part,
            came=None if came is None else came.size,
            passed=passed,
            reasons=reasons,
            unanswered=tuple(dict.fromkeys(self.unanswered)),
        )

    def _answered(self, question: str, ask: Callable[[], Asked]) -> Asked | None:
        """The answer to a question; None, and the question is noted, if its time is not enough."""
        self.budget.begin()
        try:
            return ask()
        except OutOfTimeError:
            self.unanswered.append(question)
            return None

    def _number_of_ends(self, question: str, tree: QueryTree) -> int | None:
        ends = self._answered(question, lambda: self.ends(tree))
        return None if ends is None else ends.size

    @cached_property
    def tree(self) -> QueryTree:
        """The query without strategy, LIMIT and CONSUME BY: these only choose among what it finds."""
        tree = as_written(self.run.plan.tree, self.layout.schema.time)
        return replace(tree, pattern=p.unshared(in_single_conjuncts(tree.pattern)), **_NO_CHOICE)

    @cached_property
    def _levels(self) -> tuple[int, ...]:
        """The number of parts up to each level; none without a sequence or if levels cannot be told apart."""
        levels = levels_of(self.tree.pattern)
        try:
            for parts in levels[:-1]:
                self._prefix(parts)
        except QueryError:  # what must be absent depends on a later part
            return ()
        return levels

    @cached_property
    def steps_to_the_part(self) -> tuple[list[Step], int, QueryTree]:
        """The parts of the sequence up to the first lacking one, where it begins, and the query up to it.

        If none is lacking it is the last part; a pattern without levels is one part.
        """
        steps: list[Step] = []
        first, asked = 0, self.tree
        texts = parts_of(self.tree.pattern) if self._levels else ()
        for (begun, last), text in zip(pairwise((0, *self._levels)), texts, strict=True):
            first, asked = begun, self.tree if last == self._levels[-1] else self._prefix(last)
            steps.append(Step(text, self._number_of_ends(text, asked)))
            if not steps[-1].events:
                break
        return steps, first, replace(asked, pattern=p.unshared(asked.pattern))

    @cached_property
    def _labels(self) -> set[str]:
        """The labels that the part adds."""
        _, first, asked = self.steps_to_the_part
        labels = set(label_types(asked.pattern))
        return labels - set(label_types(self._prefix(first).pattern)) if first else labels

    def _prefix(self, parts: int) -> QueryTree:
        """The query of the first parts, without conditions on the whole complex event."""
        return prefix_query(with_whole(self.tree, self.layout.schema.time), parts)

    # ------------------------------------------------------------------------------------- reasons

    def _types(self, asked: QueryTree, came: NDArray[np.int64]) -> Iterator[Reason]:
        """The types of the part that have no events at all."""
        types = label_types(asked.pattern)
        atoms = dict.fromkeys(atom for label in types if label in self._labels for atom in types[label])
        for atom in atoms if len(atoms) > 1 or not came.size else ():
            if self._number_of_ends(str(atom), QueryTree(atom, streams=asked.streams)) == 0:
                yield Reason("type", str(atom), 0)

    def _conditions(self, asked: QueryTree, loose: QueryTree, came: NDArray[np.int64]) -> Iterator[Reason]:
        """Each condition on the part, and how many of the events that came do not satisfy it."""
        if not came.size:
            return
        labels = self._labels
        conditions = conditions_on(asked.pattern, labels)
        rejected: list[tuple[e.Node, int]] = []
        for condition in conditions:
            alone = replace(asked, pattern=with_conditions(asked.pattern, labels, condition))
            passed = self._number_of_ends(str(condition), alone)
            if passed is not None:
                rejected.append((condition, came.size - passed))
        sides = _Sides(condition for condition, number in rejected if number)
        measured = [pair for pair in sides.measures if not self._faults(replace(loose, select=pair))]
        shown = replace(loose, select=tuple(column for pair in measured for column in pair))
        ways = [Strategy.LAST]
        if any(as_unary(condition, self._labels) is None for condition in conditions):
            ways.append(Strategy.NEXT)
        rows = [self._answered("nearest misses", partial(self._rows, shown, way)) for way in ways]
        answered = [table for table in rows if table is not None]
        for condition, number in rejected:
            nearest = sides.nearest(condition, pa.concat_tables(answered)) if answered else ""
            yield Reason("condition", str(condition), number, nearest)

    def _structure(self, loose: QueryTree, first: int, came: NDArray[np.int64]) -> Iterator[Reason]:
        """Each structural condition that excludes events, or a note that they do so together."""
        some_alone = False
        for relaxed in relaxations(loose, first):
            ends = self._answered(f"without {relaxed.said}", partial(self.ends, relaxed.tree))
            more = np.setdiff1d(came if ends is None else ends, came)
            if more.size:
                some_alone = True
                nearest = self._answered("nearest misses", partial(self._nearest_place, relaxed, more))
                yield Reason(relaxed.kind, relaxed.said, more.size, nearest or "")
        if not (some_alone or came.size):
            together = "what is asked of time, keys and places"
            number = self._number_of_ends(f"without {together}", without_structure(loose))
            if number:
                yield Reason("together", together, number)
            elif number == 0:
                yield Reason("order", p.shortened(loose.pattern), 0)

    # --------------------------------------------------------------------------------- nearest misses

    def _nearest_place(self, relaxed: Relaxation, more: NDArray[np.int64]) -> str:
        """The nearest complex event of those that end at `more`, and its position."""
        rows = self._rows(replace(relaxed.tree, select=self._shown(relaxed)))
        rows = rows.filter(pa.array(np.isin(rows["end"].to_numpy(), more)))
        if not rows.num_rows:
            return ""
        if relaxed.kind == "window":
            return self._too_long(rows)
        if not relaxed.between:
            return f"for instance {_where(rows, 0)}"
        earlier = np.array([marked[-1]["position"] for marked in rows[EARLIER].to_pylist()])
        later = np.array([marked[0]["position"] for marked in rows[LATER].to_pylist()])
        row = int(np.argmin(later - earlier))
        said = f"nearest: events {earlier[row]} and {later[row]}"
        if relaxed.kind == "contiguity":
            types = self._types_between(int(earlier[row]), int(later[row]))
            return f"{said}, with {types} between" if types else said
        if relaxed.kind == "distance" and _GAP in rows.column_names:
            return f"{said}, {_shown(rows[_GAP].slice(row, 1))} apart"
        return said

    def _shown(self, relaxed: Relaxation) -> tuple[Selected, ...]:
        """The values of complex events that are needed to find the nearest one."""
        if not relaxed.between:
            return ()
        labels = SelectItem(EARLIER, ()), SelectItem(LATER, ())
        if relaxed.kind != "distance" or self.layout.schema.time is None:
            return labels
        time = e.Attribute(self.layout.schema.time)
        gap = e.Arithmetic("-", e.Aggregate("first", LATER, time), e.Aggregate("last", EARLIER, time))
        measured = (*labels, SelectExpression(gap, _GAP))
        return labels if self._faults(replace(relaxed.tree, select=measured)) else measured

    def _too_long(self, rows: pa.Table) -> str:
        """The excess of the shortest complex event over the window."""
        window = self.run.plan.window
        if window is None:
            raise TypeError("only a query with a window has complex events that are too long")
        names = ("start", "end") if window.in_positions else ("start_time", "end_time")
        begun, ended = (rows[name].cast(pa.int64()).to_numpy() for name in names)
        row = int(np.argmin(ended - begun))
        excess = int(ended[row] - begun[row]) - window.length
        tick = self.layout.tick_ns
        said = f"{excess:,}" if window.in_positions or tick is None else str(Duration(excess * tick))
        return f"nearest: {_where(rows, row)}, too long by {said}"

    def _types_between(self, first: int, last: int) -> str:
        """The types of the events between two positions."""
        names = self.run.source.type_names()[:_MOST_TYPES]
        asked = replace(
            self.run.plan.classification,
            predicates=tuple(EventPredicate((name,)) for name in names),
            keep_all=False,
            payload=(),
            values=(),
            keys=(),
        )
        seen = 0
        for batch in self.run.source.read(asked):
            position = batch.column(POSITION).to_numpy()
            bits = batch.column(f"{BITS}0").to_numpy()[(position > first) & (position < last)]
            seen |= int(np.bitwise_or.reduce(bits)) if bits.size else 0
            if position[-1] >= last:
                break
        return some([name for bit, name in enumerate(names) if seen >> bit & 1], word="and")

    # ------------------------------------------------------------------------------------ what is run

    def _run(self, tree: QueryTree) -> SourceRun:
        until = AFTER_ALL if p.ending(tree.pattern) else None
        return SourceRun(plan_of(tree, self.layout), self.run.source, until=until, budget=self.budget)

    def ends(self, tree: QueryTree) -> NDArray[np.int64]:
        """The positions at which complex events of a query end, ascending."""
        return self._run(replace(tree, limit=1, select=())).ends()

    def _rows(self, tree: QueryTree, which: Strategy = Strategy.LAST) -> pa.Table:
        """One complex event for each end: that of the latest events, or of the earliest (NEXT)."""
        run = self._run(replace(tree, strategy=which))
        return pa.Table.from_batches(run.tables(limit=self.sample), run.schema)

    def _faults(self, tree: QueryTree) -> bool:
        """Whether a query is invalid: a value of a label that marks several events, for instance."""
        measured = [item for item in tree.select or () if isinstance(item, SelectExpression)]
        return bool(check_query(replace(tree, select=tuple(measured)), self.layout.schema))


class _Sides:
    """The two sides of each comparison among some conditions, as values that a query shows."""

    def __init__(self, conditions: Iterable[e.Node]) -> None:
        self._compared: dict[int, tuple[e.Comparison, str, str]] = {}
        for number, condition in enumerate(conditions):
            comparison = condition
            if isinstance(condition, e.EventFilter):
                comparison = e.with_variable(condition.predicate, condition.variable)
            if isinstance(comparison, e.Comparison) and not e.has_previous(comparison):
                self._compared[id(condition)] = comparison, f"left {number}", f"right {number}"

    @property
    def measures(self) -> list[tuple[SelectExpression, SelectExpression]]:
        """The sides of each comparison."""
        return [
            (SelectExpression(comparison.left, left), SelectExpression(comparison.right, right))
            for comparison, left, right in self._compared.values()
        ]

    def nearest(self, condition: e.Node, rows: pa.Table) -> str:
        """The row with the least difference of sides, among those in which a comparison is false."""
        comparison, *names = self._compared.get(id(condition), (None, "", ""))
        if comparison is None or names[0] not in rows.column_names or not rows.num_rows:
            return ""
        left, right = (rows[name] for name in names)
        known = np.asarray(left.is_valid()) & np.asarray(right.is_valid())
        if not known.any():
            return f"{comparison.left if left.null_count else comparison.right} is NULL"
        rejected = np.flatnonzero(known & ~_is_true(comparison.operator, left, right))
        if not rejected.size:
            return ""
        numbers = [_as_numbers(side) for side in (left, right)]
        row = int(rejected[0])
        if numbers[0] is not None and numbers[1] is not None:
            row = int(rejected[np.argmin(np.abs(numbers[0] - numbers[1])[rejected])])
        values = [
            f"{side} is {_shown(column.slice(row, 1))}"
            for side, column in ((comparison.left, left), (comparison.right, right))
            if not isinstance(side, e.Literal)
        ]
        return f"nearest: {' and '.join(values)} ({_where(rows, row)})"


def _choice_of(tree: QueryTree) -> str:
    """The clause that chooses among the complex events of a query."""
    chosen = [] if tree.strategy is Strategy.ALL else [f"SELECT {tree.strategy.value}"]
    if tree.consume is not Consume.NONE:
        chosen.append(f"CONSUME BY {tree.consume.value}")
    if tree.limit is not None:
        chosen.append(f"LIMIT {limit_text(tree.limit, tree.per)}")
    return some(chosen, word="and")


def _is_true(operator: str, left: pa.ChunkedArray, right: pa.ChunkedArray) -> NDArray[np.bool_]:
    satisfied: NDArray[np.bool_] = ARROW_TESTS[operator](left, right).fill_null(False).to_numpy()
    return satisfied


def _as_numbers(column: pa.ChunkedArray) -> NDArray[np.float64] | None:
    """Values as numbers whose differences are distances; None if they have none."""
    kind = column.type
    if pa.types.is_timestamp(kind) or pa.types.is_duration(kind):
        column = column.cast(pa.int64())
    elif not (pa.types.is_integer(kind) or pa.types.is_floating(kind)):
        return None
    numbers: NDArray[np.float64] = column.cast(pa.float64(), safe=False).fill_null(0).to_numpy()
    return numbers


def _where(rows: pa.Table, row: int) -> str:
    start, end = rows["start"][row].as_py(), rows["end"][row].as_py()
    return f"event {end}" if start == end else f"events {start} to {end}"


def _shown(one: pa.ChunkedArray) -> str:
    """The single value of a column, in the notation of queries if possible."""
    if pa.types.is_duration(one.type) and one.null_count == 0:
        return str(Duration(one.cast(pa.duration("ns")).cast(pa.int64())[0].as_py()))
    (value,) = shown_values(one.combine_chunks())
    if isinstance(value, float):
        return f"{value:.12g}"
    return repr(value) if isinstance(value, str) else str(value)
