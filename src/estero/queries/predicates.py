"""Predicates of one's own over sets of events: ``@estero.predicate``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, overload

from estero.arguments import checked
from estero.language.check.set_predicates import register

Function = TypeVar("Function", bound=Callable[..., Any])


@overload
def predicate(function: Function, /) -> Function: ...


@overload
def predicate(*, name: str | None = None, parallel: bool = False) -> Callable[[Function], Function]: ...


@checked
def predicate(
    function: Function | None = None, /, *, name: str | None = None, parallel: bool = False
) -> object:
    """Registers a function as a predicate that queries can call: ``FILTER spread(a.price, b.price, 5)``.

    It is called once for each complex event that passes the rest of the query, with the arguments of the
    call in the query: for ``X`` a ``pyarrow.Table`` of the events marked X with their attributes and
    ``position``, for ``X.a`` a ``pyarrow.Array`` of their values, both in stream order, and for a constant
    its value. It returns True, False, or None for unknown, and a filter keeps what is True. An error that it
    raises becomes the cause of a `DataError` that names the complex event.

    In a query it has its own name, or `name`. Registering a name again replaces the function, also for
    earlier queries. On Spark the function is sent to the workers with the plan and called in all tasks that
    share the work. Tables, for ``X``, have positions, for which one task has to number all events; ``X.a``
    avoids that.

    A query that calls a function is recognized by one thread, which calls it for one complex event after the
    other. `parallel` allows calls from several threads at once, so that the query uses all cores: for
    functions that do not change shared data.

    Raises ValueError for a name that a query cannot say or that is built in, and TypeError for a function
    that cannot be called with positional arguments alone.

    ::

        @estero.predicate
        def widening(values, by):
            return values[-1].as_py() - values[0].as_py() >= by
    """

    def as_predicate(function: Function) -> Function:
        register(function, name, parallel=parallel)
        return function

    return as_predicate if function is None else as_predicate(function)
