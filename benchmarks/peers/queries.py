"""What is asked, and how each engine says it. An engine that cannot say the same thing says why not.

Positions are times: `id` is both. Windows are inclusive, `end - start <= window`; engines whose windows are
exclusive get one tick more. A query has one meaning: where engines differ in what they take a sequence to
mean (every combination, or the next event that fits), it says which.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple


@dataclass(frozen=True, slots=True)
class Query:
    """What is asked, in words; the window in events, if there is one."""

    name: str
    meaning: str
    window: int


QUERIES = (
    Query("sequence", "an A, then a B, then a D, with anything between: every combination", 100),
    Query("kleene", "an A, then one or more B's, then a D: every combination, every choice of B's", 40),
    Query("absence", "an A and the next B or C after it, where that is a C: no B comes between", 100),
    Query("rising", "three events in a row whose prices rise, from below 100 to above 900", 2),
    Query("keys", "a C, the next A after it, and the next B after that, all with one key of 100", 2_000),
    Query("any order", "an A, a B and a D in any order: every combination", 40),
    Query("next", "a C, the next A after it, and the next B after that", 100),
)
WINDOWS = {query.name: query.window for query in QUERIES}


class Unsaid(NamedTuple):
    """Why an engine cannot be asked this."""

    reason: str


Said = str | Unsaid
"""The text of a query, or why there is none."""

_W = WINDOWS
_ORDERS = ("A ; B ; D", "A ; D ; B", "B ; A ; D", "B ; D ; A", "D ; A ; B", "D ; B ; A")

ESTERO: dict[str, Said] = {
    "sequence": f"SELECT * WHERE A ; B ; D WITHIN {_W['sequence']} EVENTS",
    "kleene": f"SELECT * WHERE A ; B+ ; D WITHIN {_W['kleene']} EVENTS",
    "absence": f"""SELECT * FROM S WHERE S AS a ; NOT(S AS n FILTER n[type = 'B' OR type = 'C']) ; S AS c
FILTER a[type = 'A'] AND c[type = 'C'] KEEP [a, c] WITHIN {_W["absence"]} EVENTS""",
    "rising": f"""SELECT * FROM S WHERE S AS x : S AS y : S AS z
FILTER x[price < 100] AND x.price < y.price AND y.price < z.price AND z[price > 900]
KEEP [x, y, z] WITHIN {_W["rising"]} EVENTS""",
    "keys": f"SELECT * WHERE C ; NOT(A) ; A ; NOT(B) ; B PARTITION BY [key] WITHIN {_W['keys']} EVENTS",
    "any order": f"SELECT * WHERE A ALL B ALL D WITHIN {_W['any order']} EVENTS",
    "next": f"SELECT * WHERE C ; NOT(A) ; A ; NOT(B) ; B WITHIN {_W['next']} EVENTS",
}

_CORE_NEXT = """SELECT c, a, b FROM S WHERE
(C AS c : A AS a : B AS b)
OR (C AS c : ((B OR C OR D OR E) AS x):+ : A AS a : B AS b)
OR (C AS c : A AS a : ((A OR C OR D OR E) AS y):+ : B AS b)
OR (C AS c : ((B OR C OR D OR E) AS x):+ : A AS a : ((A OR C OR D OR E) AS y):+ : B AS b)"""

CORE: dict[str, Said] = {
    "sequence": f"SELECT * FROM S WHERE A ; B ; D WITHIN {_W['sequence']} EVENTS",
    "kleene": f"SELECT * FROM S WHERE A ; B+ ; D WITHIN {_W['kleene']} EVENTS",
    "absence": f"""SELECT a, c FROM S WHERE (A AS a : C AS c) OR (A AS a : ((A OR D OR E) AS x):+ : C AS c)
