"""The bytes of a snapshot: what is in them, what is not, and which of them are refused."""

from __future__ import annotations

import json
import os
import struct
import subprocess
import sys
import zlib
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import estero
from estero.errors import DataError, EsteroError
from estero.events.sources import Source, open_source
from estero.language.tree.schema import EventLayout
from estero.plan.plan import Plan
from estero.queries.texts import query, restore
from estero.recognize.recognition import Recognition
from estero.recognize.source_run import time_type
from estero.recognize.state_bytes import FORMAT, State, read, written

PLAIN = "SELECT * WHERE A AS a ; B AS b PARTITION BY [k] WITHIN 5 SECONDS"
WAITING = "SELECT * WHERE A AS a ; B AS b PARTITION BY [k]"
CHAIN = "SELECT * WHERE A AS a ; B AS b FILTER a.k = b.k AND a.n < b.n WITHIN 5 SECONDS"
JOIN = "SELECT * WHERE A AS a ALL B AS b FILTER a.k = b.k WITHIN 5 SECONDS"
UNEQUAL = "SELECT * WHERE A AS a ; B AS b FILTER a.k = b.k AND a.n != b.n"


def events(types: str, *, first: int = 0, keys: int = 1, step: int = 1) -> pa.Table:
    """One event for each letter, `step` seconds apart, number `first` the first one."""
    numbers = np.arange(first, first + len(types))
    columns = {"type": list(types), "time": numbers * step, "k": numbers % keys, "n": numbers}
    return pa.table({name: pa.array(column) for name, column in columns.items()})


def source_of(table: pa.Table) -> Source:
    return open_source(table, EventLayout.of(type="type", time="time", time_unit="s"))


def plan_for(text: str, source: Source) -> Plan:
    return query(text).plan(source.layout)


def gone_through(text: str, table: pa.Table, state: bytes | None = None) -> Recognition:
    """The recognition of a query that has read a table; what it has found is not asked for."""
    source = source_of(table)
    plan = plan_for(text, source)
    columns = source.classified_schema(plan.classification)
    recognition = Recognition(plan, columns, time=time_type(source), state=state)
    for batch in source.read(plan.classification):
        for _ in recognition.recognize(batch):
            pass
    return recognition


def kept(state: bytes) -> int:
    """How many events are in a state."""
    table = pa.ipc.open_stream(pa.py_buffer(read(state).arrays["events"])).read_all()
    return int(table.num_rows)


def is_idle(recognition: Recognition) -> bool:
    return recognition.idle


def refusal(text: str, state: bytes) -> str:
    with pytest.raises(DataError) as caught:
        gone_through(text, events("AB"), state)
    return str(caught.value)


# ------------------------------------------------------------------------------------- what is in


@pytest.mark.parametrize("text", [PLAIN, CHAIN, JOIN])
def test_a_state_has_nothing_that_has_left_the_window(text: str) -> None:
    few, many = (gone_through(text, events("A" * count)).snapshot() for count in (20, 2000))
    assert kept(few) == kept(many) == 6
    assert len(many) < len(few) + 256


def test_one_event_that_waits_for_ever_does_not_drag_the_others_along() -> None:
    table = pa.concat_tables([events("A", keys=1), events("B" * 500, first=1, keys=7).slice(0)])
    table = table.set_column(2, "k", pa.array([100, *[3] * 500]))
    assert kept(gone_through(WAITING, table).snapshot()) == 1


@pytest.mark.parametrize("text", [WAITING, PLAIN])
def test_a_key_costs_some_tens_of_bytes(text: str) -> None:
    recognition = gone_through(text, events("A" * 10_000, keys=10_000, step=0))
    assert len(recognition.snapshot()) < 64 * 10_000


def test_time_that_passes_closes_windows_and_forgets_keys() -> None:
    for text in (PLAIN, CHAIN, JOIN):
        recognition = gone_through(text, events("A" * 50, keys=50))
        assert not is_idle(recognition)
        recognition.advance(49 + 5)
        assert kept(recognition.snapshot()) == 1
        recognition.advance(49 + 6)
        assert is_idle(recognition)
        assert kept(recognition.snapshot()) == 0


def test_what_waits_for_ever_is_never_idle() -> None:
    for text in (WAITING, UNEQUAL):
        recognition = gone_through(text, events("A"))
        recognition.advance(1_000_000)
        assert not is_idle(recognition)
        assert gone_through(text, events("B" * 3)).idle


