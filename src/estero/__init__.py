"""Estero: complex event recognition for Python, on Spark.

>>> import estero
>>> str(estero.query("select * where A as x ; B as y filter x[n > 3] within 10 events"))
'SELECT * WHERE A AS x ; B AS y FILTER x[n > 3] WITHIN 10 EVENTS'
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from estero.errors import (
    DataError,
    EnvironmentProblem,
    EsteroError,
    EsteroWarning,
    LimitExceeded,
    QueryError,
)

if TYPE_CHECKING:
    from estero.automaton_queries import automaton
    from estero.conjunctive_queries import conjunctive
    from estero.language.builder import (
        aggregate,
        attribute,
        call,
        closed,
        constant,
        decreasing,
        event,
        holds,
        increasing,
        outside,
        select,
        var,
    )
    from estero.pipeline.answer import Answer
    from estero.pipeline.complex_event import ComplexEvent
    from estero.pipeline.continuous import ContinuousRecognizer
    from estero.predicates import predicate
    from estero.queries import Query, query, restore
    from estero.texts import check, query_of_text

__version__ = "0.1.0"
__all__ = [
    "Answer",
    "ComplexEvent",
    "ContinuousRecognizer",
    "DataError",
    "EnvironmentProblem",
    "EsteroError",
    "EsteroWarning",
    "LimitExceeded",
    "Query",
    "QueryError",
    "aggregate",
    "attribute",
    "automaton",
    "call",
    "check",
    "closed",
    "conjunctive",
    "constant",
    "decreasing",
    "event",
    "holds",
    "increasing",
    "outside",
    "predicate",
    "query",
    "query_of_text",
    "restore",
    "select",
    "var",
]

_HOMES = {
    "Answer": "estero.pipeline.answer",
    "ComplexEvent": "estero.pipeline.complex_event",
    "ContinuousRecognizer": "estero.pipeline.continuous",
    "Query": "estero.queries",
    "aggregate": "estero.language.builder",
    "attribute": "estero.language.builder",
    "automaton": "estero.automaton_queries",
    "call": "estero.language.builder",
    "check": "estero.texts",
    "closed": "estero.language.builder",
    "conjunctive": "estero.conjunctive_queries",
    "constant": "estero.language.builder",
    "decreasing": "estero.language.builder",
    "event": "estero.language.builder",
    "holds": "estero.language.builder",
    "increasing": "estero.language.builder",
    "outside": "estero.language.builder",
    "predicate": "estero.predicates",
    "query": "estero.queries",
    "query_of_text": "estero.texts",
    "restore": "estero.queries",
    "select": "estero.language.builder",
    "var": "estero.language.builder",
}


def __getattr__(name: str) -> object:
    """Imports what is asked for when it is asked for: the parser, Arrow and Numba take their time."""
    if name not in _HOMES:
        raise AttributeError(f"module 'estero' has no attribute {name!r}")
    found: object = getattr(import_module(_HOMES[name]), name)
    globals()[name] = found
    return found
