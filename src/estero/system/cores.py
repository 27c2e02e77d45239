"""The number of threads that may work at once: the user's setting, else the cores of this process."""

from __future__ import annotations

import os
from functools import cache
from numbers import Integral
from pathlib import Path

VARIABLE = "ESTERO_THREADS"
MOST = 256
"""The largest number of threads: with more, cores are not the limit."""

_HINT = "for example 1, or leave it out to use the cores that this process may use"


def threads_to_use(asked: object = None) -> int:
    """The number of threads: `asked` if given, else ``ESTERO_THREADS``, else the cores; at most 256.

    Raises TypeError for anything but an integer, and ValueError for one below 1.
    """
    if asked is None:
        text = os.environ.get(VARIABLE, "").strip()
        return _from_environment(text) if text else cores()
    if isinstance(asked, bool) or not isinstance(asked, Integral):
        raise TypeError(f"threads is a whole number from 1 on, not {asked!r}: {_HINT}")
    return _checked(int(asked), "threads")


def _from_environment(text: str) -> int:
    try:
        number = int(text)
    except ValueError:
        raise ValueError(f"{VARIABLE} is a whole number from 1 on, not {text!r}: {_HINT}") from None
    return _checked(number, VARIABLE)


def _checked(number: int, name: str) -> int:
    if number < 1:
        raise ValueError(f"{name} is at least 1, not {number}: {_HINT}")
    return min(number, MOST)


def cores() -> int:
    """The cores that this process may use: those that it is bound to, within its CPU quota."""
    bound = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min(bound, _quota() or bound))


@cache
def _quota(limits: Path = Path("/sys/fs/cgroup")) -> int | None:
    """The cores of a container's quota (control groups of Linux, both versions); None without one."""
    try:
        quota, period = _numbers_of_quota(limits)
    except (OSError, ValueError):  # no Linux, no container, or no limit ("max")
        return None
    return max(1, -(-quota // period)) if quota > 0 and period > 0 else None


def _numbers_of_quota(limits: Path) -> tuple[int, int]:
    """The microseconds of all cores together in a period, and those of the period."""
    both = limits / "cpu.max"
    if both.exists():
        quota, period = both.read_text(encoding="ascii").split()
        return int(quota), int(period)
    first = limits / "cpu"
    names = "cpu.cfs_quota_us", "cpu.cfs_period_us"
    quota_us, period_us = (int((first / name).read_text(encoding="ascii")) for name in names)
    return quota_us, period_us
