"""Columns, and fields of structs, without a type (Arrow's null): kept as they are, wherever events go."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import estero

EVENTS = pa.table(
    {
        "type": list("ABABB"),
        "t": [1, 2, 3, 4, 9],
        "nothing": pa.nulls(5),
        "inside": pa.array([{"n": None, "v": value} for value in range(5)]),
        "lists": pa.array([[None], [], None, [None, None], []], pa.list_(pa.null())),
    }
)
assert EVENTS.schema.field("inside").type.field("n").type == pa.null()
QUERY = estero.query("SELECT * WHERE A AS a ; B AS b WITHIN 3 [t]")


def _shown(rows: pa.Table) -> list[str]:
    rows.validate(full=True)
    return sorted(map(repr, rows.to_pylist()))


@pytest.mark.parametrize("partials", [False, True])
def test_they_are_pushed_held_back_and_restored(partials: bool) -> None:
    whole = QUERY.run(EVENTS, type="type", time="t", partials=partials).to_arrow()
    recognizer = QUERY.recognizer(EVENTS.schema, type="type", time="t", lateness=2, partials=partials)
    found = []
    for place in range(EVENTS.num_rows):
        found.append(recognizer.push(EVENTS.slice(place, 1)).to_arrow())
        recognizer = estero.restore(QUERY, recognizer.snapshot(), partials=partials)
    found.append(recognizer.close().to_arrow())
    pushed = pa.concat_tables(found)
    of_whole = [name for name in whole.schema.names if name in pushed.schema.names]
    complete = pushed.filter(pushed["complete"]) if partials else pushed
    assert _shown(complete.select(of_whole)) == _shown(
        whole.filter(whole["complete"]).select(of_whole) if partials else whole.select(of_whole)
    )
    assert complete.num_rows == 3


def test_they_are_shown_in_rows_of_events_and_of_rules() -> None:
    rows = QUERY.run(EVENTS, type="type", time="t").rows().to_arrow()
    assert {repr(row["inside"]) for row in rows.filter(pc.equal(rows["label"], "b")).to_pylist()} == {
        "{'n': None, 'v': 1}",
        "{'n': None, 'v': 3}",
    }
    rows.validate(full=True)
    of_rules = estero.rules({"one": QUERY, "two": QUERY}).run(EVENTS, type="type", time="t").to_arrow()
    of_rules.validate(full=True)
    assert of_rules.num_rows == 6
