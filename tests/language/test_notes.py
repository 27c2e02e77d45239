"""What is said of queries that are easily misread, and that nothing is said of others."""

from __future__ import annotations

import pytest

import estero

NOTES = [
    ("SELECT * WHERE A LIMIT 3", ["LIMIT 3 applies to each end"]),
    ("SELECT MAX * WHERE A+ ; B", ["MAX compares only complex events with the same end"]),
    (
        "SELECT * WHERE A ; B PARTITION BY [k] WITHIN 10 EVENTS",
        ["WITHIN 10 EVENTS counts all events of the stream"],
    ),
    (
        "SELECT NEXT * WHERE A+ AS x FILTER x.c != x.c AND x.d <= x.d",
        ["x.c != x.c compares two values of one event", "x.d <= x.d compares two values of one event"],
    ),
    ("SELECT * WHERE A ; B FILTER A.c + 1 < A.c * 2", ["A.c + 1 < A.c * 2 compares two values of one event"]),
    ("SELECT * WHERE A ; B+ AS b", ["B+ may leave out any event"]),
    ("SELECT * WHERE (A ; B){2,} ; C+", ["(A ; B){2,} may leave out", "C+ may leave out"]),
    ("SELECT * WHERE (A+ AS x [x -> y]) KEEP [y]", ["A+ may leave out"]),
    ("SELECT * WHERE A+[<= 3 EVENTS, NOT B]", ["A+[<= 3 EVENTS, NOT B] may leave out"]),
    ("SELECT * WHERE A+ UNLESS B+", ["A+ may leave out"]),
    (
        "SELECT NEXT * WHERE A+ AS x ; B FILTER avg(x.v) > 2",
        ["avg(x.v) > 2 is checked on each complex event before NEXT chooses, and A+ may leave out any event"],
    ),
    (
        "SELECT SHORTEST * WHERE A{10,} AS x ; B FILTER count(DISTINCT x.u) <= 5",
        ["count(DISTINCT x.u) <= 5 is checked on each complex event before SHORTEST chooses, and A{10,} may"],
    ),
    (
        "SELECT * WHERE A+ PARTITION BY [k] WITHIN 5 EVENTS LIMIT 2",
        ["A+ may leave out", "WITHIN 5 EVENTS counts", "LIMIT 2 applies to each end"],
    ),
]
NOTHING = [
    "SELECT * WHERE A ; B{1,3} FILTER A.c != B.c",
    "SELECT * WHERE A FILTER A.c < A.d",
    "SELECT NEXT * WHERE A+ ; B WITHIN 10 EVENTS",
    "SELECT STRICT * WHERE A+ ; B",
    "SELECT * WHERE STRICT(A+) ; B :+",
    "SELECT * WHERE A{2,}[NOT A]",
    "SELECT * WHERE (A ; B+ ; C) KEEP [A, C]",
    "SELECT * WHERE A ; B UNLESS C+",
    "SELECT * WHERE A ; B PARTITION BY [k] WITHIN 10 SECONDS",
    "SELECT * WHERE A LIMIT 3 PER 1 HOUR",
    "SELECT LONGEST DISJOINT * WHERE A+ ; B WITHIN 10 SECONDS",
    "SELECT LONGEST DISJOINT * WHERE A{10,} AS x ; B FILTER count(DISTINCT x.u) >= 5",
    "SELECT SHORTEST * WHERE A+ ; B FILTER duration > 5 MINUTES",
    "SELECT NEXT * WHERE A+[NOT A] AS x ; B FILTER avg(x.v) > 2",
    "SELECT NEXT * WHERE A ; B+ AS x FILTER x.v > prev(x.v)",
]


@pytest.mark.parametrize(("text", "said"), NOTES)
def test_what_is_easily_misread_is_said(text: str, said: list[str]) -> None:
    notes = estero.query(text).notes()
    assert len(notes) == len(said)
    assert all(map(str.startswith, notes, said))
    assert "\n\nNotes\n  " + "\n  ".join(notes) in str(estero.query(text).explain())


@pytest.mark.parametrize("text", NOTHING)
def test_nothing_is_said_of_other_queries(text: str) -> None:
    assert estero.query(text).notes() == []
    assert "\nNotes\n" not in str(estero.query(text).explain())


def test_what_a_comparison_with_itself_comes_to_is_said() -> None:
    never, unless_null = estero.query("SELECT NEXT * WHERE A AS x FILTER x.c < x.c OR x.c = x.c").notes()
    assert "marked x, so it is never true;" in never
    assert "marked x, so it is true unless they are NULL;" in unless_null
