"""Dictionary-encoded columns change how rows are found, not which."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings

from estero.errors import DataError
from estero.language.parse import parse_query
from estero.language.query import QueryTree
from estero.pipeline import dictionaries
from estero.pipeline.sources import Source, open_source
from estero.plan import Classification, Layout, plan_query
from estero.semantics import Event
from strategies import SCHEMA, queries, streams, to_table


def encoded(table: pa.Table) -> pa.Table:
    for name in ("type", "n", "x", "s", "k"):
        place = table.schema.get_field_index(name)
        table = table.set_column(place, name, table.column(name).dictionary_encode())
    return table


def source_of(table: pa.Table) -> Source:
    return open_source(table, type="type", time="time", time_unit="s")


def classification_of(tree: QueryTree, source: Source) -> Classification:
    layout = Layout(SCHEMA, source.type_column, source.only_type, source.order, source.time_tick_ns)
    return plan_query(tree, layout).classification


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(tree=queries(), events=streams(min_size=1))
def test_dictionaries_choose_the_same_rows(
    monkeypatch: pytest.MonkeyPatch, tree: QueryTree, events: list[Event]
) -> None:
    monkeypatch.setattr(dictionaries, "pays", lambda combinations, _: combinations < 5_000)
    plain, quick = source_of(to_table(events)), source_of(encoded(to_table(events)))
    rows = [
        [
            {name: repr(value) for name, value in row.items() if not name.startswith("__key")}
            for batch in source.read(classification_of(tree, source))
            for row in batch.to_pylist()
        ]
        for source in (plain, quick)
    ]
    assert rows[0] == rows[1]


def test_an_overflow_that_no_row_has_is_no_error() -> None:
    tree = parse_query(f"SELECT * WHERE A FILTER A[n + k > {2**62}]")
    large = 2**62
    table = pa.table(
        {
            "type": ["A"] * 40,
            "time": list(range(40)),
            "n": [large] + [0] * 39,
            "x": [0.0] * 40,
            "s": [""] * 40,
            "k": [0] + [large] * 39,
        }
    )
    source = source_of(encoded(table))
    assert [batch.num_rows for batch in source.read(classification_of(tree, source))] in ([], [0])


def test_an_overflow_that_a_row_has_is_an_error() -> None:
    tree = parse_query("SELECT * WHERE A FILTER A[n + k > 0]")
    large = [2**63 - 1] * 40
    table = pa.table(
        {"type": ["A"] * 40, "time": range(40), "n": large, "x": [0.0] * 40, "s": [""] * 40, "k": large}
    )
    source = source_of(encoded(table))
    with pytest.raises(DataError, match="64 bits"):
        list(source.read(classification_of(tree, source)))
