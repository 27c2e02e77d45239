"""Rules in Sigma with any value in any place are rules, or refused with their file, line and reason."""

from __future__ import annotations

import copy
import datetime as dt
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

import estero

DETECTION = {
    "title": "t",
    "id": "11111111-2222-3333-4444-555555555555",
    "name": "n",
    "status": "test",
    "level": "high",
    "tags": ["attack.t1001"],
    "date": "2026-01-01",
    "references": ["x"],
    "falsepositives": ["x"],
    "fields": ["a"],
    "logsource": {"category": "firewall", "product": "p", "service": "s"},
    "detection": {"s": {"a|re": "x.y", "b": ["c", 7]}, "k": ["word"], "condition": "s or k"},
}
CORRELATION = {
    "title": "c",
    "name": "c",
    "correlation": {
        "type": "value_count",
        "rules": ["one"],
        "group-by": ["key"],
        "aliases": {"key": {"one": "a"}},
        "timespan": "5m",
        "condition": {"gte": 2, "field": "b"},
        "generate": True,
    },
}
ONE = {
    "title": "one",
    "name": "one",
    "logsource": {"category": "firewall"},
    "detection": {"s": {"a": "b"}, "condition": "s"},
}
ODD: list[Any] = [
    None,
    7,
    1.5,
    True,
    float("inf"),
    "",
    "%x%",
    [],
    {},
    [None],
    [7],
    {"x": "y"},
    [["x"]],
    2**80,
    b"x",
]
ODD += [dt.date(2026, 1, 1), "9" * 30]


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The paths to all values inside of one."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, one in inner:
        yield (*path, key)
        yield from places(one, (*path, key))


def changed(rule: dict[str, Any], path: tuple[Any, ...], value: Any) -> dict[str, Any]:
    whole = copy.deepcopy(rule)
    here: Any = whole
    for step in path[:-1]:
        here = here[step]
    here[path[-1]] = value
    return whole


@pytest.mark.filterwarnings("ignore::estero.EsteroWarning")
@pytest.mark.parametrize("rule", [DETECTION, CORRELATION], ids=["detection", "correlation"])
def test_any_value_in_any_place_is_read_or_refused(rule: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / "one.yml").write_text(yaml.safe_dump(ONE))
    texts = [yaml.safe_dump(changed(rule, path, value)) for path in places(rule) for value in ODD]
    for number, text in enumerate(texts):
        (tmp_path / f"{number:04}.yml").write_text(text)
    rules = estero.rules(tmp_path, sigma={"logsource": False})
    assert 0 < len(rules.refused) < len(texts)
    assert len(rules) + len(rules.refused) >= len(texts)
    for error in rules.refused.values():
        assert error.rule is not None
        assert error.message
        assert error.line_and_column[0] >= 1
    events = [{"t": 1, "a": "b", "b": "x"}, {"t": 2, "a": "b", "b": "y"}]
    assert rules.run(events, time="t", time_unit="s").counts()
