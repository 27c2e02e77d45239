"""Predicates over sets of events: the built-in ones, and those that users register.

A registered predicate is data here: its name, its numbers of arguments, and the function. The evaluator of
queries looks functions up when a query runs, so a predicate that is defined anew replaces the old one.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Final

from estero.language.tree.functions import AGGREGATES, PREVIOUS, SCALAR_FUNCTIONS, SET_PREDICATES
from estero.language.tree.words import is_keyword

Function = Callable[..., Any]


@dataclass(frozen=True, slots=True)
class RegisteredPredicate:
    """A predicate by name; it takes at least `least` and at most `most` arguments (None: any number).

    `parallel`: several threads may call it at once.
    """

    name: str
    function: Function
    least: int
    most: int | None
    parallel: bool = False

    @property
    def arguments(self) -> str:
        """The number of arguments, as a phrase.

        >>> RegisteredPredicate("near", print, 2, 2).arguments
        '2 arguments'
        >>> RegisteredPredicate("any", print, 1, None).arguments
        'at least 1 argument'
        """
        if self.most is None:
            return f"at least {_counted(self.least)}"
        if self.least == self.most:
            return _counted(self.least)
        return f"{self.least} to {_counted(self.most)}"

    @property
    def signature(self) -> str:
        """The names of its arguments, as in ``(values, by)``; ``(…)`` if they are not known."""
        try:
            parameters = inspect.signature(self.function).parameters
        except ValueError:
            return "(…)"
        names = [
            f"*{name}" if parameter.kind is parameter.VAR_POSITIONAL else name
            for name, parameter in parameters.items()
            if parameter.kind not in (parameter.KEYWORD_ONLY, parameter.VAR_KEYWORD)
        ]
        return f"({', '.join(names)})"

    def takes(self, count: int) -> bool:
        """Whether it can be called with this number of arguments."""
        return self.least <= count and (self.most is None or count <= self.most)


_REGISTERED: Final[dict[str, RegisteredPredicate]] = {}


def register(function: Function, name: str | None = None, *, parallel: bool = False) -> RegisteredPredicate:
    """Registers `function` under `name` or its own name, and replaces an earlier one of that name.

    `parallel` says that several threads may call it at once.

    Raises ValueError for a name that a query cannot write or that is built in, and TypeError for a function
    that cannot be called with positional arguments alone.
    """
    called = name if name is not None else getattr(function, "__name__", "")
    if not callable(function):
        raise TypeError(f"a predicate is a function, not {function!r}")
    _check_name(called)
    least, most = _positional(function, called)
    predicate = RegisteredPredicate(called, function, least, most, parallel)
    _REGISTERED[called] = predicate
    return predicate


def registered(name: str) -> RegisteredPredicate | None:
    """The predicate of that name that was registered last, or None."""
    return _REGISTERED.get(name)


def registered_among(names: Iterable[str]) -> dict[str, RegisteredPredicate]:
    """The registered predicates among `names`, by name."""
    return {name: _REGISTERED[name] for name in names if name in _REGISTERED}


def all_registered() -> tuple[RegisteredPredicate, ...]:
    """All registered predicates, as they are now."""
    return tuple(_REGISTERED.values())


def known_predicates() -> tuple[str, ...]:
    """The names of all predicates over sets of events: built in, then registered ones from A to Z."""
    return (*SET_PREDICATES, *sorted(_REGISTERED))


def _check_name(name: str) -> None:
    if not name.isidentifier() or is_keyword(name):
        raise ValueError(
            f"{name!r} cannot be the name of a predicate in a query: "
            "name it with @estero.predicate(name='…'), in letters, digits and _, but not with a keyword"
        )
    if name.lower() in (*AGGREGATES, *SET_PREDICATES, *SCALAR_FUNCTIONS, PREVIOUS):
        raise ValueError(
            f"{name} is built in: give the predicate another name, "
            f"as in @estero.predicate(name='my_{name.lower()}')"
        )


def _positional(function: Function, name: str) -> tuple[int, int | None]:
    """The least and the greatest number of positional arguments of a function."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except ValueError:  # some functions written in C have no signature
        return 0, None
    least, most = 0, 0
    unbounded = False
    for parameter in parameters:
        if parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD):
            least += parameter.default is parameter.empty
            most += 1
        elif parameter.kind is parameter.VAR_POSITIONAL:
            unbounded = True
        elif parameter.kind is parameter.KEYWORD_ONLY and parameter.default is parameter.empty:
            raise TypeError(
                f"the predicate {name} needs {parameter.name} by keyword; queries give arguments by place: "
                f"move {parameter.name} before the *, or give it a default"
            )
    return least, None if unbounded else most


def _counted(number: int) -> str:
    return f"{number} argument{'' if number == 1 else 's'}"
