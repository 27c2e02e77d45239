"""Batches as kernels read them: in one kind of memory."""

from __future__ import annotations

import numpy as np

from estero.engine.batch import constant


def test_what_is_constant_is_copied_only_if_it_must_be() -> None:
    numbers = np.arange(6, dtype=np.int64)
    as_it_is, every_second = constant(numbers, np.int64), constant(numbers[::2], np.int64)
    assert np.shares_memory(as_it_is, numbers)
    assert not as_it_is.flags.writeable
    assert numbers.flags.writeable
    assert every_second.tolist() == [0, 2, 4]
    assert every_second.flags.c_contiguous
