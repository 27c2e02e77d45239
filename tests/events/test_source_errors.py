"""What is no stream of events has a clear answer why not: the file, the row, the column."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory

import polars as pl
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest

import estero
from estero.automata.cea import EventPredicate
from estero.errors import DataError
from estero.events.sources import open_source
from estero.language.tree.expressions import Arithmetic, Attribute, Comparison, Literal
from estero.language.tree.schema import EventLayout
from estero.plan.plan import Classification
from events.reading import TRADES, rows, write_csv
from unprivileged import no_longer_root


def test_what_is_no_stream_of_events_is_refused() -> None:
    with pytest.raises(DataError, match="events of type int cannot be read\n  hint: pass a path or glob"):
        open_source(3)
    with pytest.raises(DataError, match="the iterator holds dict, not record batches"):
        open_source(iter([{"a": 1}]))
    with pytest.raises(DataError, match="the list holds dicts and int"):
        open_source([{"a": 1}, 3])
    with pytest.raises(DataError, match="the list holds int, not record batches"):
        open_source([3])
    with pytest.raises(DataError, match="the iterator of record batches is empty"):
        open_source(iter([]))
    with pytest.raises(DataError, match="the mapping of types to their events is empty"):
        open_source({})
    with pytest.raises(DataError, match=r"Polars cannot run this lazy frame: .*nowhere"):
        open_source(pl.LazyFrame({"a": [1]}).select("nowhere"))
    with pytest.raises(DataError, match="a mapping gives each type its own table"):
        open_source({"A": TRADES}, EventLayout.of(type="kind"))
    with pytest.raises(DataError, match="csv_options are for CSV files, but these events are not in a file"):
        open_source(TRADES, csv_options={"delim": ","})


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"nowhere.csv: there is no such file"):
        open_source(str(tmp_path / "nowhere.csv"))
    with pytest.raises(DataError, match=r"\*.parquet: no file matches this pattern"):
        open_source(str(tmp_path / "*.parquet"))
    with pytest.raises(DataError, match="the directory holds no files"):
        open_source(tmp_path)


def test_an_unreadable_file_is_named(tmp_path: Path) -> None:
    path = tmp_path / "broken.parquet"
    path.write_text("this is no Parquet file at all", encoding="utf-8")
    with pytest.raises(DataError, match=r"broken.parquet: cannot read the events: .*[Pp]arquet"):
        open_source(path)
    unknown = tmp_path / "events.dat"
    unknown.write_text("?", encoding="utf-8")
    with pytest.raises(DataError, match=r"events.dat: the name does not say which format the file has"):
        open_source(unknown)


@pytest.fixture
def forbidden() -> Iterator[Path]:
    """A directory with a file that this process may not read; as root it is nobody for so long."""
    with TemporaryDirectory() as name:
        directory = Path(name)
        directory.chmod(0o755)
        path = directory / "secret.csv"
        path.write_text("a\n1\n", encoding="utf-8")
        path.chmod(0)
        with no_longer_root():
            yield directory


@pytest.mark.parametrize("events", ["secret.csv", "", "*.csv"])
def test_a_forbidden_file_is_named(forbidden: Path, events: str) -> None:
    with pytest.raises(DataError, match=r"secret\.csv: the file cannot be read: permission denied"):
        open_source(forbidden / events)


def test_a_file_without_even_a_header_is_refused(tmp_path: Path) -> None:
    for name in ("empty.csv", "empty.jsonl", "empty.parquet", "blank.csv"):
        (tmp_path / name).write_text("\n\n" if name == "blank.csv" else "", encoding="utf-8")
        with pytest.raises(DataError, match=f"{name}: the file is empty: it has not even a header"):
            open_source(tmp_path / name)


@pytest.mark.parametrize("text", ["kind,t,v\n", "# none today\r\nkind;t;v\r\n\r\n", '"kind"\t"t"\t"v"'])
def test_a_file_with_a_header_alone_is_an_empty_stream(tmp_path: Path, text: str) -> None:
    (tmp_path / "events.csv").write_text(text, encoding="utf-8")
    answer = estero.query("SELECT * WHERE A ; B").run(tmp_path / "events.csv", type="kind", types=["A", "B"])
    assert answer.count() == 0
    (tmp_path / "events.csv").write_text("A,1\n", encoding="utf-8")
    with pytest.raises(DataError, match="the columns are column0, column1"):
        open_source(tmp_path / "events.csv", EventLayout.of(type="kind"))


def test_a_missing_column_is_answered_with_the_nearest() -> None:
    with pytest.raises(DataError, match=r"there is no time column 'att'\n  hint: did you mean at\?"):
        open_source(TRADES, EventLayout.of(time="att"))
    with pytest.raises(DataError, match=r"there is no type column 'KIND'\n  hint: did you mean kind\?"):
        open_source(TRADES, EventLayout.of(type="KIND"))
    with pytest.raises(DataError, match="no order column 'q'\n  hint: the columns are kind, name, volume"):
        open_source(TRADES, EventLayout.of(order=["q"]))


def test_time_and_type_have_their_kinds() -> None:
    with pytest.raises(DataError, match="column 'price': the time column holds a float; it must hold"):
        open_source(TRADES, EventLayout.of(time="price"))
    with pytest.raises(DataError, match="column 'volume': the type column holds an integer, not strings"):
        open_source(TRADES, EventLayout.of(type="volume"))
    with pytest.raises(DataError, match="'fortnight' is not a unit of time\n  hint: it is one of ns, us"):
        open_source(TRADES, EventLayout.of(time="at", time_unit="fortnight"))
    with pytest.raises(DataError, match="time_unit is for integer time columns"):
        open_source(
            pa.table({"t": [datetime(2020, 1, 1, tzinfo=UTC)]}), EventLayout.of(time="t", time_unit="s")
        )


@pytest.mark.parametrize("form", ["table", "parquet", "iterator"])
def test_an_event_without_a_time_is_named_by_its_row(form: str, tmp_path: Path) -> None:
    table = pa.table({"t": [1, 2, None, 3]})
    pq.write_table(table, tmp_path / "t.parquet")
    events = {
        "table": table,
        "parquet": tmp_path / "t.parquet",
        "iterator": iter(table.to_batches(max_chunksize=2)),
    }
    source = open_source(events[form], EventLayout.of(time="t"))
    with pytest.raises(DataError, match=r"row 3, column 't': the time is NULL"):
        rows(source)


def test_a_malformed_row_of_csv_is_named_by_file_place_and_column(tmp_path: Path) -> None:
    good = [f"{n},{n}.5,x" for n in range(30_000)]
    path = write_csv(tmp_path / "bad.csv", "a,b,c", *good, "oops,1,x")
    with pytest.raises(DataError) as error:
        open_source(path, csv_options={"types": {"a": "BIGINT"}})
    assert (error.value.file, error.value.row, error.value.column) == (path, 30_001, "a")
    assert str(error.value).startswith(f"{path}, row 30001, column 'a': 'oops' cannot be read as BIGINT")
    path = write_csv(tmp_path / "wide.csv", "a,b,c", *good, "1,2,y,z")
    with pytest.raises(DataError, match=r"wide.csv, line 30002: the row has 4 columns, not 3"):
        rows(open_source(path))


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (["a,b", "1,2", "3", "4,5"], "line 3: the row has 1 columns, not 2"),
        (["a;b;c", "1;2;3", "1;2;3;4"], "line 3: the row has 4 columns, not 3"),
        (["a,b", '"x,2', "3,4"], "line 2: a quoted value is not closed"),
    ],
)
def test_a_malformed_row_among_the_first_is_no_other_dialect(
    lines: list[str], message: str, tmp_path: Path
) -> None:
    path = write_csv(tmp_path / "bad.csv", *lines)
    with pytest.raises(DataError, match=f"bad.csv, {message}"):
        open_source(path)


def test_the_first_string_that_is_no_time_is_named(tmp_path: Path) -> None:
    path = write_csv(tmp_path / "bad.csv", "t,x", "2020-01-01 00:00:00,1", "noon,2")
    with pytest.raises(DataError, match=r"bad.csv, row 2, column 't': 'noon' is not a timestamp") as error:
        open_source(path, EventLayout.of(time="t"))
    assert "csv_options={'timestampformat': …} (--timestamp-format) says how times are written" in str(
        error.value
    )
    with pytest.raises(DataError, match="column 'kind': 'SELL' is not a timestamp"):
        open_source(TRADES, EventLayout.of(time="kind"))


def test_an_option_that_csv_files_do_not_have_is_refused(tmp_path: Path) -> None:
    path = write_csv(tmp_path / "a.csv", "a,b", "1,2")
    with pytest.raises(DataError, match=r'a.csv: .* Invalid named parameter "nonsense"'):
        open_source(path, csv_options={"nonsense": 1})
    with pytest.raises(DataError, match="'a b' is not an option for CSV files"):
        open_source(path, csv_options={"a b": 1})
    with pytest.raises(DataError, match="the option delim of CSV files cannot be None"):
        open_source(path, csv_options={"delim": None})


def test_batches_of_an_iterator_have_the_same_columns() -> None:
    batches = [pa.record_batch({"a": [1]}), pa.record_batch({"b": [1]})]
    with pytest.raises(
        DataError, match="batch 2 has columns other than those of the first one: b int64 instead of a int64"
    ):
        rows(open_source(iter(batches)))


def test_names_of_columns_are_their_own() -> None:
    with pytest.raises(DataError, match="two columns are named 'a'"):
        open_source(pa.table([[1], [2]], names=["a", "a"]))
    odd = open_source(pa.table({'a"b': [1], "select": [2]}))
    assert rows(odd, 'a"b', "select") == [{"__position": 0, "__time": 0, 'a"b': 1, "select": 2}]


def test_a_malformed_line_of_json_is_named(tmp_path: Path) -> None:
    lines = [f'{{"a": {n}}}' for n in range(30_000)]
    path = write_csv(tmp_path / "bad.jsonl", *lines, '{"a": }', '{"a": 1}')
    with pytest.raises(
        DataError, match=r"bad.jsonl, line 30001: the line is not JSON, or does not fit"
    ) as error:
        rows(open_source(path))
    assert error.value.file == path


def test_an_overflow_names_the_predicate() -> None:
    source = open_source(pa.table({"n": [1, 2**63 - 1]}))
    fine = EventPredicate(("Event",), Comparison(">", Attribute("n"), Literal(0)))
    over = EventPredicate(
        ("Event",), Comparison(">", Arithmetic("+", Attribute("n"), Literal(1)), Literal(0))
    )
    classification = Classification((fine, over), source.schema)
    with pytest.raises(DataError, match=r"a number does not fit into 64 bits: Overflow .*, in Event\["):
        list(source.read(classification))


def test_an_error_that_speaks_of_64_bits_is_no_overflow() -> None:
    tables = {"A": pa.table({"64 bits": [2**53 + 1]}), "B": pa.table({"64 bits": [1.5]})}
    source = open_source(tables)
    positive = EventPredicate(("A",), Comparison(">", Attribute("64 bits"), Literal(0)))
    with pytest.raises(DataError, match="no float is equal to it") as error:
        list(source.read(Classification((positive,), source.schema, source.type_column)))
    assert error.value.message.endswith("no float is equal to it")  # and not in which predicate


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        (
            "a.csv",
            b"type,v\r\nA,1\nB,2\r\n",
            (
                "the rows do not have the form of one CSV file\n  hint: say how it is written: "
                "csv_options={'delim': …, 'quote': …, 'encoding': …}; 'strict_mode': False reads "
                "lines that end in different ways"
            ),
        ),
        (
            "a.csv",
            "type,v\nA,1\n".encode("utf-16"),
            (
                "the file is written in UTF-16\n  hint: save it as UTF-8, or, of a CSV file, say "
                "csv_options={'encoding': 'utf-16'}"
            ),
        ),
        (
            "a.csv",
            "type,v\nA,é\n".encode("latin-1"),
            (
                "the file is not written in UTF-8\n  hint: save it as UTF-8, or say "
                "csv_options={'encoding': 'latin-1'}"
            ),
        ),
        (
            "a.jsonl",
            b'\xef\xbb\xbf{"type": "A"}\n',
            (
                "the line is not JSON, or does not fit the others: byte order mark (BOM) is not supported.\n"
                "  hint: save the file as UTF-8 without a byte order mark"
            ),
        ),
        (
            "a.jsonl",
            b'{"type": "A"}\n{"type": "\xe9"}\n',
            (
                "the line is not JSON, or does not fit the others: invalid UTF-8 encoding in string.\n"
                "  hint: save the file as UTF-8"
            ),
        ),
        (
            "a.jsonl",
            b'{"type": "A"},\n{"type": "B"}\n',
            (
                "the line is not JSON, or does not fit the others: unexpected content after document.\n"
                "  hint: write one object in each line, and nothing between them"
            ),
        ),
        (
            "a.jsonl",
            b'{"type": "A"}\n{"type": "\\ud800"}\n{"type": "B"}\n',
            "line 2: the line is not JSON, or does not fit the others: no low surrogate in string.",
        ),
    ],
    ids=["ends of lines", "UTF-16", "Latin-1", "BOM", "Latin-1 in JSON", "commas", "half a surrogate"],
)
def test_texts_that_are_written_in_other_ways_are_named(
    tmp_path: Path, name: str, content: bytes, message: str
) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(DataError) as error:
        estero.query("SELECT * WHERE A").run(str(tmp_path / name), type="type").count()
    assert message in str(error.value)


def test_options_say_how_a_text_is_written(tmp_path: Path) -> None:
    for encoding in ("utf-16", "latin-1"):
        (tmp_path / "a.csv").write_bytes("type,v\nA,é\n".encode(encoding))
        events = estero.scan(str(tmp_path / "a.csv"), type="type", csv_options={"encoding": encoding})
        (match,) = estero.query("SELECT * WHERE A").run(events)
        assert match["A"][0]["v"] == "é"
    (tmp_path / "a.csv").write_bytes(b"type,v\r\nA,1\nB,2\r\n")
    events = estero.scan(str(tmp_path / "a.csv"), type="type", csv_options={"strict_mode": False})
    assert estero.query("SELECT * WHERE A ; B").run(events).count() == 1