WITHIN {_W["absence"]} EVENTS""",
    "rising": Unsaid("its filters apply to one event at a time"),
    "keys": f"{_CORE_NEXT}\nPARTITION BY [key] WITHIN {_W['keys']} [id]",
    "any order": "SELECT * FROM S WHERE "
    + " OR ".join(f"({order})" for order in _ORDERS)
    + f" WITHIN {_W['any order']} EVENTS",
    "next": f"{_CORE_NEXT}\nWITHIN {_W['next']} EVENTS",
}

FLINK: dict[str, Said] = {
    "sequence": f"""
        Pattern.<Event>begin("a").where(is("A"))
            .followedByAny("b").where(is("B"))
            .followedByAny("d").where(is("D"))
            .within(Duration.ofMillis({_W["sequence"] + 1}))""",
    "kleene": f"""
        Pattern.<Event>begin("a").where(is("A"))
            .followedByAny("b").where(is("B")).oneOrMore().allowCombinations()
            .followedByAny("d").where(is("D"))
            .within(Duration.ofMillis({_W["kleene"] + 1}))""",
    "absence": f"""
        Pattern.<Event>begin("a").where(is("A"))
            .notFollowedBy("n").where(is("B"))
            .followedBy("c").where(is("C"))
            .within(Duration.ofMillis({_W["absence"] + 1}))""",
    "rising": f"""
        Pattern.<Event>begin("x").where(holds(x -> x.price < 100))
            .next("y").where(after("x", (x, y) -> y.price > x.price))
            .next("z").where(after("y", (y, z) -> z.price > y.price && z.price > 900))
            .within(Duration.ofMillis({_W["rising"] + 1}))""",
    "keys": f"""
        Pattern.<Event>begin("c").where(is("C"))
            .followedBy("a").where(is("A"))
            .followedBy("b").where(is("B"))
            .within(Duration.ofMillis({_W["keys"] + 1}))""",
    "any order": f"""
        Pattern.<Event>begin("x").where(holds(x -> "ABD".contains(x.type)))
            .followedByAny("y").where(after("x", (x, y) -> "ABD".contains(y.type) && !y.type.equals(x.type)))
            .followedByAny("z").where(after("x", (x, z) -> "ABD".contains(z.type) && !z.type.equals(x.type)))
            .where(after("y", (y, z) -> !z.type.equals(y.type)))
            .within(Duration.ofMillis({_W["any order"] + 1}))""",
    "next": f"""
        Pattern.<Event>begin("c").where(is("C"))
            .followedBy("a").where(is("A"))
            .followedBy("b").where(is("B"))
            .within(Duration.ofMillis({_W["next"] + 1}))""",
}


_ONE_MATCH = Unsaid("it gives at most one match for each first row, not every combination")
_RISING = {"X": "X.price < 100", "Y": "Y.price > X.price", "Z": "Z.price > Y.price AND Z.price > 900"}
_ABSENCE = {"A": "A.type = 'A'", "X": "X.type <> 'B' AND X.type <> 'C'", "C": "C.type = 'C'"}
_NEXT = {
    "C": "C.type = 'C'",
    "X": "X.type <> 'A'",
    "A": "A.type = 'A'",
    "Y": "Y.type <> 'B'",
    "B": "B.type = 'B'",
}


def _matched(pattern: str, define: dict[str, str], order: str, partition: str = "", within: str = "") -> str:
    names = pattern.replace("X*", "").replace("Y*", "").split()
    conditions = ", ".join(f"{name} AS {condition}" for name, condition in define.items())
    return f"""SELECT {", ".join(names).lower()} FROM events MATCH_RECOGNIZE (
    {partition}ORDER BY {order}
    MEASURES {", ".join(f"{name}.id AS {name.lower()}" for name in names)}
    ONE ROW PER MATCH AFTER MATCH SKIP TO NEXT ROW
    PATTERN ({pattern}){within}
    DEFINE {conditions})"""


def _flink(pattern: str, define: dict[str, str], query: str, partition: str = "") -> str:
    within = f" WITHIN INTERVAL '{(_W[query] + 1) / 1000:.3f}' SECOND"
    return _matched(pattern, define, "ts", partition, within)


def _trino(pattern: str, define: dict[str, str], query: str, partition: str = "") -> str:
    """Without WITHIN: each condition says how far from the first event it may hold."""
    first, *_, last = define
    bounded = {
        name: f"{condition} AND {name}.id - {first}.id {'<=' if name == last else '<'} {_W[query]}"
        for name, condition in define.items()
    }
    bounded[first] = define[first]
    return _matched(pattern, bounded, "id", partition)


MATCH_RECOGNIZE: dict[str, Said] = {
    "sequence": _ONE_MATCH,
    "kleene": _ONE_MATCH,
    "absence": _flink("A X* C", _ABSENCE, "absence"),
    "rising": _flink("X Y Z", _RISING, "rising"),
    "keys": _flink("C X* A Y* B", _NEXT, "keys", "PARTITION BY key "),
    "any order": _ONE_MATCH,
    "next": _flink("C X* A Y* B", _NEXT, "next"),
}

TRINO: dict[str, Said] = {
    "sequence": _ONE_MATCH,
    "kleene": _ONE_MATCH,
    "absence": _trino("A X* C", _ABSENCE, "absence"),
    "rising": _matched("X Y Z", _RISING, "id"),
    "keys": _trino("C X* A Y* B", _NEXT, "keys", "PARTITION BY key "),
    "any order": _ONE_MATCH,
    "next": _trino("C X* A Y* B", _NEXT, "next"),
}

_NO_COMBINATIONS = Unsaid("a started match continues with the next event that fits, not with every one")


def _siddhi(pattern: str, names: str, query: str, partition: str = "") -> str:
    shown = ", ".join(f"{name}.id as {name}" for name in names)
    text = f"from {pattern} within {_W[query]} milliseconds select {shown} insert into Found;"
    if partition:
        text = f"partition with ({partition} of S) begin {text} end;"
    return f"@app:playback define stream S (id long, type string, key int, price int);\n{text}"


SIDDHI: dict[str, Said] = {
    "sequence": _NO_COMBINATIONS,
    "kleene": _NO_COMBINATIONS,
    "absence": _siddhi("every a=S[type=='A'] -> not S[type=='B'] and c=S[type=='C']", "ac", "absence"),
    "rising": _siddhi(
        "every x=S[price < 100], y=S[price > x.price], z=S[price > y.price and price > 900]", "xyz", "rising"
    ),
    "keys": _siddhi("every c=S[type=='C'] -> a=S[type=='A'] -> b=S[type=='B']", "cab", "keys", "key"),
    "any order": _NO_COMBINATIONS,
    "next": _siddhi("every c=S[type=='C'] -> a=S[type=='A'] -> b=S[type=='B']", "cab", "next"),
}


def _esper(pattern: str, names: str, query: str) -> str:
    shown = ", ".join(f"{name}.id as {name}" for name in names)
    guard = f"where timer:within({_W[query] + 1} milliseconds)"
    return f"@name('found') select {shown} from pattern [{pattern.format(guard=guard)}]"


ESPER: dict[str, Said] = {
    "sequence": _esper(
        "every a=S(type='A') -> (every b=S(type='B') -> every d=S(type='D')) {guard}", "abd", "sequence"
    ),
    "kleene": f"""@name('found') select * from S match_recognize (
    measures A.id as a, B.selectFrom(each => each.id) as b, D.id as d
    all matches after match skip to current row
    pattern (A (X* B)+ X* D)
    define A as A.type = 'A', B as B.type = 'B' and B.id - A.id < {_W["kleene"]},
        X as X.id - A.id < {_W["kleene"]}, D as D.type = 'D' and D.id - A.id <= {_W["kleene"]})""",
    "absence": _esper("every a=S(type='A') -> (c=S(type='C') and not S(type='B')) {guard}", "ac", "absence"),
    "rising": """@name('found') select * from S match_recognize (
    measures X.id as x, Y.id as y, Z.id as z
    after match skip to next row
    pattern (X Y Z)
    define X as X.price < 100, Y as Y.price > X.price, Z as Z.price > Y.price and Z.price > 900)""",
    "keys": _esper(
        "every c=S(type='C') -> (a=S(type='A', key=c.key) -> b=S(type='B', key=c.key)) {guard}", "cab", "keys"
    ),
    "any order": _esper(
        "every x=S(type in ('A', 'B', 'D')) -> (every y=S(type in ('A', 'B', 'D'), type != x.type) -> "
        "every z=S(type in ('A', 'B', 'D'), type != x.type, type != y.type)) {guard}",
        "xyz",
        "any order",
    ),
    "next": _esper("every c=S(type='C') -> (a=S(type='A') -> b=S(type='B')) {guard}", "cab", "next"),
}

_IDS = "(SELECT id, key FROM events WHERE type = '{0}') AS {1}"
_A, _B, _C, _D = (_IDS.format(kind, kind.lower()) for kind in "ABCD")

DUCKDB: dict[str, Said] = {
    "sequence": f"""SELECT a.id AS a, b.id AS b, d.id AS d
