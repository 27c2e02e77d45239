"""A strategy gives up where too many complex events have one end, and says which filter is to blame."""

from __future__ import annotations

import pytest

import estero
from estero import testing
from estero.answers.sieve.candidates import VARIABLE

EVENTS = testing.events(" ".join(f"A(v={place % 3})" for place in range(10)) + " B B")


def rows(text: str) -> int:
    return len(estero.query(text).run(EVENTS, type="type").to_arrow())


@pytest.mark.parametrize("strategy", ["NEXT", "LAST", "MAX", "LONGEST", "SHORTEST DISJOINT"])
def test_too_many_candidates_are_refused(strategy: str, monkeypatch: pytest.MonkeyPatch) -> None:
    text = f"SELECT {strategy} * WHERE A+ AS x ; B FILTER avg(x.v) > 1"
    monkeypatch.setenv(VARIABLE, "1000")
    with pytest.raises(estero.LimitExceeded) as error:
        rows(text)
    name = strategy.partition(" ")[0]
    assert str(error.value) == (
        f"SELECT {name} has to choose from more than 1,000 complex events with the same end, because "
        "the filter avg(x.v) > 1 is checked for each of them: make the window shorter, let steps leave "
        "nothing out (as A+[NOT A] does), or allow more by setting the variable "
        "ESTERO_CANDIDATES of the environment"
    )
    monkeypatch.setenv(VARIABLE, "1023")
    assert rows(text) > 0


def test_without_a_strategy_there_is_nothing_to_choose_from(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "1")
    assert rows("SELECT * WHERE A+ AS x ; B FILTER avg(x.v) > 1") > 100
    assert rows("SELECT NEXT * WHERE A+ AS x ; B") == 2


@pytest.mark.parametrize("text", ["0", "many", "-5", "1e6"])
def test_a_wrong_number_is_refused(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, text)
    with pytest.raises(estero.EnvironmentProblem, match=f"ESTERO_CANDIDATES is '{text}': set it to a number"):
        rows("SELECT NEXT * WHERE A+ AS x ; B FILTER avg(x.v) > 1")
