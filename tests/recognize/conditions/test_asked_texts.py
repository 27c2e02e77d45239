"""Texts of which few rows are asked for say the same as those that are looked at as a whole."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from estero.classify.vectors.batch_columns import BatchColumns
from estero.classify.vectors.conditions import TextList, TextTest
from estero.classify.vectors.text_patterns import Pattern
from estero.recognize.rules.conditions.asked_columns import AskedColumn
from estero.recognize.rules.conditions.asked_texts import TextColumn

CONDITIONS = [
    Pattern("s", "%a%", ignoring_case=True),
    Pattern("s", "_b", ignoring_case=False),
    Pattern("s", "%", ignoring_case=False),
    TextTest("s", "=", "ab"),
    TextList("s", frozenset({"b", "AB"})),
]
TEXTS = st.none() | st.sampled_from(["", "a", "ab", "AB", "b", "É", "éa"])
PLACES = st.integers(0, len(CONDITIONS) - 1)


@given(st.lists(st.tuples(st.lists(TEXTS, min_size=1, max_size=8), st.lists(PLACES, max_size=3)), max_size=4))
def test_few_rows_say_what_all_say(batches: list[tuple[list[str | None], list[int]]]) -> None:
    column, whole = TextColumn("s", CONDITIONS), AskedColumn("s", CONDITIONS)
    for texts, places in batches:
        columns = BatchColumns(pa.record_batch({"s": pa.array(texts, pa.string())}))
        few, all_of_them = column.asked(columns), whole.asked(columns)
        assert (few.counts >= all_of_them.counts).all()
        rows = np.arange(0, len(texts), 2)
        for place in places:
            assert few.holds(place, rows).tolist() == all_of_them.holds(place, rows).tolist()
        for place in places[1:]:
            assert sorted(few.rows(place)) == sorted(all_of_them.rows(place))


def test_a_whole_column_is_looked_at_first_and_once_many_rows_are_asked_for() -> None:
    column = TextColumn("s", CONDITIONS)
    columns = BatchColumns(pa.record_batch({"s": ["a", "b", "ab", None]}))
    known = column.asked(columns).counts.tolist()
    assert known == [2, 1, 3, 1, 1]
    rarely = column.asked(columns)
    assert rarely.counts.tolist() == [3] * len(CONDITIONS)
    assert rarely.holds(1, np.array([2])).tolist() == [True]
    assert rarely.rows(0).tolist() == [0, 2]
    assert column.asked(columns).counts.tolist() == known
