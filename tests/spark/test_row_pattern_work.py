"""What a worker does with ordered rows, without Spark: pieces of any size give what the whole gives."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import estero
from estero import DataError
from estero.language.row_patterns.statements import placed_clauses
from estero.language.row_patterns.tree import (
    Anchor,
    Choice,
    Excluded,
    Repetition,
    RowPattern,
    Skip,
    Variable,
    nodes_of,
)
from estero.language.row_patterns.tree import Sequence as PatternSequence
from estero.recognize.row_patterns.statements import Statements
from estero.spark.row_patterns import work
from estero.spark.row_patterns.work import RowPatternWork, StatementsInZone, partitions_of
from laws.test_row_pattern_laws import ALL, ONE, SCHEMA, can_be_said, clause_of, is_accepted, table_of
from strategies.row_patterns import NAMES, Condition, Row, conditions, partitions, row_patterns, skips


def work_of(text: str, result: pa.Schema) -> RowPatternWork:
    """The work for a statement over the columns g, i, v and w, which all cross."""
    (placed,) = placed_clauses(text)
    columns = tuple((name, "BIGINT") for name in SCHEMA.names)
    crossing = pa.schema([(f"c{number}", pa.int64()) for number in range(4)])
    aggregates = Statements(StatementsInZone("UTC").connection).aggregates
    return RowPatternWork(placed.clause, columns, "", "UTC", crossing, result, aggregates, in_pieces=True)


def in_order(parts: Sequence[Sequence[Row]]) -> pa.Table:
    """The rows of partitions as they come to a task."""
    table = table_of(parts).sort_by([("g", "ascending"), ("i", "ascending")])
    return table.rename_columns([f"c{number}" for number in range(4)])


UNMATCHED = "MATCH_NUMBER() AS number, FIRST(i) AS first"
NUMBERED = "max(MATCH_NUMBER()) AS number, FIRST(i) AS first, 0 AS i"
FORMS = (
    (ONE, ""),
    (NUMBERED, ""),
    (ALL, "ALL ROWS PER MATCH"),
    (UNMATCHED, "ALL ROWS PER MATCH WITH UNMATCHED ROWS"),
)


@pytest.mark.filterwarnings("ignore:the alternative")
@given(
    row_patterns,
    conditions,
    skips,
    st.lists(partitions, min_size=1, max_size=3),
    st.integers(0, 3),
    st.sampled_from(FORMS),
    st.integers(1, 5),
)
def test_pieces_give_what_the_whole_gives(
    pattern: RowPattern,
    define: Mapping[str, Condition],
    skip: Skip,
    parts: Sequence[Sequence[Row]],
    within: int,
    form: tuple[str, str],
    size: int,
) -> None:
    measures, per_match = form
    if measures == ALL:
        pattern = PatternSequence((pattern, Repetition(Choice(tuple(map(Variable, NAMES))), 0, 2)))
    nodes = list(nodes_of(pattern))
    assume(can_be_said(pattern, define, skip))
    assume(not any(isinstance(node, Anchor) and node.at == "end" for node in nodes))
    assume(measures != UNMATCHED or not any(isinstance(node, Excluded) for node in nodes))
    text = clause_of(pattern, define, skip, measures, per_match, within).partition("ORDER BY g, number")[0]
    assume(is_accepted(text))
    statement = estero.sql(text, events=table_of(parts))
    try:
        expected = statement.to_arrow()
    except DataError:
        return
    given_back = pa.schema([(f"r{place}", field.type) for place, field in enumerate(expected.schema)])
    match = work_of(text, given_back).on_batches()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(work, "AT_ONCE", size)
        found = pa.Table.from_batches(match(iter(in_order(parts).to_batches(size))), given_back)
    assert found.rename_columns(expected.column_names).to_pylist() == expected.to_pylist()


@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(1, 4)), max_size=8),
    st.integers(1, 6),
    st.integers(1, 9),
)
def test_whole_partitions_are_taken_at_once(
    runs: Sequence[tuple[int, int]], batch: int, at_once: int
) -> None:
    groups = np.repeat(np.array([group for group, _ in runs], np.int64), [size for _, size in runs])
    table = pa.table({"g": groups, "row": np.arange(groups.size)})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(work, "AT_ONCE", at_once)
        taken = list(partitions_of(iter(table.to_batches(batch))))
    assert pa.concat_tables([table.slice(0, 0), *taken]).equals(table)
    for before, behind in pairwise(taken):
        assert before.num_rows >= 1
        assert before["g"][-1] != behind["g"][0]
