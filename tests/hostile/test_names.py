"""Names of users are plain data, whatever letters they have; names that engines confuse are refused."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet
import pytest

import estero
from estero.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pyspark.sql import SparkSession

pytestmark = pytest.mark.filterwarnings("ignore:the key (start|end|start_time) is shown as")
NAMES = [
    "${x}",
    "${env:HOME}",
    "'; DROP TABLE events; --",
    '"quoted"',
    "`",
    "back\\slash",
    "\n",
    "a.b",
    "*",
    "a b,c;d{e}(f)=g\t",
    "😀",
    "SELECT",
    "events",
    "rowid",
    "position",
    "start",
    "end",
    "start_time",
    "label",
    "match",
    "__keyword",
    "__position",
    "__Position_",
    "__TIME",
    "__type",
    "__Key0",
    "__key1",
    "__bits0",
    "__screen0",
    "__value0",
    "__value1",
    "__ordinal",
    "__arrival",
    "__held_time",
    "__held_order0",
    "__held_relevant",
    "__order0",
    "__order1",
    "__began",
    "__reached1",
    "__own",
    "__own__own",
    "__OWN__position",
    "__column0",
    "__payload0",
    "__event0",
    "__relevant",
    "__keyed",
    "__clock",
    "__range",
    "__home",
    "__task",
    "$1",
    "?",
    " ",
]


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def one_column(name: str) -> pa.Table:
    """Events whose column of that name is 0, 1, 0, 1, …, of the type `name`, at the times 0, 1, …"""
    return pa.table({name: [0, 1] * 3, "kind": [name] * 6, "t": range(6), "nested": [{name: name}] * 6})


def used_everywhere(name: str) -> str:
    """A query with the name as type, in a label, as attribute, in a predicate, a comparison and a key."""
    x, label = quoted(name), quoted(f"{name}'s")
    return (
        f"SELECT {label}, b[{x}] WHERE {x} AS {label} ; {x} AS b FILTER {label}[{x} < 2] AND b[{x} >= 0] "
        f"AND {label}.{x} = b.{x} PARTITION BY [{x}] WITHIN 3 [t]"
    )


@pytest.mark.parametrize("name", NAMES)
def test_a_name_of_any_letters_is_a_name(name: str) -> None:
    found = estero.query(used_everywhere(name)).run(one_column(name), type="kind", time="t", order=[name])
    table = found.to_arrow()
    assert table.num_rows == 4
    if name != "position":  # the place of the event is called so, too
        assert {event[name] for row in table.to_pylist() for event in row["b"]} == {0, 1}


@pytest.mark.parametrize("compared", ["", " FILTER a.t < b.t AND b.t < c.t"], ids=["states", "answers"])
@pytest.mark.parametrize("name", ["start", "began", "__began", "__reached1", "__own", "step", "Part", "a.b"])
def test_a_key_of_any_name_has_a_funnel_and_partial_matches(name: str, compared: str) -> None:
    events = pa.table({name: [0, 1] * 4, "kind": list("AABBAACC"), "t": range(8)})
    query = f"SELECT NONE WHERE A AS a ; B AS b ; C AS c{compared} PARTITION BY [{quoted(name)}] WITHIN 3 [t]"
    answer = estero.query(query).run(events, type="kind", time="t", order=["kind"])
    funnel = answer.funnel(by_partition=True).to_arrow().to_pylist()
    assert [(next(iter(row.values())), row["starts"]) for row in funnel] == [
        (key, starts) for key in (0, 1) for starts in (2, 1, 0)
    ]
    assert [match.steps for match in answer.partials()] == [2, 2]


def all_names() -> tuple[pa.Table, str]:
    """Events with a column of each name, each of a type of its own, and a query that asks for all of them."""
    numbers = dict.fromkeys(NAMES, 0)
    rows = [{**numbers, "kind": name, "t": t, "nested": numbers} for t, name in enumerate(NAMES)]
    marked = [(quoted(name), quoted(f"{name}'s")) for name in NAMES]
    query = (
        f"SELECT {', '.join(label for _, label in marked)} "
        f"WHERE {' OR '.join(f'{x} AS {label}' for x, label in marked)} "
        f"FILTER {' AND '.join(f'{label}[{x} = 0]' for x, label in marked)} "
        f"PARTITION BY {', '.join(f'[{x}]' for x, _ in marked)}"
    )
    return pa.Table.from_pylist(rows), query


def pushed(query: str, schema: object, batches: list[Any], **layout: Any) -> pa.Table:
    """What a recognizer finds that goes on from a snapshot after each batch."""
    recognizer = estero.query(query).recognizer(schema, **layout)
    found = []
    for batch in batches:
        found.append(recognizer.push(batch).to_arrow())
        recognizer = estero.restore(query, recognizer.snapshot())
    return pa.concat_tables([*found, recognizer.flush().to_arrow()])


WAYS: dict[str, Callable[[str, pa.Table, dict[str, Any]], pa.Table]] = {
    "sorted": lambda query, table, layout: (
        estero.query(query).run(table.take(list(range(table.num_rows))[::-1]), **layout).to_arrow()
    ),
    "batches": lambda query, table, layout: (
        estero.query(query).run(iter(table.to_batches(max_chunksize=9)), **layout).to_arrow()
    ),
    "encoded": lambda query, table, layout: (
        estero.query(query)
        .run(table.set_column(len(NAMES), "kind", table["kind"].dictionary_encode()), **layout)
        .to_arrow()
    ),
    "recognizer": lambda query, table, layout: pushed(
        query, table.schema, table.to_batches(max_chunksize=20), **layout
    ),
    "held back": lambda query, table, layout: pushed(
        query, table.schema, table.to_batches(max_chunksize=20), **layout, lateness=3
    ),
}


@pytest.mark.parametrize("way", WAYS)
def test_names_of_any_letters_are_names_however_events_come(way: str) -> None:
    table, query = all_names()
    layout: dict[str, Any] = {"type": "kind", "time": "t", "order": NAMES}
    here = estero.query(query).run(table, **layout).to_arrow()
    assert here.num_rows == len(NAMES)
    found = WAYS[way](query, table, layout)
    assert list(map(str, found.to_pylist())) == list(map(str, here.to_pylist()))


def test_names_of_any_letters_are_names_in_a_table_for_each_type() -> None:
    table, query = all_names()
    parts = {name: table.slice(place, 1).drop_columns("kind") for place, name in enumerate(NAMES)}
    found = estero.query(query).run(parts, time="t", order=NAMES).to_arrow()
    assert found.num_rows == len(NAMES)
    schemas = {name: part.schema for name, part in parts.items()}
    batches = [{name: part} for name, part in parts.items()][:3]
    assert pushed(query, schemas, batches, time="t", order=NAMES).to_pylist() == found[:3].to_pylist()


@pytest.mark.parametrize("name", ["__time", "__position", "__value0"])
def test_names_of_working_columns_are_names_in_what_the_sieve_asks(name: str) -> None:
    x = quoted(name)
    table = pa.table({name: [1, 2, 4, 8], "t": range(4)})
    found = estero.query(f"SELECT a WHERE Event+ AS a FILTER SUM(a.{x}) = 7 AND INCREASING(a.{x})").run(table)
    assert [(match.start, match.end) for match in found] == [(0, 2)]


def test_a_column_without_a_name_is_one_like_others() -> None:
    table = pa.table({"": [3, 1, 2], "kind": ["B", "A", "A"], "t": [1, 0, 0]})
    query = estero.query("SELECT A WHERE A ; B")
    for order, expected in ((("",), [[1], [2]]), ((), [[1], [2]])):
        found = query.run(table, type="kind", time="t", order=order).to_arrow().to_pylist()
        assert sorted([event[""] for event in row["A"]] for row in found) == expected
    for events in (table, iter(table.sort_by("").to_batches())):
        of_time = query.run(events, type="kind", time="").to_arrow()
        assert sorted(of_time.column("start_time").to_pylist()) == [1, 2]


def test_an_empty_key_of_json_is_refused(tmp_path: Path) -> None:
    (tmp_path / "events.jsonl").write_text('{"": 1, "t": 2}\n')
    with pytest.raises(DataError, match="an event has an empty key"):
        estero.query("SELECT * WHERE Event").run(tmp_path / "events.jsonl")


@pytest.mark.parametrize("ending", ["parquet", "csv", "jsonl"])
@pytest.mark.parametrize("name", ["__position", "__Time"])
def test_names_of_working_columns_are_names_in_files(name: str, ending: str, tmp_path: Path) -> None:
    table, file = pa.table({name: [2, 1], "t": [1, 0]}), tmp_path / f"events.{ending}"
    match ending:
        case "parquet":
            pyarrow.parquet.write_table(table, file)
        case "csv":
            file.write_text(f"{name},t\n2,1\n1,0\n")
        case _:
            file.write_text(f'{{"{name}": 2, "t": 1}}\n{{"{name}": 1, "t": 0}}\n')
    found = estero.query(f'SELECT a WHERE Event AS a FILTER a["{name}" > 0]').run(file, time=name)
    assert [match["a"][0][name] for match in found] == [1, 2]


@pytest.mark.parametrize("name", ["", "__type", "__TYPE", "__position"])
def test_late_events_are_shown_with_their_own_names(name: str) -> None:
    schemas = {"A": pa.schema({name: pa.int64(), "t": pa.int64()})}
    recognizer = estero.query("SELECT * WHERE A").recognizer(schemas, time="t")
    recognizer.push({"A": [{name: 1, "t": 9}]}).count()
    recognizer.push({"A": [{name: 2, "t": 1}]}).count()
    (late,) = recognizer.late_events().to_pylist()
    assert late[name] == 2
    assert set(late.values()) == {"A", 2, 1}


@pytest.mark.spark
def test_names_of_any_letters_are_names_on_spark(spark: SparkSession) -> None:
    """All of them at once: as types, labels, attributes, in predicates, as keys, and inside of values."""
    from estero.spark import collect, recognize

    table, query = all_names()
    layout: dict[str, Any] = {"type": "kind", "time": "t", "order": NAMES}
    here = estero.query(query).run(table, **layout).to_arrow().to_pylist()
    df = spark.createDataFrame(table)
    found = collect(recognize(df, query, **layout, positions=True))
    there = pa.Table.from_batches(found.batches(), found.schema).to_pylist()
    assert sorted(map(str, there)) == sorted(map(str, here))
    assert len(here) == len(NAMES)


@pytest.mark.spark
def test_names_of_working_columns_are_names_where_spark_counts_places(spark: SparkSession) -> None:
    from estero.spark import collect, recognize

    table = pa.table({"__ordinal": [1] * 4, "__position": [1, 2, 4, 8], "": range(4), "t": range(4)})
    query = 'SELECT a WHERE Event AS a : Event AS b FILTER a["__position" > 1] PARTITION BY ["__ordinal"]'
    here = estero.query(query).run(table, time="t", order=[""]).to_arrow()
    df = spark.createDataFrame(table)
    found = collect(recognize(df, query, time="t", order=[""], positions=True))
    there = pa.Table.from_batches(found.batches(), found.schema)
    assert here.num_rows == 2
    assert sorted(map(str, there.to_pylist())) == sorted(map(str, here.to_pylist()))


@pytest.mark.spark
def test_a_name_of_any_letters_is_a_name_in_a_join(spark: SparkSession) -> None:
    from estero.spark import recognize

    tables = {"A": "${x}", "B": "`"}
    rows = [{"kind": kind, name: n, "t": n} for kind, name in tables.items() for n in range(4)]
    kinds = {"kind": pa.string(), "${x}": pa.int64(), "`": pa.int64(), "t": pa.int64()}
    table = pa.Table.from_pylist(rows, pa.schema(kinds))
    query = 'Q(k) <- A("${x}": k), B("`": k) WITHIN 9 [t]'
    here = estero.conjunctive(query).run(table, type="kind", time="t", order=["kind"])
    found = recognize(spark.createDataFrame(table), query, type="kind", time="t", order=["kind"])
    assert found.count() == here.count() == 4


def test_a_name_with_a_nul_is_refused() -> None:
    with pytest.raises(DataError, match=r"the column name 'n\\x00m' holds a NUL character"):
        estero.query("SELECT * WHERE Event").run(pa.table({"n\0m": [1]}))


LIKE_EACH_OTHER = pa.table({"v": [1, 5, 3], "V": [2, 4, 4], "t": [1, 2, 3]})
BOTH = 'SELECT a, b[V, v] WHERE Event AS a : Event AS b FILTER a[v > "V"] PARTITION BY [V]'
BOTH_FOUND = [{"a": [{"v": 5, "V": 4, "t": 2}], "b": [{"V": 4, "v": 3}]}]


def labels_of(answer: Any) -> list[dict[str, Any]]:
    shown = ("v", "V", "t")
    return [
        {label: [{n: v for n, v in event.items() if n in shown} for event in row[label]] for label in "ab"}
        for row in answer.to_dicts()
    ]


@pytest.mark.parametrize("kind", ["table", "pandas", "dicts", "polars", "lazy", "batches", "stream"])
def test_columns_that_differ_in_case_only_are_two(kind: str) -> None:
    polars = pytest.importorskip("polars")
    given: dict[str, Any] = {
        "table": LIKE_EACH_OTHER,
        "pandas": LIKE_EACH_OTHER.to_pandas(),
        "dicts": LIKE_EACH_OTHER.to_pylist(),
        "polars": polars.from_arrow(LIKE_EACH_OTHER),
        "lazy": polars.from_arrow(LIKE_EACH_OTHER).lazy(),
        "batches": LIKE_EACH_OTHER.to_batches(),
        "stream": pa.RecordBatchReader.from_batches(LIKE_EACH_OTHER.schema, LIKE_EACH_OTHER.to_batches()),
    }
    answer = estero.query(BOTH).run(given[kind], time="t")
    assert labels_of(answer.limit(5) if kind != "stream" else answer) == BOTH_FOUND


@pytest.mark.parametrize("ending", ["parquet", "arrow", "jsonl", "json", "csv"])
def test_columns_of_files_that_differ_in_case_only_are_two(ending: str, tmp_path: Path) -> None:
    file = tmp_path / f"events.{ending}"
    rows = list(map(json.dumps, LIKE_EACH_OTHER.to_pylist()))
    if ending == "parquet":
        pa.parquet.write_table(LIKE_EACH_OTHER, file)
    elif ending == "arrow":
        with pa.ipc.new_file(str(file), LIKE_EACH_OTHER.schema) as written:
            written.write_table(LIKE_EACH_OTHER)
    else:
        texts = {
            "json": f"[{', '.join(rows)}]",
            "jsonl": "\n".join(rows),
            "csv": "v,V,t\n1,2,1\n5,4,2\n3,4,3\n",
        }
        file.write_text(texts[ending])
    assert labels_of(estero.query(BOTH).run(file, time="t")) == BOTH_FOUND
    assert estero.query("SELECT * WHERE Event FILTER Event[V = 2]").recognizer(file, time="t") is not None


def test_pushed_columns_that_differ_in_case_only_are_two() -> None:
    rows = LIKE_EACH_OTHER.to_pylist()
    for pushed in (
        rows,
        [tuple(row.values()) for row in rows],
        [LIKE_EACH_OTHER],
        [LIKE_EACH_OTHER.to_pandas()],
    ):
        recognizer = estero.query(BOTH).recognizer(LIKE_EACH_OTHER.schema, time="t")
        assert [row for events in pushed for row in labels_of(recognizer.push(events))] == BOTH_FOUND


def test_late_events_have_the_names_that_they_came_with() -> None:
    recognizer = estero.query(BOTH).recognizer(LIKE_EACH_OTHER.schema, time="t", lateness=0)
    recognizer.push(LIKE_EACH_OTHER.slice(1))
    recognizer.push(LIKE_EACH_OTHER.slice(0, 1))
    assert recognizer.late_events().to_pylist() == [{"v": 1, "V": 2, "t": 1}]


def test_roles_may_be_of_columns_that_differ_in_case_only() -> None:
    table = pa.table({"T": ["A", "B"], "t": [1, 2], "O": [1, 2], "o": [2, 1]})
    query = estero.query("SELECT * WHERE A ; B WITHIN 5 [t]")
    assert query.run(table, type="T", time="t", order=["O"]).count() == 1
    with pytest.raises(DataError, match="there is no type column 'X'") as error:
        query.run(table, type="X", time="t")
    assert error.value.hint == "the columns are T, t, O, o"


def test_columns_of_two_types_that_differ_in_case_only_are_two() -> None:
    tables = {"A": pa.table({"v": [1], "t": [1]}), "B": pa.table({"V": [2], "t": [2]})}
    query = estero.query("SELECT * WHERE A ; B FILTER A[v = 1] AND B[V = 2]")
    assert query.run(tables, time="t").count() == 1
    recognizer = query.recognizer({name: table.schema for name, table in tables.items()}, time="t")
    assert recognizer.push(tables).count() == 1


def test_conjunctive_queries_and_automata_tell_columns_apart_that_differ_in_case_only() -> None:
    table = pa.table({"v": [1, 2, 3], "V": [2, 9, 1], "t": [1, 2, 3]})
    joined = estero.conjunctive("Q(x) <- Event(v: x) AS a, Event(V: x) AS b WITHIN 9 [t]")
    assert joined.run(table, time="t").count() == 2
    machine = estero.automaton(
        [("q", "Event[V = 2]", "a", "r"), ("r", "Event", "b", "s", "before.V = v")], initial="q", final="s"
    )
    assert machine.run(table, time="t").count() == 1


def test_messages_have_the_names_that_users_have() -> None:
    with pytest.raises(estero.QueryError) as error:
        estero.query("SELECT * WHERE Event FILTER Event[x = 1]").run(LIKE_EACH_OTHER)
    assert "exact" not in str(error.value)
    assert "v, V or t" in str(error.value)


def test_columns_of_files_with_numbers_at_their_ends_are_what_they_are(tmp_path: Path) -> None:
    table = pa.table({"v": [1], "v_1": [2], "n": [{"v": 1, "V": 2}]})
    pa.parquet.write_table(table, tmp_path / "events.parquet")
    assert estero.query("SELECT * WHERE Event").run(tmp_path / "events.parquet").count() == 1


@pytest.mark.spark
def test_columns_that_differ_in_case_only_are_two_on_spark(spark: SparkSession) -> None:
    from estero.spark import recognize

    found = recognize(spark.createDataFrame(LIKE_EACH_OTHER), BOTH, time="t")
    assert [row.asDict(recursive=True) for row in found.select("a", "b").collect()] == BOTH_FOUND


@pytest.mark.spark
def test_the_function_of_sql_says_which_name_it_cannot_read(spark: SparkSession) -> None:
    from pyspark.errors import AnalysisException

    from estero.spark import register

    register(spark)
    spark.createDataFrame(pa.table({"${x}": [1], "`": [1], "t": [1]})).createOrReplaceTempView("named")
    table = "TABLE(named) WITH SINGLE PARTITION ORDER BY (t)"
    found: Any = spark.sql(f"SELECT * FROM recognize({table}, 'SELECT a[\"`\"] WHERE Event AS a')")
    assert found.count() == 1
    with pytest.raises(AnalysisException, match=r"for a variable, even in the name of a column"):
        spark.sql(f"SELECT * FROM recognize({table}, 'SELECT a WHERE Event AS a')")


@pytest.mark.spark
def test_columns_of_any_name_break_ties_on_spark(spark: SparkSession) -> None:
    from estero.spark import recognize

    table = pa.table({"kind": ["B", "A"], "t": [1, 1], "${x}": [2, 1]})
    found = recognize(
        spark.createDataFrame(table), "SELECT * WHERE A ; B", type="kind", time="t", order=["${x}"]
    )
    assert found.count() == 1
