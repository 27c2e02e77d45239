"""The widget carries messages to a session in its own process, and its text both ways."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import estero
from estero import demo, errors
from estero.studio import static
from estero.studio.examples import DEMO


@pytest.fixture
def built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (static.SCRIPT, static.STYLE):
        (tmp_path / name).write_text("export default {}" if name.endswith("js") else "")
    monkeypatch.setattr(static, "_FOLDER", tmp_path)


def test_without_its_packages_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(errors, "find_spec", lambda _name: None)
    with pytest.raises(estero.EnvironmentProblem, match=r"pip install 'estero\[studio\]'"):
        estero.explore(demo.events())


def test_it_is_told_if_the_front_end_is_not_built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("anywidget", reason="the extra studio is not installed (anywidget)")
    monkeypatch.setattr(static, "_FOLDER", tmp_path)
    with pytest.raises(estero.EnvironmentProblem, match="make studio builds it, which needs npm"):
        estero.explore(demo.events())


def test_messages_are_answered_with_their_number(built: None, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("anywidget", reason="the extra studio is not installed (anywidget)")
    widget = estero.query(demo.QUERY).explore(demo.events(), **DEMO)
    assert widget.text == demo.QUERY
    sent: list[tuple[dict[str, Any], list[bytes]]] = []
    monkeypatch.setattr(widget, "send", lambda content, buffers: sent.append((content, buffers)))
    widget._handle_custom_msg({"kind": "run", "text": demo.QUERY, "id": "7"}, [])
    widget._handle_custom_msg({"kind": "timeline", "by": "station", "id": "8"}, [])
    assert sent[0][0]["id"] == "7"
    assert sent[0][0]["count"] == "45"
    assert [len(column) for column in sent[1][1]] == [2010 * 8, 2010 * 2]


def test_it_begins_with_a_query_of_the_events_types(built: None) -> None:
    pytest.importorskip("anywidget", reason="the extra studio is not installed (anywidget)")
    widget = estero.explore(pa.table({"type": ["A", "B"]}), type="type")
    reply, _ = widget._session.answer({"kind": "hello"})
    assert estero.query(reply["text"]).run(pa.table({"type": ["A", "B"]}), type="type").count() == 1


def test_what_is_no_query_is_refused_at_the_door() -> None:
    with pytest.raises(TypeError, match="query"):
        estero.explore(demo.events(), 5)  # type: ignore[arg-type]
