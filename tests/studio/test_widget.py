"""The widget carries messages to a session beside the notebook, and stops them; its text goes both ways."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from queue import Queue
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import estero
from estero import demo, errors
from estero.studio import static
from estero.studio.examples import DEMO
from estero.studio.questions import Inside, Questions
from estero.studio.worker import Worker
from studio.stream import BILLIONS
from waiting import FAR_OFF

KINDS = ("Humidity", "Temperature", "Wind")
ENDLESS = f"{BILLIONS} FILTER a.value + b.value + c.value + d.value < -99"


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


class Sent:
    """What a widget sends: a queue that tests read."""

    def __init__(self, widget: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        self._widget = widget
        self._replies: Queue[tuple[dict[str, Any], list[bytes]]] = Queue()
        monkeypatch.setattr(widget, "send", lambda content, buffers: self._replies.put((content, buffers)))

    def say(self, **message: object) -> None:
        self._widget._handle_custom_msg(message, [])

    def next(self) -> tuple[dict[str, Any], list[bytes]]:
        return self._replies.get(timeout=FAR_OFF)


def as_they_come() -> Iterator[pa.RecordBatch]:
    yield from demo.events().to_batches()


@pytest.mark.parametrize("kind", [Worker, Inside])
def test_messages_are_answered_with_their_number_and_stop(
    built: None, monkeypatch: pytest.MonkeyPatch, kind: type[Questions]
) -> None:
    pytest.importorskip("anywidget", reason="the extra studio is not installed (anywidget)")
    if kind is Inside:
        monkeypatch.setattr("estero.studio.widget._travels", lambda _events: False)
    events = demo.events()
    given = {name: events.filter(pc.equal(events["kind"], name)).drop_columns(["kind"]) for name in KINDS}
    widget = estero.query(demo.QUERY).explore(given, time="time", order=["id"])
    assert type(questions_of(widget)) is kind
    assert widget.text == demo.QUERY
    sent = Sent(widget, monkeypatch)
    sent.say(kind="run", text=demo.QUERY, id="7")
    reply, _ = sent.next()
    assert (reply["id"], reply["count"]) == ("7", "45")
    sent.say(kind="timeline", by="station", id="8")
    assert [len(column) for column in sent.next()[1]] == [2010 * 8, 2010 * 2]
    sent.say(kind="count", text=ENDLESS, id="9")
    while not questions_of(widget).is_asked:
        pass
    sent.say(kind="cancel", ids=["9", 5])
    reply, _ = sent.next()
    assert (reply["id"], reply["error"]) == ("9", "cancelled")
    widget.close()
    sent.say(kind="run", text=demo.QUERY, id="10")
    assert sent.next()[0]["error"] == "the studio has ended"


def test_events_that_pass_once_are_read_for_another_process(
    built: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("anywidget", reason="the extra studio is not installed (anywidget)")
    widget = estero.explore(as_they_come(), demo.QUERY, **DEMO)
    assert type(questions_of(widget)) is Worker
    sent = Sent(widget, monkeypatch)
    sent.say(kind="typed", text=demo.QUERY, id="1")
    assert sent.next()[0]["count"] == "45"
    widget.close()


def test_it_begins_with_a_query_of_the_events_types(built: None, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("anywidget", reason="the extra studio is not installed (anywidget)")
    widget = estero.explore(pa.table({"type": ["A", "B"]}), type="type")
    sent = Sent(widget, monkeypatch)
    sent.say(kind="hello", id="1")
    reply, _ = sent.next()
    assert estero.query(reply["text"]).run(pa.table({"type": ["A", "B"]}), type="type").count() == 1
    widget.close()


def test_what_is_no_query_is_refused_at_the_door() -> None:
    with pytest.raises(TypeError, match="query"):
        estero.explore(demo.events(), 5)  # type: ignore[arg-type]


def questions_of(widget: Any) -> Any:
    """Who answers the questions of a widget."""
    return widget._questions
