"""Values of the whole complex event are said as queries write them: in explanations, automata and errors."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pytest

import estero

pytestmark = pytest.mark.filterwarnings("ignore:there are no events of type")

BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
TIMES = [BEGIN, BEGIN + timedelta(minutes=1)]
EVENTS = {
    "A": pa.table({"ts": TIMES, "x": [0.0, 1.0], "k": [1, 2]}),
    "B": pa.table({"ts": TIMES, "x": [0.0, 1.0], "n": [1, 2]}),
}
SAID = [
    ("SELECT * WHERE A ; NOT(B) FOR 1 HOUR FILTER {}", "decided_time - A.ts > 2 HOURS"),
    ("SELECT * WHERE A ; NOT(B) FOR 1 HOUR FILTER {}", "decided_time - end_time > 2 HOURS"),
    ("SELECT * WHERE A ; B+ FILTER {}", "end_time - A.ts > 2 HOURS"),
    ("SELECT LONGEST * WHERE A ; B+ FILTER {} WITHIN 9 HOURS", "duration * 2 > 1 HOUR"),
    ("SELECT MAX * WHERE A ; B+ FILTER {} PARTITION BY [x]", "x + 1 > 3"),
    ("SELECT * WHERE A ; B+ FILTER {} PARTITION BY [k, n]", "k + 1 > 3"),
    ("SELECT * WHERE A ALL B FILTER A.x = B.x AND {}", "start_time < end_time"),
    ("SELECT * WHERE A ; B FILTER A.x = B.x AND {}", "(duration < 1 HOUR OR A.x < B.x)"),
]


@pytest.mark.parametrize(("text", "condition"), SAID)
def test_explanations_and_automata_name_them(text: str, condition: str) -> None:
    query = estero.query(text.format(condition))
    for said in map(str, (query.explain(), query.explain(EVENTS, time="ts"))):
        assert f"\n    {condition.strip('()')}\n" in said
        assert '"the ' not in said
    shown = query.automaton()
    assert condition.strip("()") in shown.filters
    assert '"the ' not in str(shown)


def test_a_call_of_several_keys_is_not_one_key() -> None:
    query = estero.query("SELECT * WHERE A ; B FILTER coalesce(k, n) + 1 > 1 PARTITION BY [k], [n]")
    assert query.automaton().filters == ("coalesce(k, n) + 1 > 1",)
    value = estero.query("SELECT * WHERE A ; B FILTER coalesce(k, 4) = 4 PARTITION BY [k]").automaton()
    assert value.filters == ("coalesce(k, 4) = 4",)


def test_errors_of_kinds_name_them() -> None:
    query = estero.query("SELECT * WHERE A ; NOT(B) FOR 1 HOUR FILTER decided_time > 5")
    with pytest.raises(estero.QueryError) as caught:
        query.run(EVENTS, time="ts")
    assert caught.value.expected == "two values of one kind, or numbers; decided_time is a timestamp"
