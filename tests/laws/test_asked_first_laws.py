"""A few events are asked what rules want before they are classified, and before they are columns of Arrow.

That changes no answer and no count.
"""

from __future__ import annotations

import warnings
from array import array
from itertools import pairwise
from typing import Any
from unittest.mock import patch

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

import estero
from estero.events.streams.few_events import FewEvents
from estero.recognize.recognizers import intake
from estero.recognize.rules.conditions import dispatch

LAYOUT: dict[str, Any] = {"time": "time", "time_unit": "s"}
TIME = 1
"""The place of the column of times."""
KINDS = ["A", "B", "C"]
NUMBERS = st.integers(0, 3)
CONDITIONS = st.one_of(
    st.just(""),
    NUMBERS.map(lambda number: f"k = {number}"),
    NUMBERS.map(lambda number: f"v > {number}"),
    st.sampled_from(["x", "y"]).map(lambda text: f"s = '{text}'"),
    st.sampled_from(["s IN {'x', 'y'}", "(s = 'x' OR k = 1)", "(s = 'z' AND v > 1)", "k IN {0, 2}", "v = 1"]),
)


@st.composite
def texts(draw: st.DrawFn, kinds: list[str]) -> str:
    """A sequence of two events."""
    one, two = draw(st.sampled_from(kinds)), draw(st.sampled_from(kinds))
    asked = [(name, draw(CONDITIONS)) for name in ("one", "two")]
    conditions = " AND ".join(f"{name}[{condition}]" for name, condition in asked if condition)
    where = f"{one} AS one ; {two} AS two {conditions and f'FILTER {conditions}'}"
    keys = draw(st.sampled_from(["", "PARTITION BY [k]", "PARTITION BY [s]"]))
    return f"SELECT * WHERE {where} {keys} WITHIN 4 SECONDS"


EVENTS = st.lists(
    st.fixed_dictionaries(
        {
            "type": st.sampled_from([*KINDS, "D"]),
            "k": st.none() | NUMBERS,
            "v": st.none() | NUMBERS.map(float),
            "s": st.sampled_from([None, "x", "y", "z"]),
        }
    ),
    max_size=14,
)


def as_values(piece: pa.Table) -> FewEvents:
    """The events of a table as values of Python."""
    columns: list[Any] = piece.to_pydict().values()
    return FewEvents(
        piece.schema,
        [array("q", column) if place == TIME else column for place, column in enumerate(columns)],
        piece.num_rows,
    )


def observed(recognizer: Any, pieces: list[Any]) -> list[object]:
    """The rows and the counts behind each push."""
    seen: list[object] = []
    for piece in pieces:
        rows = recognizer.push(piece).to_arrow().to_pylist()
        numbers = recognizer.metrics()
        del numbers["seconds"]
        seen.append((rows, numbers, recognizer.watermark))
    return [*seen, recognizer.close().to_arrow().to_pylist()]


@given(st.booleans(), EVENTS, st.lists(st.integers(1, 3), max_size=6), st.integers(0, 1), st.data())
def test_answers_and_counts_are_those_of_events_that_are_classified_first(
    typed: bool, events: list[dict[str, Any]], sizes: list[int], lateness: int, data: st.DataObject
) -> None:
    kinds = KINDS if typed else ["Event"]
    drawn = data.draw(st.lists(texts(kinds), min_size=1, max_size=4))
    rules = estero.rules({f"rule {place}": text for place, text in enumerate(drawn)})
    types = {"type": pa.string(), "time": pa.int64(), "k": pa.int64(), "v": pa.float64(), "s": pa.string()}
    rows = [{**event, "time": place} for place, event in enumerate(events)]
    table = pa.Table.from_pylist(rows, pa.schema(types))
    bounds = [0, *(sum(sizes[: place + 1]) for place in range(len(sizes))), table.num_rows]
    pieces = [table.slice(begin, max(end - begin, 0)) for begin, end in pairwise(bounds)]
    layout = {**LAYOUT, **({"type": "type"} if typed else {})}
    with patch.object(dispatch, "FEWEST", 1), warnings.catch_warnings():
        warnings.simplefilter("ignore", estero.EsteroWarning)  # a type of which there is no event
        asked = observed(rules.recognizer(table.schema, **layout, lateness=lateness), pieces)
        with patch.object(intake, "FEW_ROWS", -1):
            classified = observed(rules.recognizer(table.schema, **layout, lateness=lateness), pieces)
        values = [as_values(piece) if piece.num_rows else piece for piece in pieces]
        few = observed(rules.recognizer(table.schema, **layout, lateness=lateness), values)
        number = rules.run(table, **layout).count()
    assert few == asked == classified
    assert number == sum(len(part) for part in rows_of(asked))


def rows_of(seen: list[Any]) -> list[list[object]]:
    """The rows of all pushes and of the end."""
    return [*(rows for rows, _, _ in seen[:-1]), seen[-1]]