def test_keys_are_remembered_where_only_that_tells_the_first_event() -> None:
    text = "SELECT * WHERE START(A AS a ; B AS b) PARTITION BY [k] WITHIN 5 SECONDS"
    recognition = gone_through(text, events("BBBB", keys=2))
    recognition.advance(1_000_000)
    assert not is_idle(recognition)
    assert kept(recognition.snapshot()) == 0


@pytest.mark.parametrize("text", [PLAIN, WAITING, CHAIN, JOIN, UNEQUAL])
def test_a_snapshot_changes_nothing(text: str) -> None:
    recognition = gone_through(text, events("AAB" * 20, keys=4))
    first = recognition.snapshot()
    assert recognition.snapshot() == first
    assert gone_through(text, events("AB").slice(0, 0), first).snapshot() == first


def test_memory_is_freed_as_time_passes() -> None:
    recognition = gone_through(PLAIN, events("A" * 30_000, keys=30_000, step=0))
    held = recognition.recognizer.size
    recognition.advance(100)
    assert recognition.recognizer.size < held / 100
    assert recognition.store.next - recognition.store.first == 0


# -------------------------------------------------------------------------------- what is refused


def test_bytes_that_are_no_state_are_refused() -> None:
    for nothing in (b"", b"PAR1", b"x" * 100):
        assert refusal(PLAIN, nothing) == "these bytes are not a state that Estero has written"
    assert refusal(PLAIN, "text") == "a state is bytes, and this is a str"  # type: ignore[arg-type]


def test_a_state_of_another_format_is_refused() -> None:
    state = bytearray(gone_through(PLAIN, events("AB")).snapshot())
    struct.pack_into("<I", state, 8, FORMAT + 1)
    assert refusal(PLAIN, bytes(state)) == (
        f"the state has format {FORMAT + 1}, and this version of Estero reads format {FORMAT}\n"
        "  hint: a state is for the version that wrote it: go back to that version, or start over"
    )


def test_a_state_that_is_cut_off_is_refused() -> None:
    state = gone_through(PLAIN, events("AB")).snapshot()
    says = len(state) - 24
    assert refusal(PLAIN, state[:-7]) == (
        f"the state is cut off: it says {says:,} bytes, and {says - 7:,} are there"
    )


def test_a_state_with_one_bit_turned_is_refused_wherever_it_is() -> None:
    state = gone_through(PLAIN, events("AB" * 4)).snapshot()
    for place in range(24, len(state), 97):
        damaged = bytearray(state)
        damaged[place] ^= 1
        assert refusal(PLAIN, bytes(damaged)) == "the state is damaged: its checksum does not match"


def test_a_state_of_another_query_is_refused() -> None:
    assert refusal(WAITING, gone_through(PLAIN, events("AB")).snapshot()) == (
        f"the state is of another query: {PLAIN}\n  hint: it cannot go on with {WAITING}"
    )


def test_a_state_is_of_the_rules_that_are_there_by_then() -> None:
    """Whatever states were made before."""
    schema = pa.schema([("type", pa.string()), ("time", pa.int64()), ("k", pa.int64()), ("n", pa.int64())])
    first = estero.rules({"one": PLAIN, "two": WAITING})
    recognizer = first.recognizer(schema, type="type", time="time", time_unit="s")
    recognizer.snapshot()
    recognizer.replace("two", JOIN)
    state = recognizer.snapshot()
    assert estero.restore(estero.rules({"one": PLAIN, "two": JOIN}), state).snapshot() == state
    with pytest.raises(DataError, match="the rule 'two' has another query than in this state"):
        estero.restore(first, state)


def test_a_state_of_other_columns_is_refused() -> None:
    other = events("AB").append_column("more", pa.array([1, 2]))
    assert refusal(PLAIN, gone_through(PLAIN, other).snapshot()) == (
        "the state is of this query, but it was planned otherwise: for other columns or other settings, "
        "or by another version of Estero\n"
        "  hint: events must come with the columns and types that they had when the state was written"
    )


def test_a_state_of_something_else_is_refused() -> None:
    state = written(State({"kind": "a picture"}, {}))
    assert refusal(PLAIN, state) == "the state is of a picture, and a recognition was expected"


SENSELESS = "the state is damaged: its contents are inconsistent"
SPLIT = "SELECT * WHERE A AS a ; B+ AS b FILTER b.n > a.n WITHIN 50 SECONDS"
NEXT = "SELECT NEXT * WHERE A AS a ; B+ AS b PARTITION BY [k] WITHIN 50 SECONDS"
LARGEST = "SELECT MAX * WHERE A+ AS a ; B AS b PARTITION BY [k] WITHIN 50 SECONDS"
STRICT = "SELECT * WHERE A AS a : B AS b PARTITION BY [k]"
ORDERED = "SELECT * WHERE A AS a ; B AS b FILTER a.k = b.k AND a.n < b.n WITHIN 50 SECONDS"


