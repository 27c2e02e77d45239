"""What explain says of queries of each plan, word by word; and the pictures of their automata.

The texts are in explanations.txt, each after its query. ``python tests/queries/test_explanation.py`` writes
them anew: then read what has changed.
"""

from __future__ import annotations

import xml.etree.ElementTree as ET
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

import estero
from estero.automata.cea import CEA
from estero.errors import legible
from estero.queries.explanation import Explanation
from notebooks import shown_by

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

GOLDEN = Path(__file__).with_name("explanations.txt")
RULE = "=" * 100
EVENTS = pa.table(
    {
        "kind": ["SELL", "BUY"],
        "ts": [datetime(2025, 6, 20, 14, tzinfo=UTC), datetime(2025, 6, 20, 15, tzinfo=UTC)],
        "name": ["INTC", "RIMM"],
        "price": [1.0, 2.0],
        "volume": [10, 20],
    }
)
ALONE = (
    "SELECT * WHERE SELL AS a ; NOT(HALT) ; (BUY AS b FILTER b[price > 10]) : HALT WITHIN 10 EVENTS",
    "SELECT STRICT b WHERE START(SELL : BUY+ AS b) CONSUME BY ANY LIMIT 3",
    "SELECT * WHERE (SELL AS a ; BUY AS b FILTER a.price < b.price)+",
    "SELECT * WHERE (A OR B):+ : A : (A OR B):{9}",
    "SELECT * WHERE A ;[2 EVENTS .. 9 EVENTS] B ;[NOT C] D PARTITION BY [k]",
    "SELECT * WHERE (A ;[<= 9 EVENTS] B) ALL C",
)
JOINED = (
    """SELECT a[price], b WHERE SELL AS a ALL BUY AS b ALL BUY AS c
       FILTER a.name = b.name AND c.name = b.name AND a.volume = b.volume AND b[price > 2]
       WITHIN 10 SECONDS""",
    """SELECT a[price], b WHERE SELL AS a ; BUY AS b
       FILTER b[price > 2 OR name LIKE 'R%'] AND a.name = b.name AND a.price < b.price
       PARTITION BY [name] WITHIN 10 SECONDS""",
    """SELECT * WHERE SELL AS a ; BUY AS b FILTER b.price > a.price AND b.volume < a.volume
       WITHIN 100 SECONDS""",
    """SELECT a[name] WHERE SELL AS a ; BUY AS b ; BUY AS c
       FILTER a.volume BETWEEN b.volume AND b.volume AND a.price < b.price + c.price AND b.name != c.name
       PARTITION BY [volume] CONSUME BY PARTITION""",
    "SELECT a WHERE SELL AS a ; BUY AS b FILTER a.name != b.name WITHIN 10 EVENTS CONSUME BY ANY LIMIT 5",
)
WITH_EVENTS = (
    """SELECT a[price], b WHERE SELL AS a ; BUY AS b ; BUY AS c
       FILTER b[price > 2 OR name LIKE 'R%'] AND a.name = b.name AND a.price < b.price AND a.price < c.price
       PARTITION BY [name] WITHIN 10 SECONDS""",
    """SELECT MAX NONE WHERE SELL AS a ; BUY AS c ; BUY+ AS b
       FILTER increasing(b.volume) AND sum(b.volume) > 5 AND a.volume != c.volume AND c.name = b.name""",
    """SELECT NONE WHERE SELL AS a ALL BUY AS b ALL BUY AS c
       FILTER a.name = b.name AND b.volume = c.volume WITHIN 10 EVENTS""",
    "SELECT NEXT NONE WHERE SELL AS a ; BUY+ AS b WITHIN 10 MINUTES",
    """SELECT a.price * 2 AS twice, count(b) AS n, sum(b.volume) AS total WHERE SELL AS a ; BUY+ AS b
       PARTITION BY [name] WITHIN 10 SECONDS""",
    """SELECT NONE WHERE SELL AS a ; BUY AS b ; BUY AS c
       FILTER b.price > a.price AND b.volume < a.volume AND a.name != b.name WITHIN 10 EVENTS""",
)


def explained(text: str) -> Explanation:
    query = estero.query(text)
    if text in ALONE:
        return query.explain()
    return query.explain(EVENTS, type="kind", time="ts", order=["volume"])


def golden() -> dict[str, str]:
    blocks = GOLDEN.read_text(encoding="utf-8").split(f"{RULE}\n")[1:]
    return {block.split("\n", 2)[1].strip(): block.rstrip("\n") for block in blocks}


@pytest.mark.parametrize("text", [*ALONE, *WITH_EVENTS, *JOINED])
def test_the_whole_explanation(text: str) -> None:
    assert str(explained(text)) == golden()[str(estero.query(text))]


@pytest.mark.parametrize("text", [*ALONE, *WITH_EVENTS])
def test_the_picture_is_well_formed_and_has_the_labels(text: str) -> None:
    explanation = explained(text)
    automaton = explanation.plan.drawn
    assert isinstance(automaton, CEA)
    root = ET.fromstring(explanation.svg())
    texts = [text.text or "" for text in root.iter("{http://www.w3.org/2000/svg}text")]
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    for transition in automaton.transitions:
        if transition.labels:
            assert f"• {', '.join(sorted(transition.labels))}" in texts
    hidden = any(each.hidden for each in automaton.transitions)
    assert ("Hidden labels, which group events for filters, are not drawn." in texts) is hidden
    assert not any(text.startswith("#") for text in texts)


