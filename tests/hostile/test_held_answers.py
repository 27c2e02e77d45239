"""Answers in memory and in other processes: too large ones are refused with their number, others travel."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest

import estero
from estero.answers import in_memory

if TYPE_CHECKING:
    from collections.abc import Callable

    from estero import Answer

ALL = "SELECT * WHERE A+ AS a"
EVENTS = pa.table({"kind": ["A", "B"] * 20, "n": range(40)})
PAIRS = "SELECT a, b WHERE A AS a ; B AS b WITHIN 4 EVENTS"


def subsets(n: int, *, condition: str = "") -> Answer:
    """2^n - 1 complex events."""
    return estero.query(f"{ALL} {condition}").run(pa.table({"kind": ["A"] * n, "n": range(n)}), type="kind")


@pytest.fixture
def small_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(in_memory, "memory_limit", lambda: 12 << 20)


@pytest.mark.parametrize("ask", ["to_arrow", "to_pandas", "to_polars"])
def test_an_answer_that_would_fill_the_memory_is_refused_with_its_number(
    small_memory: None, ask: str
) -> None:
    with pytest.raises(estero.LimitExceeded) as error:
        getattr(subsets(40), ask)()
    said = str(error.value)
    assert said.startswith("the answer has 1,099,511,627,775 complex events, which take ")
    assert f" GB or more in memory, and {ask}() may take at most 0.0 GB here: " in said
    assert said.endswith(
        "count() counts them, limit(n) and sample(k) take some, write(path) writes them to a file; "
        "an answer with a limit is held at any size"
    )


def test_behind_a_filter_that_takes_enumeration_it_is_refused_when_the_room_is_full(
    small_memory: None,
) -> None:
    with pytest.raises(estero.LimitExceeded, match=r"^the answer has more than [\d,]+ complex events, which"):
        subsets(40, condition="FILTER sum(a.n) >= 0").to_arrow()


def test_what_fits_and_what_has_a_limit_is_held(small_memory: None) -> None:
    assert subsets(10).to_arrow().num_rows == 2**10 - 1
    assert subsets(40).limit(70_000).to_arrow().num_rows == 70_000
    assert subsets(40)[5:9].to_arrow().num_rows == 4
    assert subsets(40).sample(3, seed=1).to_arrow().num_rows == 3
    assert subsets(3).sample(10).to_arrow().num_rows == 7


def test_the_room_is_half_of_the_memory_there_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "limited").write_text("2048\n")
    (tmp_path / "unlimited").write_text("max\n")
    monkeypatch.setattr(in_memory, "_OF_A_CONTAINER", (tmp_path / "unlimited", tmp_path / "none"))
    everything = in_memory.memory_limit()
    assert everything > 1 << 28
    monkeypatch.setattr(in_memory, "_OF_A_CONTAINER", (tmp_path / "limited",))
    assert in_memory.memory_limit() == 1024


def in_parquet(directory: Path) -> object:
    pyarrow.parquet.write_table(EVENTS, directory / "events.parquet")
    return directory / "events.parquet"


def in_arrow(directory: Path) -> object:
    pyarrow.feather.write_feather(EVENTS, directory / "events.arrow")
    return directory / "events.arrow"


def in_csv(directory: Path) -> object:
    pyarrow.csv.write_csv(EVENTS, directory / "events.csv")
    return directory / "events.csv"


@pytest.mark.parametrize(
    "made", [in_parquet, in_arrow, in_csv, lambda _: EVENTS, lambda _: EVENTS.to_pandas()]
)
@pytest.mark.parametrize("condition", ["", "FILTER a.n * b.n > 7"])
def test_an_answer_travels_by_pickle(tmp_path: Path, made: Callable[[Path], object], condition: str) -> None:
    answer = estero.query(PAIRS.replace(" WITHIN", f" {condition} WITHIN")).run(made(tmp_path), type="kind")
    count = answer.count()
    travelled = pickle.loads(pickle.dumps(answer))
    assert travelled.count() == count > 0
    assert travelled.to_arrow().equals(answer.to_arrow())
    assert list(pickle.loads(pickle.dumps(answer[3:5]))) == list(answer[3:5])


def test_an_answer_over_a_stream_does_not_travel() -> None:
    with pytest.raises(TypeError) as error:
        pickle.dumps(estero.query(PAIRS).run(iter(EVENTS.to_batches()), type="kind"))
    assert str(error.value) == (
        "this answer cannot be pickled, because its events can only be read in this process: pickle its "
        "table, answer.to_arrow(), or run the query on a file or a table"
    )
    pushed = estero.query(PAIRS).recognizer(EVENTS.schema, type="kind").push(EVENTS)
    with pytest.raises(TypeError, match=r"^the answer of a push cannot be pickled: pickle its table, answer"):
        pickle.dumps(pushed)
