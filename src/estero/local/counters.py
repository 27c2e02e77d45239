"""The counters of a running stream, and the time spent in its stages."""

from __future__ import annotations

from collections import Counter
from threading import Lock
from time import perf_counter
from typing import Any

STAGES = ("poll", "decode", "recognize", "write", "checkpoint")
"""The stages of a batch whose seconds are counted."""
_KEPT = ("events", "dead", "skipped", "batches", "answers", "shed_partitions")


class _Timing:
    """A block of a stage; generators as context managers take longer than some stages."""

    __slots__ = ("_counters", "_stage", "_start")

    def __init__(self, counters: Counters, stage: str) -> None:
        self._counters = counters
        self._stage = stage

    def __enter__(self) -> None:
        self._start = perf_counter()

    def __exit__(self, *_error: object) -> None:
        self._counters.add_seconds(self._stage, perf_counter() - self._start)


class Counters:
    """Numbers since the stream began, and seconds since this process did; other threads may read them."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._numbers = dict.fromkeys(_KEPT, 0)
        self._by_rule: Counter[str] = Counter()
        self._gauges = {"late": 0, "held_back": 0, "state_bytes": 0, "checkpoints": 0, "rules": 0}
        self._seconds = dict.fromkeys(STAGES, 0.0)

    def add(self, **numbers: int) -> None:
        """Adds to some counters."""
        with self._lock:
            for name, number in numbers.items():
                self._numbers[name] += number

    def add_answers(self, rules: Counter[str]) -> None:
        """Adds to the numbers of answers by rule."""
        with self._lock:
            self._by_rule.update(rules)
            self._numbers["answers"] += rules.total()

    def put(self, **gauges: int) -> None:
        """Sets some counters."""
        with self._lock:
            self._gauges.update(gauges)

    def timing(self, stage: str) -> _Timing:
        """A context manager that adds the seconds of its block to a stage."""
        return _Timing(self, stage)

    def add_seconds(self, stage: str, seconds: float) -> None:
        """Adds seconds to a stage."""
        with self._lock:
            self._seconds[stage] += seconds

    def kept(self) -> dict[str, Any]:
        """The counters that a checkpoint contains."""
        with self._lock:
            return {**self._numbers, "by_rule": dict(self._by_rule)}

    def resume(self, kept: dict[str, Any]) -> None:
        """Restores the counters of a checkpoint."""
        with self._lock:
            self._by_rule = Counter(kept.get("by_rule", {}))
            self._numbers |= {name: int(kept.get(name, 0)) for name in _KEPT}

    def now(self) -> dict[str, Any]:
        """All counters."""
        with self._lock:
            return {
                **self._numbers,
                **self._gauges,
                "answers_by_rule": dict(self._by_rule),
                "seconds": dict(self._seconds),
            }
