"""Properties that are computed once for each object."""

from __future__ import annotations

import threading

from estero.system.cached_property import cached_property


class _Slow:
    """Computes a value that waits for an event, and counts how often it does."""

    def __init__(self, may_end: threading.Event) -> None:
        self.may_end = may_end
        self.begun = threading.Event()
        self.computed = 0

    @cached_property
    def value(self) -> object:
        """A new object."""
        self.computed += 1
        self.begun.set()
        assert self.may_end.wait(60)
        return object()


def test_a_value_is_computed_once() -> None:
    free = threading.Event()
    free.set()
    slow = _Slow(free)
    assert slow.value is slow.value
    assert slow.computed == 1
    assert _Slow.value.__doc__ == "A new object."


def test_one_object_does_not_wait_for_another_of_its_class() -> None:
    held, free = threading.Event(), threading.Event()
    free.set()
    waiting, other = _Slow(held), _Slow(free)
    thread = threading.Thread(target=lambda: waiting.value, daemon=True)
    thread.start()
    assert waiting.begun.wait(60)
    assert other.value is other.value
    held.set()
    thread.join(60)
    assert waiting.computed == 1


def test_threads_that_ask_at_once_have_one_value() -> None:
    held = threading.Event()
    slow = _Slow(held)
    values: list[object] = []
    threads = [threading.Thread(target=lambda: values.append(slow.value), daemon=True) for _ in range(2)]
    for thread in threads:
        thread.start()
    assert slow.begun.wait(60)
    held.set()
    for thread in threads:
        thread.join(60)
    assert values[0] is values[1] is slow.value
