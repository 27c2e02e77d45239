"""The answer of a query: lazy, limited, counted, sampled, written, shown."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from os import PathLike
from typing import TYPE_CHECKING, Any, BinaryIO, Literal, overload

import pyarrow as pa

from estero.answers.answer_columns import AnswerColumns
from estero.answers.complex_event import ComplexEvent, complex_events
from estero.answers.frames import Batches
from estero.answers.funnel import Funnel
from estero.answers.in_memory import OBJECTS_TO_ARROW, within
from estero.answers.rows import Rows
from estero.answers.run import Divisible, KnownLater, Run, WholeSet, WithEvents, whole_stream
from estero.answers.shown_values import held_by_python
from estero.answers.writers import write_answer
from estero.arguments import checked, is_whole, shown
from estero.engine.walk.share import Share
from estero.errors import legible

if TYPE_CHECKING:
    from estero.answers.participation import Aggregates, Participation
    from estero.answers.why_not import WhyNot
    from estero.plots import Picture

SKIPPED_BY_READING = 100_000
"""The largest start of a slice that is reached by reading and dropping; later ones by counting."""

_PREVIEWED = 10
"""The number of complex events that a notebook shows."""


@dataclass(slots=True)
class _Whole:
    """A run with its known counts, shared by all answers that are parts of it."""

    run: Run
    total: int | None = field(default=None)

    def count(self, enough: int | None = None) -> int:
        """The number of complex events; with `enough`, counting may stop there."""
        if self.total is not None:
            return self.total
        total = self.run.count(enough=enough)
        if enough is None or total < enough:
            self.total = total
        return total


@checked
class Answer(Batches):
    """The complex events of a query, in order of their end position.

    Nothing runs until a question is asked, and each question runs the query anew, so an answer of any
    size can be begun, limited and abandoned; only `count` is remembered. There is no ``len()``, because it
    cannot return large counts: use `count`. ``bool(answer)`` looks for one complex event.

    ``answer[i]`` is a complex event and ``answer[i:j]`` an answer; both find their place by counting. Methods
    that hold the whole answer in memory raise `LimitExceeded` before they fill it, unless the answer has a
    limit.
    """

    def __init__(
        self,
        run: Run,
        *,
        start: int = 0,
        stop: int | None = None,
        picked: tuple[int, ...] | None = None,
        whole: _Whole | None = None,
    ) -> None:
        self._run = run
        self._whole = _Whole(run) if whole is None else whole
        self._start = start
        self._stop = stop
        self._picked = picked

    @property
    def schema(self) -> pa.Schema:
        """The columns of the answer as a table, known without running it."""
        return self._run.schema

    def batches(self) -> Iterator[pa.RecordBatch]:
        """The answer as record batches of `schema`, made as they are asked for."""
        if self._picked is not None:
            return self._run.at(self._picked)
        if self._stop is not None and self._stop <= self._start:
            return iter(())
        if self._start <= SKIPPED_BY_READING:
            return _without_first(self._start, self._run.tables(limit=self._stop))
        return self._run.at(range(self._start, self._start + self.count()))

    def __iter__(self) -> Iterator[ComplexEvent]:
        layout = AnswerColumns.of(self.schema)
        for batch in self.batches():
            yield from complex_events(batch, layout)

    def __bool__(self) -> bool:
        return next(iter(self.limit(1)), None) is not None

    def count(self) -> int:
        """The exact number of complex events, of any size, without enumerating them."""
        if self._picked is not None:
            return len(self._picked)
        total = self._whole.count(self._stop)
        end = total if self._stop is None else min(total, self._stop)
        return max(0, end - self._start)

    def undecided(self) -> Undecided:
        """The complex events that are still undecided: they become answers if no further events come.

        In a query that ends with ``NOT(…) FOR d`` they end less than `d` before the last event, or before
        ``until``; other queries have none. The columns are those of the answer, where ``decided_time`` says
        how long each one waits. It is lazy like any answer, and equals its count:
        ``answer.undecided() == 2``. Raises ValueError for a part of an answer.
        """
        if not self._is_whole:
            raise ValueError("undecided() needs the whole answer, not a part of it")
        if isinstance(self._run, KnownLater):
            return Undecided(self._run.undecided())
        raise ValueError("an answer of a recognizer is decided; what is not yet comes with later pushes")

    def limit(self, n: int) -> Answer:
        """The first `n` complex events in order of their end position; ValueError if n is negative."""
        if n < 0:
            raise ValueError(f"a limit is at least 0, not {n}")
        return self[:n]

    def sample(self, k: int, *, seed: int | None = None) -> Answer:
        """`k` complex events drawn uniformly without replacement, in the order of the answer.

        If there are no more than `k`, it gives all of them. The same `seed` draws the same complex events. It
        counts and then goes to those that were drawn, without enumerating the others. Raises ValueError if k
        is negative.
        """
        if k < 0:
            raise ValueError(f"a sample has at least 0 complex events, not {k}")
        total = self.count()
        if k >= total:
            return self[:total]
        drawn = _drawn(total, k, random.Random(seed))  # noqa: S311 - a sample, not a secret
        return self._pick(drawn)

    def participation(self, *, by_partition: bool = False) -> Participation:
        """The number of complex events that mark each event, in one row for each event and label.

        The rows are those of `rows`, with each event once under a label and an exact ``count``, of any size,
        in the place of ``match``; `by_partition` puts the partition columns first and orders rows by them.
        It takes time linear in the compact set or, with a window, in what a count inside it looks at. Complex
        events are enumerated only where the plan does so anyway (`Query.explain` says it), or where LIMIT
        chooses among those with one end. Raises ValueError for a part of an answer.
        """
        return self._whole_set("participation()").participation(by_partition=by_partition)

    @overload
    def aggregate(self, *, by_partition: Literal[False] = False, **expressions: str) -> dict[str, Any]: ...

    @overload
    def aggregate(self, *, by_partition: Literal[True], **expressions: str) -> Aggregates: ...

    def aggregate(self, *, by_partition: bool = False, **expressions: str) -> dict[str, Any] | Aggregates:
        """Aggregates over all complex events, by name, such as ``total="sum(x.amount)"``.

        The result is a dict or, `by_partition`, a table with a row for each partition with complex events.

        - ``count(*)`` is the number of complex events; ``count``, ``sum``, ``min``, ``max`` and ``avg`` of
          ``x.amount``, and ``count(x)``, range over the events marked x, each once for every complex event
          that it is in.
        - ``count``, ``min``, ``max``, ``avg`` and ``sum`` of ``duration``; its sum is an int, in ticks of the
          time column (microseconds for timestamps, unless it has other units). ``min`` and ``max`` of
          ``start_time`` and ``end_time``.
        - ``max(sum(x.amount))``: an aggregate over complex events of a ``sum``, ``count``, ``min`` or ``max``
          within each.

        NULL is left out, and an aggregate of nothing is None, or 0 for ``count``. Integers, decimals and
        durations are exact, of any size; a sum or an average of floats is the nearest float, or an infinity
        (additions in ``max(sum(…))`` round). The compact set gives all this. Complex events are enumerated
        only where the plan does so, where LIMIT chooses, for ``sum``, ``avg`` and ``count`` of an aggregate
        within each, and for ``sum(duration)`` and ``avg(duration)`` of joins with branches.

        Raises DataError for NaN where aggregates within complex events are compared; ValueError for an
        expression that is none of these, and for a part of an answer.
        """
        if not expressions:
            raise ValueError('aggregate() needs an expression: write aggregate(total="sum(x.amount)")')
        for name, text in expressions.items():
            if not isinstance(text, str):
                raise TypeError(
                    f'{name} must be the text of an expression, such as "count(*)", not {shown(text)}'
                )
        run = self._whole_set("aggregate()")
        return run.aggregate_by_partition(expressions) if by_partition else run.aggregate(expressions)

    def top(self, n: int, by: str, *, ascending: bool = False, by_partition: bool = False) -> Answer:
        """The `n` complex events with the largest value of `by`, best first, as an answer in memory.

        `by` is ``duration``, ``start_time``, ``end_time``, ``sum(x.amount)`` or ``count(x)``; a sum over no
        values is 0 here, and floats are rounded at each addition. `ascending` puts the smallest first. Ties
        keep the order of the answer. `by_partition` gives `n` for each partition, and partitions in the order
        of their columns, NULL last.

        One pass over the compact set finds the best below each node; then each complex event costs its own
        length, times the logarithm of the number drawn so far, and no others are visited. All are enumerated
        only where the plan does so, where LIMIT chooses, and for times in joins with branches.

        Raises DataError for NaN in a sum; ValueError if n is negative, for another `by`, and for a part of an
        answer. Source: docs/papers.md.
        """
        if n < 0:
            raise ValueError(f"the best are at least 0 complex events, not {n}")
        run = self._whole_set("top()").top(n, by, ascending=ascending, by_partition=by_partition)
        return Answer(run)

    def ranked(self, by: str, *, ascending: bool = False) -> Answer:
        """All complex events in the order of `top`, as a lazy answer that may be left at any point.

        The first complex event comes after one pass over the compact set, which stays in memory with its
        events while the answer is read; the next ones are found as they are asked for. Each reading ranks
        anew. Errors are those of `top`. Source: docs/papers.md.
        """
        return Answer(self._whole_set("ranked()").ranked(by, ascending=ascending))

    @property
    def _is_whole(self) -> bool:
        """Whether this is the whole answer and not a part of it."""
        return self._picked is None and self._start == 0 and self._stop is None

    def _whole_set(self, asked: str) -> WholeSet:
        """The run, if this is the whole answer and can be asked about all complex events together."""
        if not self._is_whole:
            raise ValueError(f"{asked} needs the whole answer, not a part of it")
        if isinstance(self._run, WholeSet):
            return self._run
        raise ValueError(f"{asked} is not available for rows in memory: use {self._run.whole_answer}")

    def funnel(self, *, by_partition: bool = False, by: Sequence[str] = (), chosen: bool = False) -> Funnel:
        """The number of starts that reach each step of the sequence, in one row for each step.

        `by_partition` gives these rows for each partition, and `by` for each value of attributes of the first
        event, such as ``variant`` or ``page.variant``.

        A start reaches a step if a complex event of the parts up to it starts there, inside the window; of
        the filters, those count that concern these parts. The choices of the strategy and of LIMIT do not
        matter unless `chosen` counts only chosen complex events at the last step. Complex events are
        enumerated only where the pattern compares its events with each other other than by PARTITION BY, and
        where chosen or consumed ones are asked for.

        Raises QueryError for a query without a window or with a pattern that is not a sequence; ValueError
        for a part of an answer, and for an attribute that no event of the first step has.
        """
        if isinstance(by, str):
            raise TypeError(f'by is a list of attributes: write by=["{by}"]')
        if not self._is_whole:
            raise ValueError("a funnel counts all starts: ask the whole answer, not a part of it")
        run = whole_stream(self._run, "a funnel is")
        return Funnel(run.funnel(by_partition=by_partition, by=by, chosen=chosen))

    def partials(self, *, chosen: bool = False) -> Answer:
        """The partial matches: one for each start that completed some steps of a sequence, but not all.

        It is the one that NEXT would choose among the complex events of as many steps as the start completed,
        inside its window, and is given when the window has passed. A start at which a complex event begins
        has none, even if the strategy or LIMIT does not choose it; with `chosen` it then has one. The columns
        are those of this answer, followed by ``steps`` (int64, from 1) and, where the window is one of time,
        ``expired_time``; labels of later steps are empty, and values of SELECT that need them are NULL. Rows
        are ordered by end and held in memory; counting does not list them.

        Raises `QueryError` for a query without a window or with a pattern that is not a sequence. Source:
        docs/funnels.md.
        """
        return Answer(whole_stream(self._run, "partial matches are").partials(chosen=chosen))

    def why_not(self, sample: int | None = None, *, seconds: float | None = None) -> WhyNot:
        """The reasons why there are not more complex events: how far events come, and what stops them.

        It asks weaker questions: the query up to the first part that is missing, without the conditions on
        that part, with each of them alone, and without the window, the keys, each distance, contiguity or
        absence. Each question reads the events once, and there are a few dozen at most. Complex events are
        enumerated only where filters look at whole ones. The nearest miss of each is sought among at most
        `sample` complex events (50,000 by default).

        Enumeration takes at most `seconds` in all questions together (10 by default; `math.inf` for no
        limit); each question may use half of the time that is left, and those that need more are named in
        ``unanswered``. Passes that are linear in the events are not limited.

        Raises ValueError for a part of an answer, and for the answer of a push.
        """
        if not self._is_whole:
            raise ValueError("why_not() needs the whole answer, not a part of it")
        return whole_stream(self._run, "why not more is asked").why_not(sample, seconds)

    def share(self, number: int, of: int) -> Answer:
        """Share `number` (0 … of - 1) of `of`: all shares together have each complex event once.

        Shares are for processes that read the same events: each recognizes everything, goes to its part by
        counting and enumerates only that, without any messages. Sizes differ by at most one complex event,
        except where filters are checked while enumerating (`Query.explain` names them). A share of a slice or
        a sample is a slice of it. Raises ValueError if there is no such share.
        """
        share = Share(number, of)
        if self._is_whole:
            if not isinstance(self._run, Divisible):
                raise ValueError(f"these rows are not shared: divide {self._run.whole_answer} into shares")
            return Answer(self._run.shared(share))
        first, after = share.range_of(self.count())
        return self[first:after]

    @overload
    def __getitem__(self, index: int) -> ComplexEvent: ...

    @overload
    def __getitem__(self, index: slice) -> Answer: ...

    def __getitem__(self, index: int | slice) -> ComplexEvent | Answer:
        if isinstance(index, slice):
            return self._slice(index)
        if not is_whole(index):
            raise TypeError(
                f"answer[i] is a complex event by its number and answer[i:j] an answer, not {shown(index)}: "
                "rows() and to_arrow() have columns"
            )
        index = int(index)
        place = index + self.count() if index < 0 else index
        complex_event = next(iter(self._pick([place])), None) if self._has(place) else None
        if complex_event is None:
            raise IndexError(f"there is no complex event {index}: the answer has {self.count()}")
        return complex_event

    def to_dicts(self) -> list[dict[str, Any]]:
        """The whole answer in memory: a dict for each complex event, with lists of dicts for labels.

        Raises `LimitExceeded` if it would fill the memory, DataError for a value that Python cannot hold.
        """
        with held_by_python("a value of this answer"):
            rows: list[dict[str, Any]] = self._held("to_dicts()", OBJECTS_TO_ARROW).to_pylist()
        return rows

    @property
    def quick_count(self) -> Callable[[], int] | None:
        """A function that counts the complex events without enumerating them, if a whole answer has one."""
        whole = self._stop is None and self._picked is None
        return self.count if whole and self._run.counts_quickly else None

    def rows(self) -> Rows:
        """The marked events, one row for each event and label, ready to be joined with other tables.

        The columns are ``match`` (which complex event of the answer, from 0), ``label``, ``position``, the
        partition columns, and the attributes of all labels (NULL where a type has none of that name). An
        event with two labels has two rows.
        """
        return Rows(self)

    def write(
        self, target: str | PathLike[str] | BinaryIO, *, format: str | None = None, positions: bool = False
    ) -> int:
        """Writes the answer, batch by batch, to a path or an open binary file, and returns its count.

        `format` is parquet, csv, jsonl or arrow, by default the suffix of the path. `positions` writes the
        positions of events in place of their attributes. A file is replaced at the end, so that it never
        holds half an answer, and keeps its mode and owner; the target of a link is replaced, not the link;
        pipes and devices are written to directly. Raises ValueError for an unknown format, OSError for a path
        that cannot be written.
        """
        return write_answer(target, self.schema, self.batches(), format=format, positions=positions)

    def plot(self, *, y: str | None = None, **options: Any) -> Picture:
        """A timeline of the first complex events; the options are those of `estero.plots.plot_answer`.

        With `y`, a numeric attribute of the events, its line along the stream with the marked events on it;
        the options are those of `estero.plots.plot_values`.
        """
        from estero.plots import plot_answer, plot_values

        if y is None:
            return plot_answer(self, **options)
        if isinstance(self._run, WithEvents):
            return plot_values(self, y, self._run.values, clock=self._clock(), **options)
        raise ValueError(
            f"the events of a recognizer are not kept: ask {self._run.whole_answer} for plot(y=…)"
        )

    def _clock(self) -> pa.DataType | None:
        """The type of the times; None if there is no time."""
        schema = self.schema
        return schema.field("start_time").type if AnswerColumns.of(schema).has_time else None

    def __repr__(self) -> str:
        known = self._picked is not None or self._whole.total is not None
        size = f"{self.count():,} complex events" if known else "not counted yet"
        return legible(f"Answer({', '.join(self.schema.names)}; {size})\n{self._run.query}", lines=True)

    def _repr_html_(self) -> str:
        from estero.answers.as_html import answer_html  # for notebooks only

        known = self._picked is not None or self._whole.total is not None
        first = self.limit(_PREVIEWED + 1)
        return answer_html(
            self.schema, first.batches(), most=_PREVIEWED, count=self.count() if known else None
        )

    def _held(self, asked: str, factor: int = 1) -> pa.Table:
        batches = self.batches()
        if self._stop is None and self._picked is None:
            batches = within(batches, self.quick_count, asked=asked, factor=factor)
        return pa.Table.from_batches(batches, self.schema)

    def _has(self, place: int) -> bool:
        """Whether `place` can be in this part; for an open end only reading decides that."""
        if self._picked is not None:
            return 0 <= place < len(self._picked)
        return place >= 0 and (self._stop is None or self._start + place < self._stop)

    def _pick(self, places: Iterable[int]) -> Answer:
        if self._picked is None:
            picked = tuple(self._start + place for place in places)
        else:
            picked = tuple(self._picked[place] for place in places)
        return Answer(self._run, picked=picked, whole=self._whole)

    def _slice(self, wanted: slice) -> Answer:
        if wanted.step not in (None, 1):
            raise ValueError("a slice of an answer takes no step: write answer[i:j]")
        if self._picked is not None:
            return Answer(self._run, picked=self._picked[wanted], whole=self._whole)
        for end in (wanted.start, wanted.stop):
            if end is not None and not is_whole(end):
                raise TypeError(f"a slice of an answer is between two whole numbers, not {shown(end)}")
        start, stop = wanted.start or 0, wanted.stop
        if start < 0 or (stop is not None and stop < 0):
            count = self.count()
            start = max(0, start + count) if start < 0 else start
            stop = max(0, stop + count) if stop is not None and stop < 0 else stop
        ends = [
            bound for bound in (self._stop, None if stop is None else self._start + stop) if bound is not None
        ]
        return Answer(self._run, start=self._start + start, stop=min(ends, default=None), whole=self._whole)


class Undecided(Answer):
    """Complex events that wait for a deadline (`Answer.undecided`): an answer that equals its count.

    It can be compared with numbers as well, like its count.
    """

    def __eq__(self, other: object) -> bool:
        if isinstance(other, int):
            return self.count() == other
        return self is other

    def __hash__(self) -> int:
        return Answer.__hash__(self)

    def __int__(self) -> int:
        return self.count()


def _without_first(skipped: int, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        if skipped < batch.num_rows:
            yield batch.slice(skipped) if skipped else batch
        skipped = max(0, skipped - batch.num_rows)


def _drawn(total: int, k: int, random_numbers: random.Random) -> list[int]:
    """`k` of the numbers from 0 to total - 1, ascending; `total` may exceed any machine integer."""
    if total < 1 << 62:
        return sorted(random_numbers.sample(range(total), k))
    drawn: set[int] = set()
    while len(drawn) < k:
        drawn.add(random_numbers.randrange(total))
    return sorted(drawn)
