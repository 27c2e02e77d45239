"""Properties that are computed once for each object, without a lock."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar, overload

T = TypeVar("T")


class cached_property(Generic[T]):  # noqa: N801 - as in functools
    """A property that is computed when it is first read, and then an attribute of its object.

    That of `functools` in Python 3.11 holds one lock for all objects of a class while it computes: threads
    wait for one another, and a process that is forked meanwhile waits for ever. Here two threads that read it
    at once may both compute it, and one value stays.
    """

    def __init__(self, compute: Callable[[Any], T]) -> None:
        self._compute = compute
        self.__doc__ = compute.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    @overload
    def __get__(self, instance: None, owner: type) -> cached_property[T]: ...
    @overload
    def __get__(self, instance: object, owner: type) -> T: ...
    def __get__(self, instance: object | None, owner: type) -> T | cached_property[T]:
        if instance is None:
            return self
        return vars(instance).setdefault(self._name, self._compute(instance))  # type: ignore[no-any-return]
