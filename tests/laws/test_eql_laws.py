"""Conditions in EQL mean what the reference says, however events are read."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

import estero
from estero.language.eql.parser import parse_eql
from estero.language.eql.tree import EqlTree, EventQuery
from estero.reference.eql import matches
from strategies.eql_conditions import COLUMNS, NOWHERE, events, queries


@given(queries, st.lists(events, min_size=1, max_size=8))
@settings(max_examples=60)
def test_conditions_mean_what_the_reference_says(query: EventQuery, rows: list[dict[str, Any]]) -> None:
    text = str(query)
    wanted = [place for place, row in enumerate(rows) if matches(query, row, NOWHERE)]
    answer = estero.eql(text).run(pa.Table.from_pylist(rows, schema=COLUMNS))
    assert [ce.all_positions for ce in answer] == [(place,) for place in wanted], text


@given(queries)
@settings(max_examples=200)
def test_a_printed_query_reads_back_as_it_was(query: EventQuery) -> None:
    assert parse_eql(str(query)) == EqlTree(query), str(query)
