"""The arrays of recognizers are freed with them: none waits for the garbage collector."""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

import estero

LAYOUT: dict[str, Any] = {"type": "kind", "time": "time", "time_unit": "s"}
EVENTS = pa.table(
    {
        "kind": ["A", "B", "C", "A", "B", "B", "C", "A"],
        "time": [1, 2, 3, 4, 5, 6, 7, 8],
        "key": [1, 1, 1, 2, 2, 2, 2, 1],
        "x": [5, 6, 7, 8, 1, 2, 3, 4],
    }
)
QUERIES = {
    "a window": "SELECT * WHERE A ; B ; C WITHIN 5 EVENTS",
    "keys": "SELECT * WHERE A ; B+ ; C PARTITION BY [key] WITHIN 9 SECONDS",
    "an absence": "SELECT * WHERE A ; NOT(C) FOR 2 SECONDS",
    "events compared": "SELECT * WHERE A AS a ; B AS b FILTER b.x > a.x WITHIN 9 SECONDS",
    "a strategy": "SELECT LONGEST * WHERE A ; B+ WITHIN 9 SECONDS",
    "a measure": "SELECT *, sum(b.x) AS total WHERE A ; B+ AS b WITHIN 9 SECONDS",
}


def garbage_of(use: Callable[[], None]) -> set[str]:
    """The classes of recognition with objects that only the garbage collector finds after this."""
    gc.collect()
    gc.set_debug(gc.DEBUG_SAVEALL)
    gc.disable()
    try:
        use()
        gc.collect()
        kinds = {type(one) for one in gc.garbage}
    finally:
        gc.set_debug(0)
        gc.enable()
        gc.garbage.clear()
        gc.collect()
    return {kind.__qualname__ for kind in kinds if kind.__module__.startswith("estero.recognize")}


def garbage_of_recognizers(make: Callable[[], Any], again: Callable[[bytes], Any]) -> set[str]:
    """The garbage that a recognizer leaves, and one that is restored from its state."""

    def use() -> None:
        recognizer = make()
        recognizer.push(EVENTS.slice(0, 5)).count()
        restored = again(recognizer.snapshot())
        restored.push(EVENTS.slice(5)).count()

    use()  # whatever is made once in a process
    return garbage_of(use)


@pytest.mark.parametrize("text", QUERIES.values(), ids=QUERIES)
@pytest.mark.parametrize("threads", [1, 2])
def test_recognizer_of_a_query_is_freed_with_its_last_reference(text: str, threads: int) -> None:
    query = estero.query(text)
    assert not garbage_of_recognizers(
        lambda: query.recognizer(EVENTS.schema, **LAYOUT, threads=threads),
        lambda state: estero.restore(query, state),
    )


@pytest.mark.parametrize("number", [1, 3, 40])
def test_recognizer_of_rules_is_freed_with_its_last_reference(number: int) -> None:
    texts = [*QUERIES.values()][:3]
    constants = {
        f"rule {place}": f"SELECT * WHERE A AS a ; B FILTER a[x = {place}] WITHIN 9 SECONDS"
        for place in range(number)
    }
    rules = estero.rules({**dict(zip("abc", texts, strict=True)), **constants})
    assert not garbage_of_recognizers(
        lambda: rules.recognizer(EVENTS.schema, **LAYOUT),
        lambda state: estero.restore(rules, state),
    )


def test_run_is_freed_with_its_last_reference() -> None:
    query = estero.query(QUERIES["keys"])

    def use() -> None:
        answer = query.run(EVENTS, **LAYOUT)
        assert answer.count() == len(answer.to_arrow()) == 4

    use()
    assert not garbage_of(use)
