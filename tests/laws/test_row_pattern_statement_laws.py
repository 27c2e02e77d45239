"""Statements with MATCH_RECOGNIZE that draw all parts of the clause at once, beside the reference."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import estero
from estero import DataError
from estero.language.row_patterns.tree import (
    Choice,
    Excluded,
    Repetition,
    RowPattern,
    Skip,
    Variable,
    nodes_of,
    variables_of,
)
from estero.language.row_patterns.tree import Sequence as PatternSequence
from estero.recognize.row_patterns import row_blocks
from estero.reference.row_patterns import Match, Matcher, row_at
from laws.test_row_pattern_laws import running, table_of
from strategies.row_patterns import (
    NAMES,
    SUBSET,
    Condition,
    Row,
    all_conditions,
    partitions,
    row_patterns,
    skips,
)

pytestmark = pytest.mark.filterwarnings("ignore:the alternative")  # patterns are drawn

GROUPS = {name.lower(): frozenset([name.lower()]) for name in NAMES} | {"u": frozenset("ab")}
MODES = {
    "one": "ONE ROW PER MATCH",
    "all": "ALL ROWS PER MATCH",
    "empty": "ALL ROWS PER MATCH SHOW EMPTY MATCHES",
    "nonempty": "ALL ROWS PER MATCH OMIT EMPTY MATCHES",
    "unmatched": "ALL ROWS PER MATCH WITH UNMATCHED ROWS",
}
MEASURES = """
    MATCH_NUMBER() AS number, FIRST(i) AS first, CLASSIFIER() AS label, sum(v) AS total, count(B.*) AS bs,
    FINAL count(*) AS size, LAST(A.v, 1) AS before, PREV(LAST(B.v)) AS left_of, NEXT(FIRST(A.w)) AS right_of,
    FINAL LAST(C.w) AS last_c, FINAL max(A.v) AS most, count(U.w) AS us, LAST(U.w) AS last_u,
    CLASSIFIER(U) AS label_u, PREV(v, 2) AS two_before, NEXT(LAST(U.v, 1), 2) AS far,
    array_agg(CLASSIFIER()) AS labels"""


@dataclass(frozen=True)
class Statement:
    """What is drawn of a statement."""

    pattern: RowPattern
    define: Mapping[str, Condition]
    skip: Skip
    within: int | None
    mode: str
    descending: bool

    def __str__(self) -> str:
        used = [variable.name for variable in variables_of(self.pattern).values()]
        defined = {name: condition.sql for name, condition in self.define.items() if name in used}
        defined = defined or {used[0]: "TRUE"}
        window = "" if self.within is None else f"WITHIN {self.within}"
        measures = MEASURES + (", 0 AS i" if self.mode == "one" else "")
        return f"""
            SELECT * FROM events MATCH_RECOGNIZE (
                PARTITION BY g ORDER BY i {"DESC" if self.descending else ""}
                MEASURES {measures} {MODES[self.mode]}
                AFTER MATCH SKIP {self.skip}
                PATTERN ({self.pattern}) {window}
                SUBSET {SUBSET}
                DEFINE {", ".join(f"{name} AS {sql}" for name, sql in defined.items())}
            )"""

    def matches(self, part: Sequence[Row]) -> list[Match]:
        """The matches of a partition by the reference."""
        functions = {
            name.lower(): lambda row, labels, start, condition=condition: bool(
                condition.holds(part, row, labels, start)
            )
            for name, condition in self.define.items()
        }
        until = None
        if self.within is not None:
            until = [min(start + self.within + 1, len(part)) for start in range(len(part))]
        return list(Matcher(self.pattern, functions, len(part), until).matches(self.skip, GROUPS))

    def shown(self, g: int, part: Sequence[Row], matches: Sequence[Match]) -> Iterator[dict[str, Any]]:
        """What the statement shows of matches of a partition; i counts its rows in the other order."""

        def i(row: int) -> int:
            return len(part) - 1 - row if self.descending else row

        def measured(found: Match, number: int, current: int) -> dict[str, Any]:
            read = {**running(found, current, part), **further(found, current, part)}
            if read["first"] is not None:
                read["first"] = i(read["first"])
            return {"number": number, **read}

        free = set(range(len(part)))
        rows: list[tuple[int, int, dict[str, Any]]] = []
        for number, found in enumerate(matches, 1):
            free -= {found.start, *(found.start + place for place in range(len(found.labels)))}
            places = [place for place, label in enumerate(found.labels) if not label.excluded]
            if self.mode == "one":
                row = measured(found, number, len(found.labels) - 1)
                rows.append((number, 0, {"g": g, **row, "i": 0}))
                continue
            if not found.labels and self.mode == "nonempty":
                continue
            for place in places if found.labels else [-1]:
                row_number = found.start + max(place, 0)
                row = measured(found, number, place)
                rows.append((number, row_number, {"g": g, "i": i(row_number), **row}))
        if self.mode == "unmatched":
            nothing = dict.fromkeys(COLUMNS)
            rows += [(0, row_number, {"g": g, "i": i(row_number)} | nothing) for row_number in free]
        rows.sort(key=lambda row: (row[1], row[0]) if self.mode == "unmatched" else row[:2])
        for _, row_number, row in rows:
            beside = {} if self.mode == "one" else {"v": part[row_number].v, "w": part[row_number].w}
            yield {**row, **beside}


def further(found: Match, current: int, part: Sequence[Row]) -> dict[str, Any]:
    """Measures that the laws of single parts do not read."""
    labels = [label.variable.upper() for label in found.labels[: current + 1]]

    def row(variables: str | None, **address: Any) -> int | None:
        wanted = None if variables is None else frozenset(variables)
        return row_at(found, current, wanted, rows=len(part), **address)

    def value(column: str, at: int | None) -> Any:
        return None if at is None else getattr(part[at], column)

    of_u = row("ab")
    return {
        "us": sum(label in "AB" for label in labels),
        "last_u": value("w", of_u),
        "label_u": None if of_u is None else labels[of_u - found.start],
        "two_before": value("v", row(None, shift=-2)),
        "far": value("v", row("ab", offset=1, shift=2)),
        "labels": labels or None,
    }


COLUMNS = (
    *("number", "first", "label", "total", "bs", "size", "before", "left_of", "right_of", "last_c", "most"),
    *("us", "last_u", "label_u", "two_before", "far", "labels"),
)

statements = st.builds(
    Statement,
    row_patterns,
    all_conditions,
    st.one_of(skips, st.sampled_from((Skip("first", Variable("U")), Skip("last", Variable("U"))))),
    st.one_of(st.none(), st.none(), st.integers(0, 3)),
    st.sampled_from(list(MODES)),
    st.booleans(),
)


@given(statements, st.lists(partitions, min_size=1, max_size=3), st.sampled_from((1, 4, 1 << 19)))
def test_statements_mean_what_the_reference_says(
    statement: Statement, parts: Sequence[Sequence[Row]], size: int
) -> None:
    if set(variables_of(statement.pattern)) != set("abc"):  # which conditions and measures may read
        rest = Repetition(Choice(tuple(map(Variable, NAMES))), 0, 2)
        statement = replace(statement, pattern=PatternSequence((statement.pattern, rest)))
    if statement.mode == "unmatched":
        assume(not any(isinstance(node, Excluded) for node in nodes_of(statement.pattern)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(row_blocks, "ROWS", size)
        result = estero.sql(str(statement), events=table_of(parts))
        ordered = [part[::-1] if statement.descending else part for part in parts]
        try:
            wanted = [
                row
                for g, part in enumerate(ordered)
                for row in statement.shown(g, part, statement.matches(part))
            ]
        except DataError:
            with pytest.raises(DataError, match="SKIP"):
                result.to_arrow()
            return
        found = result.to_arrow().to_pylist()
    assert [row | {"total": None if row["total"] is None else int(row["total"])} for row in found] == wanted
