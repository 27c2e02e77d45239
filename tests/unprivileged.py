"""What may not be done, tested by root as well."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

_NOBODY = 65534


@contextmanager
def no_longer_root() -> Iterator[None]:
    """Inside the block a process of root is nobody's; any other stays as it is."""
    own = os.geteuid()
    if own == 0:
        os.seteuid(_NOBODY)
    try:
        yield
    finally:
        os.seteuid(own)