FROM {_D}
JOIN {_A} ON a.id BETWEEN d.id - {_W["sequence"]} AND d.id - 1
JOIN {_B} ON b.id BETWEEN a.id + 1 AND d.id - 1""",
    "kleene": f"""CREATE OR REPLACE TEMP TABLE starts AS
    SELECT d.id AS d, a.id AS a FROM {_D} JOIN {_A} ON a.id BETWEEN d.id - {_W["kleene"]} AND d.id - 1;
CREATE OR REPLACE TEMP TABLE near AS
    SELECT d.id AS d, b.id AS b FROM {_D} JOIN {_B} ON b.id BETWEEN d.id - {_W["kleene"]} AND d.id - 1;
WITH RECURSIVE chosen(d, first, bs) AS (
    SELECT d, b, [b] FROM near
    UNION ALL
    SELECT chosen.d, near.b, list_prepend(near.b, bs)
    FROM chosen JOIN near ON near.d = chosen.d AND near.b < first)
SELECT a, bs, chosen.d AS d FROM chosen JOIN starts ON starts.d = chosen.d AND a < first""",
    "absence": f"""SELECT a.id AS a, e.id AS c
FROM {_A} ASOF JOIN (SELECT id, type FROM events WHERE type IN ('B', 'C')) AS e ON a.id < e.id
WHERE e.type = 'C' AND e.id - a.id <= {_W["absence"]}""",
    "rising": """SELECT id AS x, id + 1 AS y, id + 2 AS z FROM events