def test_a_notebook_gets_text_and_picture() -> None:
    explanation = explained(ALONE[0])
    page = shown_by(explanation)
    titles = [title for title, _ in explanation.sections()]
    assert page.texts("summary") == [*titles, "Picture"]
    assert ["open" in part.attributes for part in page.all("details")] == [
        *(title in ("Query", "Picture") for title in page.texts("summary")),
    ]
    bodies = dict(zip(titles, page.texts("pre"), strict=True))
    for title, body in explanation.sections():
        assert bodies[title].split() == legible(body, lines=True).split()
    assert "BUY[price > 10]" in bodies["Predicates (one bit each)"]
    (picture,) = page.all("svg", "automaton")
    assert {"0", "1"} <= set(picture.texts("g", "state"))
    assert "• BUY" in " ".join(picture.texts("text", "mark"))
    assert "From 0 to 1: " in picture.attributes["aria-label"]


def test_an_automaton_in_a_notebook_is_drawn_and_written() -> None:
    automaton = estero.query("SELECT * WHERE A AS a ; B AS b WITHIN 5 EVENTS").automaton()
    page = shown_by(automaton)
    assert page.texts("p") == [f"CEA with {len(automaton.states)} states"]
    assert page.texts("pre") == [str(automaton)]
    (picture,) = page.all("svg", "automaton")
    assert picture.texts("g", "state") == list(automaton.states)
    assert len(picture.all("circle")) == len(automaton.states) + len(automaton.final)


def test_an_automaton_with_too_many_states_is_written_only() -> None:
    sequence = " ; ".join(f"A AS x{number}" for number in range(130))
    page = shown_by(estero.query(f"SELECT * WHERE {sequence}").automaton())
    assert page.all("svg") == []
    assert "131 states are too many to be drawn." in page.texts("p")


def classified_by_duckdb(text: str) -> pa.Table:
    import duckdb

    with duckdb.connect() as connection:
        connection.register("events", EVENTS)
        return connection.sql(dict(explained(text).sections())["Classification (DuckDB)"]).to_arrow_table()


@pytest.mark.parametrize("text", [*WITH_EVENTS, *JOINED])
def test_the_sql_shown_for_duckdb_runs(text: str) -> None:
    assert classified_by_duckdb(text).column("__position").to_pylist() == [0, 1]


@pytest.mark.spark
def test_the_sql_shown_for_spark_runs(spark: SparkSession) -> None:
    spark.createDataFrame(EVENTS).createOrReplaceTempView("events")
    for text in (*WITH_EVENTS, *JOINED):
        rows = spark.sql(dict(explained(text).sections())["Classification (Spark)"]).collect()
        bits = classified_by_duckdb(text).column("__bits0").to_pylist()
        assert sorted(row["__bits0"] for row in rows) == sorted(bits)


@pytest.mark.parametrize(
    ("query", "time"),
    [
        ("SELECT * WHERE SELL ; BUY+ WITHIN 9 EVENTS", "about that of recognition"),
        ("SELECT * WHERE SELL AS a ; BUY AS b FILTER a.name = b.name", "about that of recognition"),
        ("SELECT * WHERE SELL : BUY WITHIN 9 EVENTS", "at each end, linear in the partial matches"),
        ("SELECT * WHERE SELL AS a ; BUY+ AS b FILTER avg(b.price) > 3", "that of listing all"),
    ],
)
def test_it_says_what_counting_takes(query: str, time: str) -> None:
    assert f"\n  cost of count() and share(): {time}" in str(explained(query))


def test_an_automaton_too_big_to_be_worked_out_is_not() -> None:
    text = str(estero.query("SELECT * WHERE (A OR B):+ : A : (A OR B):{12}").explain())
    assert "deterministic: states and classes of events computed on demand, at most 100,000 states" in text


def test_shares_behind_a_filter_are_even_in_what_is_checked_and_it_says_so() -> None:
    events = pa.table({"k": ["A"] * 12 + ["B"] * 4, "v": [*range(12), 3, 5, 3, 20]})
    query = estero.query("SELECT * WHERE A AS a ; A AS b ; B AS c FILTER a.v + b.v = c.v")
    answer = query.run(events, type="k")
    assert [answer.share(number, 2).count() for number in range(2)] == [1, 7]
    plan = dict(query.explain(events, type="k").sections())["Plan"]
    assert "shares have equally many candidates, but not equally many answers" in plan
    limited = estero.query(f"{query} LIMIT 1")
    assert "each share consists of whole ends" in dict(limited.explain(events, type="k").sections())["Plan"]


if __name__ == "__main__":
    GOLDEN.write_text(
        "".join(f"{RULE}\n{explained(text)}\n" for text in (*ALONE, *WITH_EVENTS, *JOINED)), encoding="utf-8"
    )
