"""Partial matches that are divided by what their events share are those of all events in one order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from random import Random

import numpy as np
import pyarrow as pa
from hypothesis import assume, event, given
from hypothesis import strategies as st

from estero.classify.column_names import POSITION
from estero.errors import QueryError
from estero.language.check.queries import check_query
from estero.language.syntax.parser import parse_pattern
from estero.language.tree.distances import AttributeWindow, EventWindow, Window
from estero.language.tree.query import QueryTree, Strategy
from estero.plan.division import division_in_words, division_of_partials
from estero.plan.levels import PartialsPlan, partials_plan
from estero.plan.shared_by_levels import with_shared_key
from estero.plan.together import together
from estero.recognize.partial_matches.partials_recognition import PartialsRecognition
from estero.reference.queries import Event
from laws.test_partials_laws import check, wanted
from laws.test_plans_agree import layout_of, source_of
from strategies.patterns import SCHEMA, intervals, streams

VARIABLES = ("u", "v", "w")
_BESIDE = (" ;[NOT C] ", " : ", " ; NOT(C AS c FILTER c.k = u.k) FOR 1 [time] ; ")
"""What stands between steps so that other events matter."""
_AROUND = ("NOT(C) FOR 1 [time] ; {}", "{} ; NOT(B AS b FILTER b.k = u.k) FOR 1 [time]")
_MORE = ("u.n <= v.n", "u.x = v.x", "NOT u.s = v.s", "u.n > 0", "u.n = v.n", "last(u.n) < first(v.n)")
ODD = st.integers(0, 7).map(lambda drawn: drawn == 7)
"""Seldom true."""


@st.composite
def queries_by_keys(draw: st.DrawFn) -> QueryTree:
    """Sequences whose events are mostly joined by equalities, each with the one before or seldom another."""
    variables = VARIABLES[: draw(st.integers(2, 3))]
    text = ""
    for number, variable in enumerate(variables):
        if number:
            text += draw(st.sampled_from(_BESIDE if draw(ODD) else (" ; ", " ; ", " ;[<= 3 [time]] ")))
        repeated = draw(ODD) or (number and draw(st.booleans()))
        text += draw(st.sampled_from(["A", "B", "C", "(A OR B)"])) + "+" * bool(repeated) + f" AS {variable}"
    text = draw(st.sampled_from(_AROUND)).format(text) if draw(ODD) else text
    one = draw(st.sampled_from(["k", "k", "n", "s", "x"]))
    names = {each: draw(st.sampled_from(["k", "n", "x", "s"])) if draw(ODD) else one for each in variables}
    asked = []
    for number, later in enumerate(variables[1:]):
        earlier = variables[draw(st.integers(0, number)) if draw(ODD) else number]
        asked.append(f"{earlier}.{names[earlier]} = {later}.{names[later]}")
    asked = draw(st.permutations(asked))[: len(asked) - draw(ODD)]
    asked += draw(st.lists(st.sampled_from(_MORE), max_size=1))
    if asked:
        text += f" FILTER {(' OR ' if draw(ODD) else ' AND ').join(asked)}"
    windows: list[Window] = [EventWindow(5), AttributeWindow(2, "time"), AttributeWindow(6, "time")]
    window = draw(st.sampled_from(windows))
    strategy = draw(st.sampled_from([*[Strategy.ALL] * 4, *Strategy]))
    limit = draw(st.sampled_from([None, None, None, 1]))
    per = draw(intervals()) if limit and draw(ODD) else None
    tree = QueryTree(parse_pattern(text), window=window, strategy=strategy, limit=limit, per=per)
    assume(not check_query(tree, SCHEMA))
    return tree


def divided(plan: PartialsPlan, events: list[Event], tasks: Sequence[int]) -> Iterator[pa.RecordBatch]:
    """What tasks find, each of its own events; `tasks` says for each event which task has it."""
    source = source_of(events)
    asked = together([each.classification for each in plan.plans])
    classified = list(source.read(asked))
    for task in sorted(set(tasks)):
        recognition = PartialsRecognition(plan, asked, source.classified_schema(asked), time=pa.int64())
        for batch in classified:
            here = np.array(tasks)[batch.column(POSITION).to_numpy()] == task
            yield from recognition.push(batch.filter(pa.array(here)))
        yield from recognition.tables_ended(source.last_time(), len(events) - 1)


def by_keys(plan: PartialsPlan, events: list[Event], tasks: int, seed: int) -> list[int]:
    """The task of each event: that of its key, or any where it has none."""
    draw, found = Random(seed), dict[object, int]()
    keys = [each.attributes[plan.shared[each.type]] if each.type in plan.shared else None for each in events]
    keys = ["NaN" if isinstance(key, float) and key != key else key for key in keys]  # noqa: PLR0124
    return [
        draw.randrange(tasks) if key is None else found.setdefault(key, draw.randrange(tasks)) for key in keys
    ]


def shown(batches: Iterator[pa.RecordBatch]) -> list[str]:
    return sorted(repr(row) for batch in batches for row in batch.to_pylist())


@given(
    queries_by_keys(),
    streams(min_size=4, max_size=14),
    st.integers(1, 4),
    st.integers(0, 2**32),
)
def test_tasks_that_share_keys_find_those_of_one_order(
    tree: QueryTree, events: list[Event], tasks: int, seed: int
) -> None:
    try:
        plan = partials_plan(replace(tree, partition_by=()), layout_of(), as_written=True)
    except QueryError:  # what must be absent depends on a later part
        return
    plan = with_shared_key(plan, layout_of())
    if not (plan.shared and division_of_partials(plan).by_key):
        event("one ordered task")
        event(plan.why_unshared)
        assert "one ordered task, because " in division_in_words(plan.whole, partials=plan)
        return
    event("divided")
    found = list(divided(plan, events, by_keys(plan, events, tasks, seed)))
    assert shown(iter(found)) == shown(divided(plan, events, [0] * len(events)))
    right = wanted(tree, events)
    if right is not None:
        partial = pa.Table.from_batches(found, found[0].schema) if found else None
        if partial is not None:
            check(partial.filter(pa.compute.invert(partial["complete"])).to_batches(), right)
