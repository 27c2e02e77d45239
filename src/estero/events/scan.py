"""Events as users provide them: with the important columns named once, or with arguments beside them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from estero.arguments import checked, shown
from estero.language.tree.names import some
from estero.language.tree.schema import UNITS_OF_TIME, EventLayout


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Scan:
    """Events and the meaning of their columns (`estero.scan` makes one). Nothing is read or copied.

    `events` are anything that `Query.run` takes or, for a recognizer, a schema; `layout` says which columns
    hold the type, the time and what breaks ties, and `csv_options` are for the reader of CSV files.
    """

    events: Any
    layout: EventLayout
    csv_options: Mapping[str, object] | None = None

    @classmethod
    def of(
        cls,
        events: object,
        type: str | None = None,
        time: str | None = None,
        order: Sequence[str] = (),
        time_unit: str | None = None,
        types: Sequence[str] = (),
        csv_options: Mapping[str, object] | None = None,
        *,
        only_type: str = "Event",
    ) -> Scan:
        """The scan for the arguments of a public function: a scan unchanged, or events and arguments.

        All events are of type `only_type` unless a column says otherwise. Raises ValueError for arguments
        beside a scan, and `DataError` for an unknown unit of time.
        """
        beside = EventLayout.of(type, time, order, time_unit, types, only_type=only_type)
        if not isinstance(events, Scan):
            return cls(events, beside, csv_options)
        given = {**_named(beside), "csv_options": csv_options}
        if twice := [f"{name}=" for name, value in given.items() if value not in (None, [], {})]:
            verb = "is" if len(twice) == 1 else "are"
            raise ValueError(
                f"{some(twice, word='and')} {verb} given beside a scan: "
                f"write estero.scan(events, {', '.join(f'{name}…' for name in twice)})"
            )
        return replace(events, layout=replace(events.layout, only_type=only_type))

    @property
    def is_of_spark(self) -> bool:
        """Whether the events are a DataFrame of Spark."""
        return is_of_spark(self.events)

    def __repr__(self) -> str:
        given = {**_named(self.layout), "csv_options": self.csv_options}
        said = [f"{name}={value!r}" for name, value in given.items() if value not in (None, [], {})]
        return f"estero.scan({', '.join([shown(self.events), *said])})"


def is_of_spark(events: object) -> bool:
    """Whether these are a DataFrame of Spark; the name of its class tells, so PySpark is not imported."""
    return any(
        kind.__name__ == "DataFrame" and kind.__module__.startswith("pyspark.sql.")
        for kind in type(events).__mro__
    )


def _named(layout: EventLayout) -> dict[str, object]:
    """The arguments of `scan` that describe such a layout."""
    units = (name for name, unit in UNITS_OF_TIME.items() if unit is layout.time_unit)
    return {
        "type": layout.type,
        "time": layout.time,
        "order": list(layout.order),
        "time_unit": next(units, None),
        "types": list(layout.types),
    }


@checked
def scan(
    events: object,
    *,
    type: str | None = None,
    time: str | None = None,
    order: Sequence[str] = (),
    time_unit: str | None = None,
    types: Sequence[str] = (),
    csv_options: Mapping[str, object] | None = None,
) -> Scan:
    """Events together with the names of the columns that matter, to be given wherever events are.

    `events` are anything that `Query.run` takes, a Spark DataFrame, or the schema of a recognizer. `type` is
    the column with the event type (without it there is one type, named after FROM, or ``Event``), `time` the
    time column, `order` columns that break ties of time, `time_unit` the length of a tick of an integer time
    column ("ns", "us", "ms", "s", "min", "h", "d"), `types` types that may occur beside those that do.
    `csv_options` are passed to the reader of CSV files. Nothing is read.

    Raises `DataError` for an unknown unit of time, and ValueError where `events` are a scan already and other
    arguments are given, too.

    >>> from estero.testing import events
    >>> stream = scan(events("A@0s B@5s B@9s"), type="type", time="time")
    >>> stream
    estero.scan(a Table, type='type', time='time')
    >>> from estero import query
    >>> query("SELECT * WHERE A ; B WITHIN 6 SECONDS").run(stream).count()
    1
    """
    return Scan.of(events, type, time, order, time_unit, types, csv_options)
