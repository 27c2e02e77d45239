"""When kernels are compiled: as soon as it pays, and the answers are the same before and after."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pytest

import estero
from estero.engine.jit import Kernel, kernel
from estero.engine.patience import PRICE_OF_COMPILING, PRICE_OF_LOOKING, Patience, patience
from estero.errors import EnvironmentProblem

SECOND = 40_000
"""So many events are taken for a second."""

TEXTS = (
    "SELECT * WHERE A ; B+ ; C WITHIN 9 EVENTS",
    "SELECT * WHERE A ; B ; C PARTITION BY [k] WITHIN 60 EVENTS CONSUME BY PARTITION",
    "SELECT * WHERE A AS a ; B+ ; C AS c FILTER a.k = c.k WITHIN 12 EVENTS",
    "SELECT LAST * WHERE A AS a ; B+ ; C AS c FILTER a.k = c.k WITHIN 12 EVENTS",
    "SELECT MAX * WHERE A ; B+ ; C WITHIN 20 EVENTS",
    "SELECT * WHERE A AS a ; B AS b FILTER a.k < b.k WITHIN 20 EVENTS",
    "SELECT * WHERE A AS a ; B AS b FILTER a.k = b.k AND a.m != b.m",
    "SELECT * WHERE A AS a ALL B AS b ALL C AS c FILTER a.k = b.k AND b.k = c.k WITHIN 100 EVENTS",
    "SELECT * WHERE A AS a ; B AS b FILTER a.k * b.k < 9 WITHIN 20 EVENTS CONSUME BY ANY",
)

When = Callable[[float], None]


@pytest.fixture
def spent(monkeypatch: pytest.MonkeyPatch) -> When:
    """Has kernels ask anew at each call, after so many seconds were spent."""
    monkeypatch.setattr(Kernel, "__call__", Kernel._undecided)

    def spend(seconds: float) -> None:
        monkeypatch.setattr(patience, "_spent", seconds)
        monkeypatch.setattr(patience, "_foreseen", seconds)

    return spend


PLAIN, COMPILED = -np.inf, np.inf


def _stream(size: int) -> pa.Table:
    draw = np.random.default_rng(7)
    kinds = np.array(list("ABC"))[draw.integers(0, 3, size)]
    return pa.table({"kind": kinds, "k": draw.integers(0, 9, size), "m": draw.integers(0, 5, size)})


@pytest.mark.parametrize("text", TEXTS)
def test_a_stream_goes_on_with_compiled_kernels_where_it_began_without(text: str, spent: When) -> None:
    events, query = _stream(300), estero.query(text)
    found = []
    for halves in ((PLAIN, PLAIN), (COMPILED, COMPILED), (PLAIN, COMPILED), (COMPILED, PLAIN)):
        recognizer = query.recognizer(events.schema, type="kind")
        rows = []
        for half, seconds in enumerate(halves):
            spent(seconds)
            rows += recognizer.push(events.slice(150 * half, 150)).to_arrow().to_pylist()
            rows += [recognizer.snapshot()]
        found.append(rows)
    assert len(found[0]) > 20
    assert found[1:] == found[:1] * 3


@pytest.mark.parametrize("text", TEXTS)
def test_an_answer_that_was_begun_without_compiled_kernels_is_read_with_them(text: str, spent: When) -> None:
    events, query = _stream(300), estero.query(text)
    found = []
    for asked in (PLAIN, COMPILED):
        spent(PLAIN)
        answer = query.run(events, type="kind")
        first = answer.limit(3).to_arrow().to_pylist()
        spent(asked)
        found.append((first, answer.count(), answer.limit(50).to_arrow().to_pylist(), answer[2]))
    assert found[0] == found[1]


def test_portions_are_small_only_as_long_as_something_is_not_compiled() -> None:
    few = Patience("")
    sizes = []
    for first, last in few.portions(1_000):
        sizes.append(last - first)
        if len(sizes) < 4:
            few.call(lambda: None, ())
    assert sizes == [100, 100, 100, 100, 600]
    assert list(Patience("first").portions(1_000)) == [(0, 1_000)]
    assert list(few.portions(0)) == []


@pytest.mark.parametrize(
    ("events", "unspent", "left"),
    [
        (PRICE_OF_LOOKING * SECOND / 2, True, True),
        (PRICE_OF_LOOKING * SECOND * 2, False, True),
        (PRICE_OF_COMPILING * SECOND * 2, False, False),
    ],
)
def test_many_events_are_too_many_before_the_first_of_them(events: float, unspent: bool, left: bool) -> None:
    waiting = Patience("")
    waiting.foresee(events)
    waiting.foresee(1)
    assert (waiting.is_unspent, waiting.is_left) == (unspent, left)


def test_time_is_spent_also_by_what_fails() -> None:
    waiting = Patience("")
    with pytest.raises(ZeroDivisionError):
        waiting.call(lambda: 1 // 0, ())
    assert 0 < waiting._spent < PRICE_OF_LOOKING


def test_patience_may_be_endless_or_none() -> None:
    never, first, later = Patience("never"), Patience("first"), Patience("")
    never.foresee(SECOND * 1_000)
    later.compile_first()
    assert never.is_unspent
    assert [each.is_left for each in (never, first, later)] == [True, False, False]
    with pytest.raises(EnvironmentProblem, match="ESTERO_COMPILE is 'now': set it to 'first' or 'never'"):
        Patience("now")


@kernel
def factorial(number):  # type: ignore[no-untyped-def]
    return number * factorial(number - 1) if number else 1


@kernel
def wrapped(number):  # type: ignore[no-untyped-def]
    return number * number


def test_a_plain_kernel_calls_plain_kernels_itself_too() -> None:
    assert factorial.plain.__globals__["factorial"] is factorial.plain
    assert factorial.plain(5) == 120


def test_integers_wrap_around_without_a_word(spent: When) -> None:
    spent(COMPILED)
    assert wrapped.interpret(np.uint64(2**63)) == wrapped.compiled(np.uint64(2**63)) == 0
