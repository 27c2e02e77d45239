"""What Python workers keep between tasks."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from estero.spark.workers import spare_collector


@pytest.fixture
def thawed() -> Iterator[None]:
    """What the test has frozen is collected again afterwards."""
    gc.unfreeze()
    yield
    gc.unfreeze()


def test_what_is_loaded_is_looked_through_once(thawed: None) -> None:
    loaded = [[place] for place in range(30_000)]
    spare_collector()
    assert gc.get_freeze_count() >= len(loaded)
    assert len(gc.get_objects()) < len(loaded)


def test_what_tasks_leave_is_still_collected(thawed: None) -> None:
    spare_collector()
    frozen = gc.get_freeze_count()
    left = [[place] for place in range(1_000)]
    spare_collector()
    assert gc.get_freeze_count() <= frozen  # some of it may have gone meanwhile
    assert any(each is left for each in gc.get_objects())