@pytest.mark.parametrize(
    ("text", "names"),
    [
        (PLAIN, "kind left right event start node length state opened"),
        (SPLIT, "keys parts length node state opened status"),
        (NEXT, "members node state opened"),
        (LARGEST, "kind left right event start node members state opened"),
        (STRICT, "left event start node"),
        (ORDERED, "mark event start made children heap_product heap_left heap_right heap_weight heap_start"),
        (ORDERED, "entries tree_rows tree_entries tree_ends"),
        (JOIN, "mark event start made children heap_product heap_weight entries"),
        (
            UNEQUAL,
            "event node_mark node_place node_top node_head entry_node entry_place entry_skips entry_before",
        ),
        (UNEQUAL, "entries states_sizes"),
    ],
)
def test_no_number_of_what_is_not_there_is_taken_over(text: str, names: str) -> None:
    about, arrays = read(gone_through(text, events("ABA" * 4, keys=2)).snapshot())
    for name in names.split():
        if arrays.get(name) is None or not arrays[name].size:
            continue
        for value in (np.iinfo(arrays[name].dtype).max, 100):
            wrong = arrays[name].copy()
            wrong.reshape(-1)[:] = value
            assert refusal(text, written(State(about, {**arrays, name: wrong}))) == SENSELESS, name


@pytest.mark.parametrize("text", [PLAIN, SPLIT, NEXT, LARGEST, STRICT, ORDERED, JOIN, UNEQUAL])
def test_every_array_is_there_with_its_type_and_length(text: str) -> None:
    about, arrays = read(gone_through(text, events("ABA" * 4, keys=2)).snapshot())
    for name, array in arrays.items():
        others = {each: kept for each, kept in arrays.items() if each != name}
        assert refusal(text, written(State(about, others))) == SENSELESS, name
        if array.size and name not in ("events", "index", "tree_entries"):  # any number of them will do
            shorter = State(about, {**arrays, name: array[:-1]})
            assert refusal(text, written(shorter)) == SENSELESS, name
        if name in ("states", "states_sizes", "events"):
            continue
        other = array.astype(np.uint16)
        assert refusal(text, written(State(about, {**arrays, name: other}))) == SENSELESS, name


def test_a_partition_is_there_once() -> None:
    about, arrays = read(gone_through(PLAIN, events("AAAA", keys=2)).snapshot())
    arrays["partition"][1] = arrays["partition"][0]
    assert refusal(PLAIN, written(State(about, arrays))) == SENSELESS


def test_arrays_of_objects_are_refused() -> None:
    state = written(State({}, {"one": np.arange(3)})).replace(b"<i8", b"|O8")
    state = state[:12] + struct.pack("<I", zlib.crc32(state[24:])) + state[16:]
    with pytest.raises(DataError) as caught:
        read(state)
    assert str(caught.value) == SENSELESS


_HEADERS = ["-1", "[]", "{}", "null", '"x"', "true", "[[", "[" * 100_000, "1e999", "", "\0", str(2**70)]
_PARTS: list[object] = [-1, 0, None, [], {}, "x", True, [1], ["x"], 2**70, 1.5, [[]], "SECONDS", [None]]


@pytest.mark.parametrize("name", ["kind", "query", "plan", "layout"])
def test_a_state_with_another_header_is_refused_clearly(name: str) -> None:
    state = read(
        query(PLAIN).recognizer(events("AB").schema, type="type", time="time", time_unit="s").snapshot()
    )
    layout = json.loads(state.about["layout"])
    others = [{**state.about, name: each} for each in _HEADERS]
    others.append({key: each for key, each in state.about.items() if key != name})
    if name == "layout":
        changed = [{**layout, key: part} for key in layout for part in _PARTS]
        changed += [{key: part for key, part in layout.items() if key != left} for left in layout]
        others += [{**state.about, name: json.dumps(each)} for each in (*changed, {**layout, "more": "x"})]
    for about in others:
        with suppress(EsteroError):  # some headers are right, too; nothing else is raised
            restore(PLAIN, written(State(about, dict(state.arrays))))
    if name == "layout":
        with pytest.raises(DataError) as caught:
            restore(PLAIN, written(State({**state.about, "layout": "-1"}, dict(state.arrays))))
        assert str(caught.value) == SENSELESS


# ------------------------------------------------------------------------------------------- keys


KEY, OTHER = bytes(range(32)), bytes(range(16))


