"""States that releases wrote are read by today's code, and go on to the right answer.

`python tests/recognize/test_kept_states.py DIRECTORY` writes them with the code at hand, once for each
release. Where this fails, states that users have can no longer be read: it says so in the change log.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

import estero
from estero.testing import events

STATES = Path(__file__).parent / "states"
LAYOUT: dict[str, Any] = {"type": "type", "time": "time"}
BEFORE = events("login(user=1, n=5)@0s login(user=2, n=7)@2s fail(user=1, n=6)@4s")
AFTER = events("fail(user=2, n=9)@6s logout(user=1, n=8)@8s logout(user=2, n=1)@9s")
ASKED: dict[str, Any] = {
    "query": estero.query("SELECT * WHERE login ; fail ; logout PARTITION BY [user] WITHIN 1 MINUTE"),
    "rules": estero.rules(
        {
            "first": "SELECT * WHERE login ; logout FILTER login[n > 5] PARTITION BY [user] WITHIN 1 MINUTE",
            "second": "SELECT * WHERE login ; logout FILTER login[n > 4] PARTITION BY [user] WITHIN 1 MINUTE",
            "quiet": "SELECT * WHERE logout ; NOT(login) FOR 1 SECOND PARTITION BY [user]",
        }
    ),
    "eql": estero.eql(
        "sequence by user with maxspan=1m [login where true] [fail where true] [logout where true]"
    ),
}
"""What is asked, by the names of the files."""


def begun(name: str) -> Any:
    """A recognizer that has read the first events."""
    recognizer = ASKED[name].recognizer(BEFORE.schema, **LAYOUT)
    recognizer.push(BEFORE)
    return recognizer


def rest(recognizer: Any) -> list[tuple[object, ...]]:
    """What a recognizer answers to the other events."""
    rows = [*recognizer.push(AFTER), *recognizer.advance("2000-01-01 00:00:00")]
    return sorted((str(row.rule), row.start, row.end, str(row.positions)) for row in rows)


@pytest.mark.parametrize(
    "file", sorted(STATES.glob("*/*.state")), ids=lambda file: str(file.relative_to(STATES))
)
def test_a_kept_state_goes_on(file: Path) -> None:
    answers = rest(estero.restore(ASKED[file.stem], file.read_bytes()))
    assert answers == rest(begun(file.stem))
    ends = {(start, end) for _, start, end, _ in answers}
    assert ends == ({(0, 4), (1, 5), (4, 4), (5, 5)} if file.stem == "rules" else {(0, 4), (1, 5)})


def test_each_release_has_all_of_them() -> None:
    releases = {file.parent.name for file in STATES.glob("*/*.state")}
    assert "0.1" in releases
    for release in releases:
        assert {file.stem for file in (STATES / release).glob("*.state")} == ASKED.keys()


if __name__ == "__main__":
    for name in ASKED:
        Path(sys.argv[1], f"{name}.state").write_bytes(begun(name).snapshot())