WINDOW rows AS (ORDER BY id)
QUALIFY price < 100 AND price < lead(price) OVER rows
    AND lead(price) OVER rows < lead(price, 2) OVER rows AND lead(price, 2) OVER rows > 900""",
    "keys": f"""SELECT c.id AS c, a.id AS a, b.id AS b
FROM {_C} ASOF JOIN {_A} ON c.key = a.key AND c.id < a.id
ASOF JOIN {_B} ON a.key = b.key AND a.id < b.id
WHERE b.id - c.id <= {_W["keys"]}""",
    "any order": f"""SELECT a.id AS a, b.id AS b, d.id AS d
FROM {_D}
JOIN {_A} ON a.id BETWEEN d.id - {_W["any order"]} AND d.id + {_W["any order"]}
JOIN {_B} ON b.id BETWEEN greatest(a.id, d.id) - {_W["any order"]}
    AND least(a.id, d.id) + {_W["any order"]}""",
    "next": f"""SELECT c.id AS c, a.id AS a, b.id AS b
FROM {_C} ASOF JOIN {_A} ON c.id < a.id ASOF JOIN {_B} ON a.id < b.id
WHERE b.id - c.id <= {_W["next"]}""",
}

PANDAS: dict[str, Said] = dict.fromkeys(WINDOWS, "pandas_engine.py")
"""It has functions, not texts."""
