"""The studio in a notebook: a widget of anywidget, which carries messages to a session."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import PathLike
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from estero.arguments import checked
from estero.errors import require
from estero.events.scan import Scan
from estero.queries.query import Query
from estero.studio.opening import Opening
from estero.studio.questions import Inside, Questions
from estero.studio.static import SCRIPT, STYLE, static_file
from estero.studio.stream import Stream

if TYPE_CHECKING:
    from estero.studio.notebook import Explorer


@checked
def explore(
    events: object,
    query: Query | str | None = None,
    *,
    type: str | None = None,
    time: str | None = None,
    order: Sequence[str] = (),
    time_unit: str | None = None,
    types: Sequence[str] = (),
    csv_options: Mapping[str, object] | None = None,
) -> Explorer:
    """A widget for notebooks: an editor for queries over these events, with their answers.

    `events` and the arguments for their layout are those of `Query.run`. They are read into the memory of a
    separate process that answers the questions, so that any question can be stopped. The widget begins with
    `query`, else with a small query over the first types of events; ``text`` is the text in the editor. It
    works wherever anywidget does: Jupyter, VS Code, Colab, marimo, Databricks.

    Raises `MissingPackage` without anywidget, `DataError` for events that cannot be read, ValueError for a
    Spark DataFrame.
    """
    require("studio", "the studio")
    scan = Scan.of(events, type, time, order, time_unit, types, csv_options)
    if scan.is_of_spark:
        raise ValueError(
            "the studio holds events in memory: give it a part of them, "
            "such as frame.limit(100000).toPandas()"
        )
    text = None if query is None else str(query) if isinstance(query, str) else _text_of(query)
    files = {"script": static_file(SCRIPT), "style": static_file(STYLE)}
    from estero.studio.notebook import explorer

    return explorer(_questions(scan, text), text=text or "", **files)


def _questions(scan: Scan, text: str | None) -> Questions:
    """The place where questions are answered: another process, if it can be given the events."""
    stream = Stream(scan)
    if isinstance(scan.events, Mapping):
        given, can_go = scan, all(map(_travels, scan.events.values()))
    else:
        given, can_go = scan if _travels(scan.events) else stream.scan, True
    opening = Opening(given, text)
    if not can_go:
        return Inside(opening)
    from estero.studio.worker import Worker

    return Worker(opening)


def _travels(events: object) -> bool:
    """Whether events are paths, or a table, which another process can be given directly."""
    if isinstance(events, list | tuple):
        return all(map(_travels, events)) and bool(events)
    return isinstance(events, str | PathLike | pa.Table)


def _text_of(query: Query) -> str:
    """The text of a query as it was written, or as it prints if it was built."""
    said: Any = query.tree.text
    return said or str(query)
