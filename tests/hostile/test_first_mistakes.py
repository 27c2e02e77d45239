"""The first mistakes of somebody new: each message says what is wrong, where, and what to write instead."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet
import pytest

import estero

READINGS = pa.table(
    {
        "kind": ["Wind", "Frost"],
        "at": pa.array([0, 1], pa.timestamp("us", "UTC")),
        "station": ["Quebrada", "Quebrada"],
        "value": [0.1, -1.5],
        "text": ["0.1", "-1.5"],
    }
)
HOW: dict[str, Any] = {"type": "kind", "time": "at"}
QUERY = "SELECT * WHERE Wind AS w ; Frost AS f FILTER w[value < 0.5] WITHIN 20 MINUTES"


def error(text: str = QUERY, events: Any = READINGS, **how: object) -> estero.QueryError | estero.DataError:
    with pytest.raises(estero.EsteroError) as caught:
        estero.query(text).run(events, **{**HOW, **how}).count()
    assert isinstance(caught.value, estero.QueryError | estero.DataError)
    return caught.value


def test_a_time_that_is_not_named_is_named() -> None:
    with pytest.raises(estero.QueryError) as caught:
        estero.query(QUERY).run(READINGS, type="kind")
    assert caught.value.hint == 'name the column where the events are given: time="at" (--time at)'


def test_a_type_column_of_numbers_is_another_one() -> None:
    assert str(error(type="value")) == (
        "column 'value': the type column holds a float, not strings\n"
        "  hint: type= names a column of strings: kind, station or text"
    )
    numbers = READINGS.select(["at", "value"])
    assert str(error("SELECT * WHERE Wind", numbers, type="value")).endswith(
        "hint: there is no column of strings: make one of value, or leave type= out"
    )


def test_a_column_of_other_strings_is_asked_about() -> None:
    said = (
        "^there are no events of type Wind, only of Quebrada: does station say the types, as type='station'"
    )
    with (
        pytest.warns(estero.EsteroWarning, match=said),
        pytest.warns(estero.EsteroWarning, match="Frost, only of Quebrada: does station say the types"),
    ):
        assert estero.query(QUERY).run(READINGS, type="station", time="at").count() == 0


def test_strings_without_quotes_and_numbers_in_strings() -> None:
    assert isinstance(
        unquoted := error(QUERY.replace("value < 0.5", "station = Quebrada")), estero.QueryError
    )
    assert unquoted.hint.endswith("including case; a string is written 'Quebrada'")
    assert error(QUERY.replace("value", "text")).hint == (
        "strings are written in single quotes: '0.5'; the number in it is CAST(text AS FLOAT)"
    )
    mended = QUERY.replace("value", "CAST(text AS FLOAT)")
    assert estero.query(mended).run(READINGS, **HOW).count() == 1


def test_paths_that_lead_nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pyarrow.parquet.write_table(READINGS, tmp_path / "events.parquet")
    assert error(events=tmp_path / "evnts.parquet").hint == f"did you mean {tmp_path / 'events.parquet'}?"
    assert (
        error(events=str(tmp_path / "evnt*.parquet")).hint == f"did you mean {tmp_path / 'events.parquet'}?"
    )
    assert error(events=tmp_path / "no" / "x.csv").hint == f"there is no directory {tmp_path / 'no'}"
    assert error(events=f"{tmp_path}/*/x.csv").hint == ""
    assert error(events=tmp_path / "zzz").hint == ""
    monkeypatch.chdir(tmp_path)
    assert error(events="evnts.parquet").hint == "did you mean events.parquet?"
    assert error(events="zzz").hint == f"a relative path begins in the current directory, {tmp_path}"


def test_a_float_is_no_time_of_a_text_file(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("kind,at,value\nWind,1.5,0.1\n")
    assert error(events=tmp_path / "a.csv").hint == (
        "write the column as timestamps, or as integers with their time_unit"
    )


def test_what_is_no_table_of_events() -> None:
    assert str(error(events=pd.DataFrame)).startswith("DataFrame is a class, not events\n  hint: pass a path")
    columns = {"kind": ["Wind"], "at": [1]}
    assert error(events=columns).hint == (
        "leave type= out; a mapping of columns becomes a table with pyarrow.table(…)"
    )


def test_a_file_is_no_text_of_a_query() -> None:
    with pytest.raises(estero.QueryError) as caught:
        estero.query("queries/frost.ceql")
    assert caught.value.hint == (
        "the text of a file is given by pathlib.Path('queries/frost.ceql').read_text()"
    )


@pytest.mark.parametrize(
    ("events", "what", "hint"),
    [
        (
            "events.parquet",
            "'events.parquet'",
            "estero.spark.read_events(path) gives the DataFrame of a file",
        ),
        (
            READINGS.to_pandas(),
            "a DataFrame of pandas",
            "make one with spark.createDataFrame, or run the query",
        ),
    ],
)
def test_what_is_no_frame_of_spark(events: Any, what: str, hint: str) -> None:
    from estero.spark import recognize

    with pytest.raises(estero.DataError) as caught:
        recognize(events, QUERY, **HOW)
    assert caught.value.message == f"this is not a Spark DataFrame but {what}"
    assert caught.value.hint.startswith(hint)
