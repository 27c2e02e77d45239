"""The metrics of a stream or a recognizer in OpenTelemetry."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from estero.arguments import checked
from estero.errors import require
from estero.local.stream import LiveStream
from estero.recognize.recognizers.stream_recognizer import StreamRecognizer
from estero.recognize.rules.set_recognizer import RuleSetRecognizer

if TYPE_CHECKING:
    from opentelemetry.metrics import CallbackOptions, Observation


class _Metric(NamedTuple):
    """A metric from an entry of `metrics()`; for a mapping, one value for each value of `attribute`."""

    key: str
    unit: str
    about: str
    grows: bool = True
    attribute: str | None = None


METRICS: Final[Mapping[str, _Metric]] = {
    "estero.events": _Metric("events", "{event}", "Events that came."),
    "estero.events.late": _Metric("late", "{event}", "Events that came too late, and were left out."),
    "estero.events.dead": _Metric("dead", "{event}", "What came and could not be read as an event."),
    "estero.events.held_back": _Metric(
        "held_back", "{event}", "Events that wait for earlier ones.", grows=False
    ),
    "estero.events.shed": _Metric("shed_events", "{event}", "Events given up with their partitions."),
    "estero.events.open": _Metric("open_events", "{event}", "Events that are needed to go on.", grows=False),
    "estero.partitions.open": _Metric(
        "partitions", "{partition}", "Partitions in which something is open.", grows=False
    ),
    "estero.partitions.shed": _Metric(
        "shed_partitions", "{partition}", "Partitions that were given up, since the state took too much."
    ),
    "estero.answers": _Metric("answers", "{answer}", "Answers, of all rules together."),
    "estero.rule.answers": _Metric(
        "answers_by_rule", "{answer}", "Answers, by rule.", attribute="estero.rule"
    ),
    "estero.rules": _Metric("rules", "{rule}", "Rules that count.", grows=False),
    "estero.state.size": _Metric("state_bytes", "By", "Bytes of the state.", grows=False),
    "estero.batches": _Metric("batches", "{batch}", "Batches of events."),
    "estero.checkpoints": _Metric("checkpoints", "{checkpoint}", "States that were written."),
    "estero.stage.time": _Metric("seconds", "s", "Seconds, by stage.", attribute="estero.stage"),
}
"""The metrics by their names."""


@checked
class Observer:
    """The latest observed metrics (`estero.observe` makes one)."""

    def __init__(
        self, numbers: Callable[[], dict[str, Any]], *, attributes: dict[str, str], asks: bool
    ) -> None:
        self._numbers = numbers
        self._attributes = attributes
        self._asks = asks
        self._shown: set[str] = set()
        self._last: dict[str, Any] = {}

    def update(self) -> None:
        """Reads the current metrics; call it from the thread that pushes, as it takes as long as a snapshot.

        It is not needed for a running stream, which is read at each export.
        """
        self._last = self._numbers()

    def _read(self, name: str, metric: _Metric) -> Iterable[Observation]:
        """The current value of a metric; metrics that are read in succession are of one moment."""
        from opentelemetry.metrics import Observation

        if self._asks and (name in self._shown or not self._shown):
            self._shown.clear()
            self.update()
        self._shown.add(name)
        value = self._last.get(metric.key)
        if value is None:
            return []
        if metric.attribute is None:
            return [Observation(value, self._attributes)]
        return [
            Observation(one, {**self._attributes, metric.attribute: which}) for which, one in value.items()
        ]


@checked
def observe(
    stream: LiveStream | StreamRecognizer | RuleSetRecognizer, *, attributes: Mapping[str, str] | None = None
) -> Observer:
    """Exports the counters of a running stream or a recognizer as OpenTelemetry metrics with `attributes`.

    The metrics belong to the meter ``estero`` of the current meter provider. A running stream is read at each
    export. A recognizer belongs to one thread, so its numbers are those of the last `Observer.update`, which
    that thread calls. Raises `MissingPackage` without opentelemetry-api.
    """
    require("telemetry", "observe()")
    from opentelemetry.metrics import get_meter

    observer = Observer(
        stream.metrics, attributes=dict(attributes or {}), asks=isinstance(stream, LiveStream)
    )
    meter = get_meter("estero")
    for name, metric in METRICS.items():
        make = meter.create_observable_counter if metric.grows else meter.create_observable_gauge

        def read(
            _options: CallbackOptions, name: str = name, metric: _Metric = metric
        ) -> Iterable[Observation]:
            return observer._read(name, metric)  # noqa: SLF001 (of this module)

        make(name, [read], unit=metric.unit, description=metric.about)
    return observer
