"""Objects made while garbage collection is disabled."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from estero.system.collection import without_collection


@pytest.fixture(autouse=True)
def _thawed() -> Iterator[None]:
    """Nothing is frozen, and Python collects garbage."""
    gc.unfreeze()
    assert gc.isenabled()
    yield
    gc.unfreeze()


def test_many_objects_count_as_old_afterwards() -> None:
    with without_collection():
        made = [[number] for number in range(50_000)]
    assert gc.isenabled()
    assert len(gc.get_objects(generation=0)) < len(made)
    assert any(each is made[-1] for each in gc.get_objects())


def test_what_is_frozen_stays_so() -> None:
    gc.freeze()
    frozen = gc.get_freeze_count()
    with without_collection():
        made = [[number] for number in range(50_000)]
    assert gc.get_freeze_count() > frozen - len(made)


def test_for_few_objects_nobody_counts_what_is_frozen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Python counts it one by one, which takes longer than to read a rule."""
    monkeypatch.setattr(gc, "get_freeze_count", lambda: pytest.fail("what is frozen is counted"))
    gc.collect()
    with without_collection():
        made = [[number] for number in range(100)]
    assert made
    assert gc.isenabled()