def test_a_state_with_a_key_is_read_with_it() -> None:
    state = State({"name": "text"}, {"one": np.arange(3)})
    found = read(written(state, KEY), KEY)
    assert found.about == state.about
    assert found.arrays["one"].tolist() == [0, 1, 2]


@pytest.mark.parametrize("place", [8, 12, 16, 24, 55, 56, 300])
def test_a_state_with_a_key_cannot_be_changed_without_it(place: int) -> None:
    state = bytearray(written(State({}, {"one": np.arange(3)}), KEY))
    state[place] ^= 1
    struct.pack_into("<I", state, 12, zlib.crc32(state[56:]) ^ (place == 12))
    with pytest.raises(DataError):
        read(bytes(state), KEY)


@pytest.mark.parametrize(
    ("wrote", "reads", "said"),
    [
        (KEY, OTHER, "the state was not written with this key, or it was changed since"),
        (KEY, None, "the state was written with a key, and none is given\n  hint: restore(…, key=…)"),
        (
            None,
            KEY,
            (
                "the state was written without a key, so that anybody may have written it\n"
                "  hint: trust it by leaving out key=, or take one of snapshot(key=…)"
            ),
        ),
    ],
)
def test_another_key_is_refused(wrote: bytes | None, reads: bytes | None, said: str) -> None:
    state = written(State({}, {"one": np.arange(3)}), wrote)
    with pytest.raises(DataError) as caught:
        read(state, reads)
    assert str(caught.value) == said


@pytest.mark.parametrize(
    ("key", "said"),
    [
        (b"abc", "a key has at least 16 bytes, and this one has 3: secrets.token_bytes(32) makes one"),
        ("abc", "a key is bytes, and this is a str: secrets.token_bytes(32) makes one"),
    ],
)
def test_what_is_no_key_is_refused(key: Any, said: str) -> None:
    with pytest.raises((TypeError, ValueError)) as caught:
        written(State({}, {}), key)
    assert str(caught.value) == said


# ------------------------------------------------------------------------------------------ bytes


def test_arrays_come_back_as_they_were() -> None:
    arrays = {
        "small": np.arange(5),
        "large": np.array([[1, 2**40], [-(2**62), 3]]),
        "unsigned": np.array([2**64 - 1, 0], np.uint64),
        "none": np.empty((0, 3), np.int32),
        "bytes": np.arange(7, dtype=np.uint8),
    }
    found = read(written(State({"name": "text"}, arrays)))
    assert found.about == {"name": "text"}
    assert list(found.arrays) == list(arrays)
    for name, array in arrays.items():
        assert found.arrays[name].dtype == array.dtype
        assert found.arrays[name].flags.writeable
        assert np.array_equal(found.arrays[name], array)


def test_the_checksum_is_of_what_follows_it() -> None:
    state = gone_through(PLAIN, events("AB")).snapshot()
    assert struct.unpack_from("<8sIIQ", state) == (
        b"EsteroSt",
        FORMAT,
        zlib.crc32(state[24:]),
        len(state) - 24,
    )


_PRINTED = """
import sys
sys.path.insert(0, sys.argv[1])
from recognize.test_states import CHAIN, JOIN, PLAIN, UNEQUAL
from recognize.test_states import events, gone_through, plan_for, source_of
MANY = "SELECT MAX * WHERE (A OR B AS x)+ AS y ; C? ; B AS z FILTER x[n > 1 OR k = 2] WITHIN 9 EVENTS"
SIFTED = "SELECT * WHERE A AS x ; B+ AS y ; C AS z FILTER x.n + y.n > z.n AND count(y) > 1 PARTITION BY [k]"
source = source_of(events("ABC"))
for text in (PLAIN, CHAIN, JOIN, UNEQUAL, MANY, SIFTED):
    plan = plan_for(text, source)
    print(plan.fingerprint(source.classified_schema(plan.classification)))
    print(gone_through(text, events("ABC" * 5, keys=2)).snapshot().hex())
"""


def test_states_are_the_same_in_every_process() -> None:
    printed = []
    for seed in ("1", "2"):
        result = subprocess.run(
            [sys.executable, "-c", _PRINTED, str(Path(__file__).parents[1])],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        )
        printed.append(result.stdout)
    assert printed[0] == printed[1]
    assert len(printed[0].splitlines()) == 12


def test_plans_of_different_queries_have_different_fingerprints() -> None:
    source = source_of(events("AB"))
    plans = [plan_for(text, source) for text in (PLAIN, WAITING, CHAIN, JOIN, UNEQUAL)]
    found = {plan.fingerprint(source.classified_schema(plan.classification)) for plan in plans}
    assert len(found) == len(plans)
